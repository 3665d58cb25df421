"""A provider that streams a call of gather_user_details, and after its result an answer of 60 tokens.

Its chunks are as OpenAI sends them. Between two of them it waits, so that each arrives by itself, as tokens do.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bench.turn_task import ANSWER, ARGUMENTS, NAME, PERSONA

CALL_ID = "call_u5VEhQJ0dOnAd3vLzP0b8GfT"
ARGUMENTS_PIECE_CHARS = 5
"""About a token."""
KEEP_ALIVE_S = 600


def call_chunks() -> list[bytes]:
    arguments = json.dumps(ARGUMENTS)
    cuts = range(0, len(arguments), ARGUMENTS_PIECE_CHARS)
    begun: dict[str, Any] = {
        "index": 0, "id": CALL_ID, "type": "function", "function": {"name": NAME, "arguments": ""}
    }  # fmt: skip
    pieces = [{"index": 0, "function": {"arguments": arguments[cut : cut + ARGUMENTS_PIECE_CHARS]}} for cut in cuts]
    first = {"role": "assistant", "content": None, "tool_calls": [begun], "refusal": None}
    return ended([first, *({"tool_calls": [piece]} for piece in pieces)], "tool_calls")


def answer_chunks() -> list[bytes]:
    first = {"role": "assistant", "content": "", "refusal": None}
    return ended([first, *({"content": token} for token in ANSWER)], "stop")


def ended(deltas: Sequence[dict[str, Any]], finish: str) -> list[bytes]:
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None} for delta in deltas
    ]
    choices.append({"index": 0, "delta": {}, "logprobs": None, "finish_reason": finish})
    usage = {
        "prompt_tokens": 2500,
        "completion_tokens": 62,
        "total_tokens": 2562,
        "prompt_tokens_details": {"cached_tokens": 2048, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }
    return [*(event([choice], None) for choice in choices), event([], usage), b"data: [DONE]\n\n"]


def event(choices: list[dict[str, Any]], usage: dict[str, Any] | None) -> bytes:
    body = {
        "id": "chatcmpl-CtYq0cTn8bGm2Vx1rQ7d3ZkEwP5aH",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "bench-2026-01-01",
        "service_tier": "default",
        "system_fingerprint": "fp_0123456789",
        "choices": choices,
        "usage": usage,
    }
    return f"data: {json.dumps(body)}\n\n".encode()


async def complete(pause_s: float, calling: list[bytes], answering: list[bytes], request: Request) -> Response:
    asked: dict[str, Any] = await request.json()
    messages = asked["messages"]
    if PERSONA.strip() not in str(messages[0]["content"]) or not asked.get("tools"):
        return Response("the persona or the tools are missing", 422)
    last = messages[-1]
    answered = last["role"] == "tool" and last["tool_call_id"] == CALL_ID
    return StreamingResponse(streamed(answering if answered else calling, pause_s), media_type="text/event-stream")


async def streamed(chunks: Sequence[bytes], pause_s: float) -> AsyncGenerator[bytes]:
    if not pause_s:
        yield b"".join(chunks)
        return
    for chunk in chunks:
        await asyncio.sleep(pause_s)
        yield chunk


async def ready(_: Request) -> Response:
    return Response("ready")


def main(port: int, pause_s: float) -> None:
    answer = partial(complete, pause_s, call_chunks(), answer_chunks())
    routes = [Route("/v1/chat/completions", answer, methods=["POST"]), Route("/", ready)]
    uvicorn.run(Starlette(routes=routes), port=port, log_level="warning", timeout_keep_alive=KEEP_ALIVE_S)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
