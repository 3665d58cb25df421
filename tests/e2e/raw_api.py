"""Gradio's HTTP API without a client: posts whatever a stranger might."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx


class RawApi:
    """One session, which the caller names."""

    def __init__(self, client: httpx.AsyncClient, functions: dict[str, int]) -> None:
        self.client = client
        self.functions = functions
        self.session = secrets.token_hex(8)

    async def post(self, name: str, data: Any, **fields: Any) -> str:
        """Calls an event or endpoint by its name. Gives all that comes back, as text: the events, or the refusal."""
        session = fields.get("session_hash", self.session)
        body = {"fn_index": self.functions[name], "data": data, "session_hash": session} | fields
        # Escaped, so that halves of surrogate pairs travel too.
        joined = await self.client.post("/gradio_api/queue/join", content=json.dumps(body))
        if not joined.is_success:
            return f"{joined.status_code} {joined.text}"
        seen: list[str] = []
        async with self.client.stream("GET", "/gradio_api/queue/data", params={"session_hash": str(session)}) as stream:
            async for line in stream.aiter_lines():
                seen.append(line)
                if any(end in line for end in ("process_completed", "close_stream", "unexpected_error")):
                    break
        return "\n".join(seen)

    async def said(self, message: Any, **fields: Any) -> str:
        """The last text of an answer through `/chat`; all that came back, where it is no answer."""
        return last_output(await self.post("chat", [message], **fields))


def last_output(events: str) -> str:
    for line in reversed(events.splitlines()):
        if "process_completed" not in line:
            continue
        event = json.loads(line.removeprefix("data: "))
        data: list[Any] = event["output"].get("data") or [events]
        return str(data[0])
    return events


@asynccontextmanager
async def raw_api(url: str, headers: Mapping[str, str] | None = None) -> AsyncGenerator[RawApi]:
    sent = {"Content-Type": "application/json", **(headers or {})}
    async with httpx.AsyncClient(base_url=url, timeout=60, headers=sent) as client:
        config = (await client.get("/config")).raise_for_status().json()
        functions = {fn["api_name"]: fn["id"] for fn in config["dependencies"] if fn["api_name"]}
        yield RawApi(client, functions)
