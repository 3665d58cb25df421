"""A reply as a provider sends it: chunk by chunk, each provider in its own way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from agent.conversation import Finish, Reply, ToolCall, Usage
from agent.hidden import Curtain, take_apart


class ProviderFault(Exception):
    """The provider sent an error where a reply should stand. The message holds nothing that it wrote."""


class Reading:
    """A reply as its chunks arrive. A call is recognised by its presence when the stream has ended."""

    def __init__(self) -> None:
        self.finish: str | None = None
        self._raw: list[str] = []
        self._curtain = Curtain()
        self.shown = False
        """Some of the text was let through."""
        self._reasoning: list[str] = []
        self._calls: list[_CallInPieces] = []
        self._usage: Usage | None = None

    @property
    def empty(self) -> bool:
        """Neither text nor a call has arrived."""
        return not self._calls and not any(self._raw)

    def take(self, chunk: Any) -> str:
        """Adds a chunk and returns the text in it that may be shown."""
        if usage := getattr(chunk, "usage", None):
            self._usage = _read_usage(usage)
        choices = getattr(chunk, "choices", None)
        if choices is None:
            raise ProviderFault(_say_error_body(chunk))
        if not choices:
            return ""
        choice = choices[0]
        whole = getattr(choice, "message", None)
        self.finish = getattr(choice, "finish_reason", None) or self.finish or ("stop" if whole else None)
        delta = whole or getattr(choice, "delta", None)
        if delta is None:
            return ""
        thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        if isinstance(thought, str):
            self._reasoning.append(thought)
        for piece in getattr(delta, "tool_calls", None) or ():
            self._take_call(piece, new=whole is not None)
        text = getattr(delta, "content", None)
        return self.take_text(text) if isinstance(text, str) else ""

    def take_text(self, text: str) -> str:
        """Adds text that did not come in a chunk, or the text of one."""
        self._raw.append(text)
        shown = self._curtain.let_through(text)
        self.shown = self.shown or bool(shown.strip())
        return shown

    def reply(self) -> Reply:
        """What has arrived. A stream without a finish reason was cut, and its last call may be half a call."""
        written = take_apart("".join(self._raw))
        cut = self.finish is None
        calls = [call.call() for call in self._calls] or [ToolCall("", *call) for call in written.calls]
        kept = () if cut and written.text else _with_unique_ids(calls)
        finish: Finish = "cut" if cut and not kept else _finish(self.finish)
        thoughts = "".join(self._reasoning) or written.thoughts
        return Reply(written.text, kept, finish, self._usage, thoughts)

    def _take_call(self, piece: Any, *, new: bool) -> None:
        index, call_id = getattr(piece, "index", None), getattr(piece, "id", None) or ""
        call = None if new else self._find_call(index, call_id)
        if call is None:
            call = _CallInPieces(index)
            self._calls.append(call)
        call.take(piece, call_id)

    def _find_call(self, index: int | None, call_id: str) -> _CallInPieces | None:
        """The call that a piece belongs to. Without an index a new id begins a new call; with one, too,
        since some providers give every call the index 0."""
        last = self._calls[-1] if self._calls else None
        if index is None:
            return None if call_id and last and last.id != call_id else last
        for call in reversed(self._calls):
            if call.index == index:
                return None if call_id and call.id and call.id != call_id else call
        return None


class _CallInPieces:
    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self._name = ""
        self._arguments: list[str] = []
        self._extra: dict[str, Any] = {}

    def take(self, piece: Any, call_id: str) -> None:
        self.id = self.id or call_id
        function = getattr(piece, "function", None)
        self._name = self._name or getattr(function, "name", None) or ""
        arguments = getattr(function, "arguments", None)
        if arguments is not None:
            self._arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))
        self._extra |= getattr(piece, "model_extra", None) or {}

    def call(self) -> ToolCall:
        return ToolCall(self.id, self._name, "".join(self._arguments), tuple(self._extra.items()))


def _with_unique_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    taken: set[str] = set()
    unique: list[ToolCall] = []
    for number, call in enumerate(calls):
        call_id = call.id
        while not call_id or call_id in taken:
            call_id = f"{call.id or 'call'}_{number}_{len(taken)}"
        taken.add(call_id)
        unique.append(ToolCall(call_id, call.name, call.arguments, call.extra))
    return tuple(unique)


def _finish(reason: str | None) -> Finish:
    return reason if reason in ("stop", "length", "content_filter", "tool_calls") else "stop"


def _read_usage(usage: Any) -> Usage:
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        prompt=getattr(usage, "prompt_tokens", None) or 0,
        cached=getattr(details, "cached_tokens", None) or 0,
        completion=getattr(usage, "completion_tokens", None) or 0,
    )


def _say_error_body(chunk: Any) -> str:
    extra: dict[str, Any] = getattr(chunk, "model_extra", None) or {}
    error = extra.get("error")
    code = cast(dict[str, Any], error).get("code") if isinstance(error, dict) else None
    return f"the provider sent an error (code {code!r}) instead of a reply"
