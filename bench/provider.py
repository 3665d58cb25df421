"""A provider on a schedule: `go 600 k3f9` gets 600 tokens 10 ms apart, the first and the last one marked k3f9."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

PAUSE_S = 0.01
WORDS = "the engine weaves patterns of algebra as the loom weaves flowers and leaves, so it is said; **bold** or not"


def tokens(count: int, mark: str) -> list[str]:
    """Text with a paragraph every 60 words, as replies have."""
    words = WORDS.split()
    middle = [words[n % len(words)] + ("\n\n" if n % 60 == 59 else " ") for n in range(count - 2)]
    return [f"{mark}-first ", *middle, f"{mark}-last"]


async def complete(request: Request) -> Response:
    asked = await request.json()
    last = asked["messages"][-1]["content"]
    text = last if isinstance(last, str) else last[0]["text"]
    if not text.startswith("go "):
        return StreamingResponse(
            streamed(["They talked about the engine."]), media_type="text/event-stream"
        )  # a summary
    _, count, mark = text.split()
    return StreamingResponse(streamed(tokens(int(count), mark)), media_type="text/event-stream")


async def ready(_: Request) -> Response:
    return Response("ready")


async def streamed(pieces: list[str]) -> AsyncGenerator[str]:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number, piece in enumerate(pieces):
        await asyncio.sleep(max(0.0, began + number * PAUSE_S - loop.time()))
        yield chunk({"content": piece}, None)
    yield chunk({}, "stop")
    yield "data: [DONE]\n\n"


def chunk(delta: dict[str, str], finish: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "bench", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n"


if __name__ == "__main__":
    routes = [Route("/v1/chat/completions", complete, methods=["POST"]), Route("/", ready)]
    uvicorn.run(Starlette(routes=routes), port=int(sys.argv[1]), log_level="warning")
