"""A chat-completions server that answers from a script, over a real socket, and keeps every request it got."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.fakes.wire import faults

Chunk = dict[str, Any]


@dataclass
class Answer:
    """One scripted answer."""

    chunks: Sequence[Chunk] = ()
    status: int = 200
    body: Any = None
    """Sent as JSON instead of a stream."""
    raw: str | bytes = ""
    """Sent as it stands at the end of the stream."""
    done: bool = True
    """End the stream with `[DONE]`; without it the connection just closes."""
    hold: asyncio.Event | None = None
    """Wait for this after the last chunk."""
    wait: asyncio.Event | None = None
    """Wait for this before anything is sent, not even the status."""


def says(text: str, *, finish: str | None = "stop") -> Answer:
    """An answer of text, a word a chunk, with its usage."""
    words = [word + " " for word in text.split(" ")]
    words[-1] = words[-1][:-1]
    chunks = [delta(content=word) for word in words]
    if finish:
        chunks += [delta(finish=finish), {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}]
    return Answer(chunks, done=finish is not None)


def calls(*wanted: tuple[str, str], text: str = "", finish: str = "tool_calls") -> Answer:
    """An answer that calls tools: pairs of name and arguments."""
    chunks = [delta(content=text)] if text else []
    for index, (name, arguments) in enumerate(wanted):
        function = {"name": name, "arguments": arguments}
        chunks.append(delta(tool_calls=[{"index": index, "id": f"c{index}", "type": "function", "function": function}]))
    return Answer([*chunks, delta(finish=finish)])


def delta(finish: str | None = None, **fields: Any) -> Chunk:
    return {
        "id": "x", "object": "chat.completion.chunk", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }  # fmt: skip


@dataclass
class Provider:
    """The server's other side: what it will say, and what it was asked."""

    base_url: str = ""
    script: list[Answer] = field(default_factory=list[Answer])
    answer: Callable[[dict[str, Any]], Answer] | None = None
    """Answers when the script is empty."""
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    refused: list[str] = field(default_factory=list[str])
    """What a strict provider would have found wrong with the requests."""
    now: int = 0
    most: int = 0
    """Answers under way at once: now, and at the most."""

    async def complete(self, request: Request) -> Response:
        asked = await request.json()
        self.requests.append(asked)
        self.refused += faults(asked)
        answer = self.script.pop(0) if self.script else self.answer(asked) if self.answer else says("Hello.")
        if answer.wait:
            await answer.wait.wait()
        if answer.body is not None or answer.status != 200:
            return JSONResponse(answer.body or {"error": {"message": "scripted"}}, answer.status)
        return StreamingResponse(self._stream(answer), media_type="text/event-stream")

    async def _stream(self, answer: Answer) -> AsyncGenerator[str | bytes]:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            for chunk in answer.chunks:
                yield f"data: {json.dumps(chunk)}\n\n"
            if answer.hold:
                await answer.hold.wait()
            if answer.raw:
                yield answer.raw
            if answer.done:
                yield "data: [DONE]\n\n"
        finally:
            self.now -= 1


@asynccontextmanager
async def serving() -> AsyncGenerator[Provider]:
    """A provider on a free port of this machine, in the test's own event loop."""
    provider = Provider()
    app = Starlette(routes=[Route("/v1/chat/completions", provider.complete, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    # A listening socket takes connections before the server does, so nobody has to wait for it.
    listening = socket.create_server(("127.0.0.1", 0))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    provider.base_url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    try:
        yield provider
    finally:
        server.should_exit = server.force_exit = True
        await task
