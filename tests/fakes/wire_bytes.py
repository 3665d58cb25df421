"""Response bodies byte by byte, the worst of them by name."""

from __future__ import annotations

import json
from typing import Any

from agent.contract import ChatModel
from agent.conversation import Reply
from tests.fakes.hands import Hands
from tests.fakes.provider import Answer, delta

ASKED = [{"role": "system", "content": "You are Ada."}, {"role": "user", "content": "Hi"}]


async def read(model: ChatModel, choice: Any = "auto") -> Reply:
    pieces = [piece async for piece in model.stream(ASKED, Hands().toolkit.schemas, choice)]
    assert isinstance(pieces[-1], Reply)
    return pieces[-1]


def stream(*payloads: str | bytes) -> Answer:
    """A body, byte by byte as given."""
    return Answer(raw=b"".join(p if isinstance(p, bytes) else p.encode() for p in payloads), done=False)


def event(chunk: Any) -> str:
    return f"data: {json.dumps(chunk)}\n\n"


HELLO = event(delta(content="Hello."))
STOP = event(delta(finish="stop"))
BODY = json.dumps({"choices": [{"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}]})


BROKEN = {
    "not UTF-8": stream(b'data: {"choices": [{"delta": {"content": "caf\xe9"}}]}\n\n', STOP),
    "a page": stream("<html><body>502 Bad Gateway</body></html>"),
    "half a chunk": stream('data: {"choices": [{"delta": {"con\n\n'),
    "half a body": stream(BODY[:40]),
    "nothing": stream(""),
    "a comment": stream(": ping\n\n"),
    "a body without anything": Answer(body={"choices": None}),
    "an error in the stream": stream(event({"error": {"code": 503, "message": "overloaded"}})),
    "an error in a choice": stream(
        event({"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 502}}]})
    ),
    "an error in words": stream(event({"error": "overloaded"})),
    "thoughts, then nothing": stream(event(delta(reasoning_content="Hm"))),
    "half a thought": stream(event(delta(content="<think>Hm"))),
    "nested too deep": stream("data: " + '{"choices":' + "[" * 100_000 + "]" * 100_000 + "}\n\n"),
    "a number beyond all": stream('data: {"choices": [{"index": ' + "9" * 5000 + "}]}\n\n"),
}
