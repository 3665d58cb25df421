"""What a model writes into its text and a visitor must not read: thoughts, and calls written as text.

One reader decides piece by piece, and never before the text allows of one reading only: so what is shown
while a text is being written begins what stays of it, however it is cut into pieces.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from agent.wire.loose_json import end_of_value
from agent.wire.written_calls import CALL_KEYS, NAME_KEYS, UNREADABLE, Call, names_a_tool, tagged_calls, untagged_calls

MAX_CHARS = 20_000
"""JSON that is longer is no call: it is not held back any further."""

_END_OF_THOUGHT = re.compile(r"</(?:think|thinking|thought|reasoning)>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_END_OF_MESSAGE = re.compile(r"<\|(?:end|return|call)\|>|(?=<\|(?:start|channel)\|>)")
_NEVER = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class _Part:
    """A hidden part."""

    kind: Literal["thought", "call", "header"]
    end: re.Pattern[str]
    """What ends it; without an end it runs to the end of the text."""
    before: str = ""
    """What of its opening belongs to it."""


def _until(*closings: str) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(closing) for closing in closings), re.IGNORECASE)


_THOUGHT = _Part("thought", _END_OF_THOUGHT)
_HEADER = _Part("header", _until("<|message|>"))
_PARTS = {
    **dict.fromkeys(("<think>", "<thinking>", "<thought>", "<reasoning>", "[THINK]", "◁think▷"), _THOUGHT),
    **{
        f"<{name}>": _Part("call", _until(f"</{name}>"))
        for name in ("tool_call", "tool_calls", "function_call", "function_calls")
    },
    "<function=": _Part("call", _until("</function>"), "<function="),
    "<invoke name=": _Part("call", _until("</invoke>"), "<invoke name="),
    "[TOOL_CALLS]": _Part("call", _until("[/TOOL_CALLS]")),
    "<|tool_call|>": _Part("call", _until("<|/tool_call|>", "<tool_call|>")),
    "<|python_tag|>": _Part("call", _until("<|eom_id|>", "<|eot_id|>")),
    "<|tool_calls_section_begin|>": _Part("call", _until("<|tool_calls_section_end|>")),
    "<｜tool▁calls▁begin｜>": _Part("call", _until("<｜tool▁calls▁end｜>")),
    "<|channel|>": _HEADER,
    "<|start|>": _HEADER,
}
_NOISE = (
    "</tool_call>", "</tool_calls>", "</function_calls>", "</function>", "<|message|>", "<|end|>", "<|return|>",
    "<|call|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>",
)  # fmt: skip
"""Marks without a meaning by themselves."""
_ENDS_OF_THOUGHT = ("</think>", "</thinking>", "</thought>", "</reasoning>", "[/THINK]", "◁/think▷")
_MARKS = (*_PARTS, *_NOISE, *_ENDS_OF_THOUGHT)
_LONGEST = max(len(mark) for mark in _MARKS)
_MARK = re.compile(
    "|".join(re.escape(mark) if mark[0] == "[" else f"(?i:{re.escape(mark)})" for mark in sorted(_MARKS, key=len))
)

_TRIGGER = re.compile(r"[<\[{`◁]")
_TOOL_FENCES = ("tool_call", "tool_calls", "tool_code", "tool_use", "tool", "function_call")
_FENCES = ("json", "json5", "jsonc", "javascript", "python", "text", "", *_TOOL_FENCES)
_FENCE = re.compile(r"(`{1,20})[ \t]{0,20}([\w+-]{0,40})(\s{0,200})")
_FENCED_CALL = _Part("call", _until("```"))
_FIRST_KEY = re.compile(r"""[\[\s]{0,200}\{\s{0,200}(["'])(\w{0,20})\1\s{0,200}""")
_KEY_BEGUN = re.compile(r"""[\[\s]{0,200}(?:\{\s{0,200}(?:["']\w{0,20})?)?""")
_FIRST_VALUE = re.compile(r""":\s*(["'])([^"']*)\1""")


@dataclass(frozen=True, slots=True)
class Written:
    """A whole text, taken apart."""

    text: str
    """What the visitor may read."""
    thoughts: str
    calls: tuple[Call, ...]
    """The calls that were written as text."""


def take_apart(raw: str, names: Collection[str] = ()) -> Written:
    """A finished text; see Curtain."""
    curtain = Curtain(names)
    curtain.let_through(raw)
    return curtain.written()


class Curtain:
    """Lets through what may be shown of a text that is still being written.

    Args:
        names: of the tools that were offered. JSON without any mark around it is a call only if it names one.
    """

    def __init__(self, names: Collection[str] = ()) -> None:
        self._names = names
        self._rest = ""
        """What is not decided yet."""
        self._looked = 0
        """So much of it holds no end of what it begins with."""
        self._part: _Part | None = None
        """The hidden part that the text is in."""
        self._in_fence = False
        """A call stood in a fence that has not ended yet."""
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[Call] = []

    def let_through(self, piece: str) -> str:
        """Adds a piece. Returns what can be shown now."""
        if not self._rest and not self._part and not self._in_fence and not _TRIGGER.search(piece):
            self._text.append(piece)
            return piece
        self._rest += piece
        return self._read(last=False)

    def written(self) -> Written:
        """The whole text, when its end has come."""
        self._read(last=True)
        text = "".join(self._text)
        hidden = bool(self._calls or self._thoughts)
        if self._calls and not text.strip(" \t\r\n,;[]"):
            text = ""
        return Written(text.strip() if hidden else text, "".join(self._thoughts).strip(), tuple(self._calls))

    def _read(self, *, last: bool) -> str:
        shown = ""
        while self._rest or (last and self._part):
            step = self._inside(last) if self._part else self._outside(last)
            if step is None:
                break
            shown += step
        return shown

    def _inside(self, last: bool) -> str | None:
        part = self._part
        assert part is not None
        end = part.end.search(self._rest, self._looked)
        if end is None and not last:
            self._looked = max(0, len(self._rest) - _LONGEST)
            return None
        body = self._take(end.start() if end else len(self._rest))
        self._take(end.end() - end.start() if end else 0)
        self._part = None
        if part.kind == "thought":
            self._thoughts.append(body)
        elif part.kind == "call":
            self._calls += tagged_calls(part.before + body)
        elif end:
            self._part = _message(body)
        return ""

    def _outside(self, last: bool) -> str | None:
        if self._in_fence:
            return self._behind_call(last)
        found = _TRIGGER.search(self._rest)
        if found is None or found.start():
            return self._show(found.start() if found else len(self._rest))
        if mark := _MARK.match(self._rest):
            return self._at_mark(mark[0])
        if not last and _may_become_a_mark(self._rest):
            return None
        if self._rest[0] == "`":
            return self._at_fence(last)
        return self._at_json(0, last) if self._rest[0] in "{[" else self._show(1)

    def _at_mark(self, mark: str) -> str:
        key = mark if mark in _PARTS else mark.lower()
        part = _PARTS.get(key)
        ends_thought = _END_OF_THOUGHT.fullmatch(mark) is not None
        if (part is _THOUGHT or ends_thought) and self._text and self._text[-1].endswith("`"):
            return self._show(len(mark))  # spoken of, as code
        self._take(len(mark))
        if ends_thought:
            # The beginning was left out: whatever stands before was thought.
            self._thoughts += self._text
            self._text = []
        self._part = part
        return ""

    def _at_fence(self, last: bool) -> str | None:
        fence = _FENCE.match(self._rest)
        assert fence is not None
        ticks, language, _ = fence.groups()
        open_end = fence.end() == len(self._rest) and not last
        if len(ticks) < 3 or not any(name.startswith(language) for name in _FENCES):
            return None if open_end and len(ticks) < 3 and not language else self._show(len(ticks))
        if open_end:
            return None
        if language in _TOOL_FENCES:
            self._take(fence.end())
            self._part = _FENCED_CALL
            return ""
        if self._rest[fence.end() : fence.end() + 1] in ("{", "["):
            return self._at_json(fence.end(), last)
        return self._show(fence.end())

    def _behind_call(self, last: bool) -> str | None:
        """In a fence, behind a call: the end of the fence, or one more call."""
        self._take(len(self._rest) - len(self._rest.lstrip(" \t\r\n,;")))
        if not last and len(self._rest) < 3 and "```".startswith(self._rest):
            return None
        if self._rest[:1] in ("{", "["):
            return self._at_json(0, last)
        self._in_fence = False
        if self._rest.startswith("```"):
            self._take(3)
        return ""

    def _at_json(self, start: int, last: bool) -> str | None:
        """JSON begins at `start`, behind the beginning of a fence perhaps."""
        looks = self._looks_like_a_call(start)
        if looks is False or (looks is None and last):
            return self._plain(start + 1)
        if looks is None:
            return None
        fresh = self._rest[max(self._looked, start) :]
        end = end_of_value(self._rest, start) if last or "}" in fresh or "]" in fresh else None
        if end is None or end - start > MAX_CHARS:
            return self._without_end(start, last)
        calls = untagged_calls(self._rest[start:end], self._names)
        if calls is None:
            return self._plain(end)
        self._calls += calls
        self._take(end)
        self._in_fence = self._in_fence or start > 0
        return ""

    def _without_end(self, start: int, last: bool) -> str | None:
        if not last and len(self._rest) - start <= MAX_CHARS:
            self._looked = len(self._rest)
            return None
        held = self._rest[: start + MAX_CHARS]
        if not names_a_tool(held, self._names):
            behind = re.search("[<`◁]", held[start:])
            return self._plain(start + behind.start() if behind else len(held))
        self._calls.append((UNREADABLE, held))
        self._take(len(self._rest))
        self._part = None if last else _Part("thought", _NEVER)
        return ""

    def _looks_like_a_call(self, start: int) -> bool | None:
        """None: too little has come to tell."""
        key = _FIRST_KEY.match(self._rest, start)
        if key is None:
            return None if _KEY_BEGUN.fullmatch(self._rest, start) else False
        if key[2] in NAME_KEYS and (value := _FIRST_VALUE.match(self._rest, key.end())):
            return value[2].removeprefix("functions.") in self._names
        return key[2] in CALL_KEYS

    def _plain(self, length: int) -> str:
        self._in_fence = False
        return self._show(length)

    def _show(self, length: int) -> str:
        text = self._take(length)
        self._text.append(text)
        return text

    def _take(self, length: int) -> str:
        taken, self._rest = self._rest[:length], self._rest[length:]
        self._looked = 0
        return taken


def _message(header: str) -> _Part | None:
    """What a message of the channel format is, by its header; None: the answer."""
    if addressed := re.search(r"\bto=(\S+)", header):
        return _Part("call", _END_OF_MESSAGE, addressed[1] + " ")
    return None if "final" in header else _Part("thought", _END_OF_MESSAGE)


def _may_become_a_mark(rest: str) -> bool:
    if len(rest) >= _LONGEST:
        return False
    lower = rest.lower()
    return any(mark.startswith(rest) or (mark[0] != "[" and mark.lower().startswith(lower)) for mark in _MARKS)
