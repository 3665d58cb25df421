"""Tools that keep what they were called with, and short ways to run a turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from pydantic import Field

from agent.conversation import Conversation, Passage, Turn
from agent.events import Event, TurnFinished
from agent.loop import Replica, respond
from agent.toolkit import Arguments, Tool, Toolkit, Visit


class Note(Arguments):
    """Writes something down."""

    text: str = Field(description="What to write down.")


class Hands:
    """Tools that keep what they were called with."""

    def __init__(self, note: str = "ok") -> None:
        self.note = note
        """What the first tool answers."""
        self.noted: list[str] = []
        self.started = asyncio.Event()
        self.toolkit = Toolkit(
            Tool("note", Note, self._note, "Writing…", "Written down"),
            Tool("burn", Note, self._burn, "Burning…", "Burnt"),
            Tool("wait", Note, self._wait, "Waiting…", "Waited"),
            timeout_s=0.2,
        )

    async def _note(self, arguments: Note, visit: Visit) -> str:
        self.noted.append(arguments.text)
        return self.note

    async def _burn(self, arguments: Note, visit: Visit) -> str:
        raise RuntimeError("the token is 12345:secret")

    async def _wait(self, arguments: Note, visit: Visit) -> str:
        self.started.set()
        await asyncio.Event().wait()
        return "ok"


async def all_of(events: AsyncGenerator[Event]) -> list[Event]:
    return [event async for event in events]


async def turn_of(
    replica: Replica,
    message: str = "Hi",
    conversation: Conversation | None = None,
    found: tuple[Passage, ...] = (),
) -> Turn:
    events = await all_of(respond(replica, conversation or Conversation(), message, found=found))
    assert isinstance(events[-1], TurnFinished)
    return events[-1].turn
