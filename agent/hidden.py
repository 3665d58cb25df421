"""What a model writes into its text and a visitor must not read: thoughts, and calls written as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

PAIRS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<tool_call>": "</tool_call>",
    "<tool_calls>": "</tool_calls>",
    "<function_call>": "</function_call>",
    "[TOOL_CALLS]": "[/TOOL_CALLS]",
}
"""What opens a hidden part, and what ends it; without an end it runs to the end of the text."""
THOUGHTS = ("<think>", "<thinking>")
LONGEST = max(len(opening) for opening in PAIRS)

_OPENING = re.compile("|".join(re.escape(opening) for opening in PAIRS))
_FENCED = ("json", "tool_call", "tool_code", "tool", "")
_FENCE = re.compile(r"```[ \t]*(?:json|tool_call|tool_code|tool)?[ \t]*\n?(.*?)(?:```\s*)?\Z", re.DOTALL)
_FENCE_BEGUN = re.compile(r"(`{1,3})[ \t]*([a-z_]*)[ \t]*(\n?)")
_KEY_BEGUN = re.compile(r'[{\[\s]*("[^"]{0,12})?')
_FIRST_KEY = re.compile(r'[{\[\s]*"([^"]*)"')
_CALL_KEYS = ("name", "function", "tool", "tool_name", "tool_calls", "type", "id", "arguments", "parameters")


@dataclass(frozen=True, slots=True)
class Written:
    """A whole text, taken apart."""

    text: str
    """What the visitor may read."""
    thoughts: str
    calls: tuple[tuple[str, str], ...]
    """Names and arguments (JSON text) of the calls that were written as text."""


def take_apart(raw: str) -> Written:
    """A finished text. A call is taken out of it wherever tags mark one, or where it is all there is."""
    if (whole := _whole_call(raw)) is not None:
        return Written("", "", whole)
    text, thoughts = "", ""
    calls: list[tuple[str, str]] = []
    for opening, part in _parts(raw):
        if not opening:
            text += part
        elif opening in THOUGHTS:
            thoughts += part
        else:
            calls += _calls_in(part) or []
    return Written(text.strip() if text != raw else raw, thoughts.strip(), tuple(calls))


class Curtain:
    """Lets through what may be shown of a text that is still being written."""

    def __init__(self) -> None:
        self._raw = ""
        self._position = 0
        self._closing = ""
        """What ends the hidden part that the text is in; empty outside of one."""
        self._plain = False
        """The text has begun as text: it is not one single call any more."""

    def let_through(self, piece: str) -> str:
        """Adds a piece. Returns what can be shown now."""
        self._raw += piece
        self._plain = self._plain or not _may_be_one_call(self._raw)
        shown = ""
        while self._plain:
            if self._closing:
                end = self._raw.find(self._closing, self._position)
                if end < 0:
                    break
                self._position, self._closing = end + len(self._closing), ""
            elif found := _OPENING.search(self._raw, self._position):
                shown += self._raw[self._position : found.start()]
                self._position, self._closing = found.end(), PAIRS[found.group()]
            else:
                end = len(self._raw) - _opening_so_far(self._raw[self._position :])
                shown += self._raw[self._position : end]
                self._position = end
                break
        return shown


def _parts(raw: str) -> Iterator[tuple[str, str]]:
    position = 0
    while found := _OPENING.search(raw, position):
        yield "", raw[position : found.start()]
        closing = PAIRS[found.group()]
        end = raw.find(closing, found.end())
        yield found.group(), raw[found.end() : end if end >= 0 else len(raw)]
        position = end + len(closing) if end >= 0 else len(raw)
    yield "", raw[position:]


def _whole_call(raw: str) -> tuple[tuple[str, str], ...] | None:
    text = raw.strip()
    if fence := _FENCE.match(text):
        text = fence.group(1).strip()
    if not text.startswith(("{", "[{")):
        return None
    calls = _calls_in(text)
    return tuple(calls) if calls else None


def _calls_in(text: str) -> list[tuple[str, str]] | None:
    """The calls that a piece of JSON describes; None when it describes none."""
    try:
        value: Any = json.loads(text.strip())
    except (ValueError, RecursionError):
        return None
    calls: list[tuple[str, str]] = []
    for item in cast(list[Any], value) if isinstance(value, list) else [value]:
        if not isinstance(item, dict):
            return None
        found = _call_of(cast(dict[str, Any], item))
        if not found:
            return None
        calls += found
    return calls


def _call_of(item: dict[str, Any]) -> list[tuple[str, str]]:
    if isinstance(item.get("tool_calls"), list):
        inner = cast(list[Any], item["tool_calls"])
        return [call for each in inner if isinstance(each, dict) for call in _call_of(cast(dict[str, Any], each))]
    if isinstance(item.get("function"), dict):
        item = cast(dict[str, Any], item["function"])
    name = item.get("name") or item.get("tool") or item.get("tool_name") or item.get("function")
    arguments = item.get("arguments", item.get("parameters"))
    if not isinstance(name, str) or arguments is None:
        return []
    return [(name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False))]


def _may_be_one_call(raw: str) -> bool:
    text = raw.lstrip()
    if fence := _FENCE_BEGUN.match(text):
        ticks, language, line_end = fence.groups()
        text = text[fence.end() :].lstrip()
        if not text and not line_end:
            return any(name.startswith(language) for name in _FENCED)
        if len(ticks) < 3 or language not in _FENCED:
            return False
    if not text:
        return True
    if text[0] not in "{[":
        return False
    key = _FIRST_KEY.match(text)
    return key.group(1) in _CALL_KEYS if key else bool(_KEY_BEGUN.fullmatch(text))


def _opening_so_far(raw: str) -> int:
    """How many characters at the end may yet become an opening."""
    tail = raw[-LONGEST:]
    for start in range(len(tail)):
        if tail[start] in "<[" and any(opening.startswith(tail[start:]) for opening in PAIRS):
            return len(tail) - start
    return 0
