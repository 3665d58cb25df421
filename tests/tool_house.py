"""The tools over a real outbox and a real SQLite file, and short ways to call them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent.conversation import Conversation, Reply, Step, ToolCall, ToolResult, Turn
from agent.toolkit import Toolkit, Visit
from alerts.outbox import Outbox
from store.store import Store
from tools.registry import toolkit


@dataclass(frozen=True)
class House:
    store: Store
    tools: Toolkit

    async def gather(self, visit: Visit, email: str, **others: Any) -> str:
        arguments = {"email": email, "notes": "Wants to talk about a job.", **others}
        return (await self.tools.call(call("gather_user_details", arguments), visit)).content

    async def ask(self, visit: Visit, question: str) -> str:
        return (await self.tools.call(call("inform_unknown", {"question": question}), visit)).content

    async def alerts(self) -> list[str]:
        later = datetime.now(UTC) + timedelta(hours=1)
        return [alert.text for alert in await self.store.claim_due_alerts(100, later)]


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[House]:
    store = Store.open(f"sqlite:///{folder / 'replica.sqlite3'}")
    try:
        yield House(store, toolkit(Outbox(store, ())))
    finally:
        await store.close()


def call(name: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall("call-1", name, json.dumps(arguments))


def visit(message: str, *before: Turn) -> Visit:
    return Visit("conversation-1", Conversation(before), message)


def turn(message: str, *results: tuple[str, str], text: str = "Well.") -> Turn:
    """A past turn in which tools, named by the first of each pair, answered the second."""
    calls = tuple(ToolCall(f"call-{at}", name, "{}") for at, (name, _) in enumerate(results))
    answers = tuple(ToolResult(f"call-{at}", content) for at, (_, content) in enumerate(results))
    steps = (Step(Reply(calls=calls), answers),) if results else ()
    return Turn(message, (*steps, Step(Reply(text=text))))
