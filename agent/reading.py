"""A reply as a provider sends it: chunk by chunk, each provider in its own way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain, count
from typing import Any, cast

from agent.conversation import Finish, Reply, ToolCall, Usage, mended
from agent.hidden import Curtain, take_apart

_FIELDS_OF_A_CALL = ("index", "id", "type", "function")
"""What the format knows of a call; the rest is the provider's own."""


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
        """Adds a chunk, as decoded JSON, and returns the text in it that may be shown."""
        fields = _object(chunk)
        if usage := _object(fields.get("usage")):
            self._usage = _read_usage(usage)
        choices: Any = fields.get("choices")
        if not isinstance(choices, list):
            raise ProviderFault(_say_error_body(fields))
        if not choices:
            return ""
        choice = _object(choices[0])
        whole = choice.get("message")
        self.finish = choice.get("finish_reason") or self.finish or (None if whole is None else "stop")
        delta = _object(whole or choice.get("delta"))
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str):
            self._reasoning.append(thought)
        for piece in delta.get("tool_calls") or ():
            self._take_call(_object(piece), new=whole is not None)
        text = delta.get("content")
        return self.take_text(text) if isinstance(text, str) else ""

    def take_text(self, text: str) -> str:
        """Adds text that did not come in a chunk, or the text of one."""
        text = mended(text)
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

    def _take_call(self, piece: dict[str, Any], *, new: bool) -> None:
        index, call_id = piece.get("index"), piece.get("id") or ""
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

    def take(self, piece: dict[str, Any], call_id: str) -> None:
        self.id = self.id or call_id
        function = _object(piece.get("function"))
        self._name = self._name or function.get("name") or ""
        arguments = function.get("arguments")
        if arguments is not None:
            self._arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))
        self._extra |= {name: value for name, value in piece.items() if name not in _FIELDS_OF_A_CALL}

    def call(self) -> ToolCall:
        return ToolCall(self.id, self._name, "".join(self._arguments), tuple(self._extra.items()))


def _with_unique_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    taken: set[str] = set()
    unique: list[ToolCall] = []
    for call in calls:
        made_up = (f"{call.id or 'call'}_{number}" for number in count(1))
        call_id = next(name for name in chain([call.id], made_up) if name and name not in taken)
        taken.add(call_id)
        unique.append(ToolCall(call_id, call.name, call.arguments, call.extra))
    return tuple(unique)


def _finish(reason: str | None) -> Finish:
    return reason if reason in ("stop", "length", "content_filter", "tool_calls") else "stop"


def _read_usage(usage: dict[str, Any]) -> Usage:
    return Usage(
        prompt=usage.get("prompt_tokens") or 0,
        cached=_object(usage.get("prompt_tokens_details")).get("cached_tokens") or 0,
        completion=usage.get("completion_tokens") or 0,
    )


def _say_error_body(fields: dict[str, Any]) -> str:
    return f"the provider sent an error (code {_object(fields.get('error')).get('code')!r}) instead of a reply"


def _object(value: Any) -> dict[str, Any]:
    """A JSON object; an empty one where a provider sends something else."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
