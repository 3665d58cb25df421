"""Everything that llmock can break, sorted by what a visitor gets to see of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.e2e.crowd import Ending

VISITORS = 20
TIMEOUT_S = 2.5
LATE_S = 3.5
"""Beyond the time-out, but not by so much that llmock still sleeps when its requests are read."""

ANSWER = "The engine weaves algebraic patterns, as the Jacquard loom weaves flowers and leaves."
SORRY = re.compile(r"Sorry, I could not answer just now\. [A-Z][^<>{}]+\. \(Reference [0-9a-f]{8}\)")

ALWAYS: dict[str, Any] = {"times": None}
ANSWERS = {"type": "reply", "text": ANSWER, **ALWAYS}


def fails(status: int, **more: Any) -> dict[str, Any]:
    return {"type": "fail", "status": status, "message": "refused: sk-e2e-KeyThatMustNotShowAnywhere", **ALWAYS, **more}


def breaks(kind: str, after_chunks: int, **more: Any) -> dict[str, Any]:
    return {"type": "stream_fault", "kind": kind, "after_chunks": after_chunks, **ALWAYS, **more}


def tool_fault(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_fault", "kind": kind, **ALWAYS, **more}


NO_WORD: dict[str, list[dict[str, Any]]] = {
    "429 for a moment": [fails(429, retry_after=0.1)],
    "5xx in turn": [fails(status, times=15) for status in (500, 502, 503, 529)],
    "4xx in turn": [fails(status, times=5) for status in (401, 402, 403, 404)],
    "disconnect": [breaks("disconnect", 0)],
    "disconnect before a word": [breaks("disconnect", 1)],
    "truncate": [breaks("truncate", 0)],
    "truncate before a word": [breaks("truncate", 1)],
    "malformed": [breaks("malformed", 0)],
    "malformed before a word": [breaks("malformed", 1)],
}
"""Nothing can be shown, and the provider says so in time."""

TOO_LONG: dict[str, list[dict[str, Any]]] = {"400 for the length": [fails(400, code="context_length_exceeded")]}
"""Whatever is left out, the provider cannot read it."""

SILENT: dict[str, list[dict[str, Any]]] = {
    "429 for half a minute": [fails(429, retry_after=30)],
    "delay": [{"type": "delay", "seconds": LATE_S, **ALWAYS}],
    "slow first token": [{"type": "slow_first_token", "seconds": LATE_S, **ALWAYS}],
    "stall before a word": [breaks("stall", 1, stall_seconds=LATE_S)],
}
"""Nothing comes until the time is over."""

BLANK = {"type": "reply", "text": "", **ALWAYS}
CALLS_ONLY: dict[str, list[dict[str, Any]]] = {
    "malformed arguments": [BLANK, tool_fault("malformed_arguments")],
    "unknown tool": [BLANK, tool_fault("unknown_tool")],
    "blank": [BLANK],
}
"""Whole replies without a word: calls alone, even where none is allowed, or nothing at all."""

BROKEN: dict[str, list[dict[str, Any]]] = {
    "disconnect": [breaks("disconnect", 4)],
    "truncate": [breaks("truncate", 4)],
    "malformed": [breaks("malformed", 4)],
    "stall": [breaks("stall", 4, stall_seconds=LATE_S)],
}
"""The stream breaks after some words."""

PASSING: dict[str, list[dict[str, Any]]] = {
    "429 once": [fails(429, retry_after=0.1, times=VISITORS // 2)],
    "503 once": [fails(503, times=VISITORS // 2)],
    "delay": [{"type": "delay", "seconds": 0.3, **ALWAYS}],
    "slow first token": [{"type": "slow_first_token", "seconds": 0.3, **ALWAYS}],
    "stall": [breaks("stall", 4, stall_seconds=0.3)],
    "malformed arguments": [tool_fault("malformed_arguments", times=VISITORS // 2)],
    "unknown tool": [tool_fault("unknown_tool", times=VISITORS // 2)],
}
"""What a visitor should not notice."""


def rounds(*groups: dict[str, list[dict[str, Any]]]) -> list[Any]:
    return [pytest.param(behaviours, id=name) for group in groups for name, behaviours in group.items()]


def is_apology(ending: Ending) -> bool:
    return ending.state == "failed" and SORRY.fullmatch(ending.text) is not None


def is_beginning(ending: Ending) -> bool:
    """The answer as far as it came, marked as such."""
    return ending.state == "broken" and 0 < len(ending.text) < len(ANSWER) and ANSWER.startswith(ending.text)


def is_answer(ending: Ending) -> bool:
    return (ending.state, ending.text) == ("done", ANSWER)
