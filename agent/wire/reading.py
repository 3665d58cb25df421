"""A reply as a provider sends it: chunk by chunk, each provider in its own way."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import Any, cast

from agent.conversation import Finish, Reply, ToolCall, Usage, mended
from agent.wire.arguments import read_arguments
from agent.wire.hidden import Curtain
from agent.wire.loose_json import dumps, loads
from agent.wire.usage import read_usage
from agent.wire.written_calls import UNREADABLE

MAX_ID_CHARS = 64

_FIELDS_OF_A_CALL = ("index", "id", "type", "function")
"""What the format knows of a call; the rest is the provider's own."""
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Where providers put them. The first two are sent back, under the name that they came with."""
_SAYS = ("tool_calls", "function_call", *_THOUGHTS)
_FINISHES: dict[str, Finish] = {
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens"), "length"),
    **dict.fromkeys(("content_filter", "safety", "recitation", "prohibited_content", "refusal"), "content_filter"),
    **dict.fromkeys(("tool_calls", "function_call", "tool_use"), "tool_calls"),
}


class ProviderFault(Exception):
    """The provider sent an error where a reply should stand. The message holds nothing that it wrote."""

    def __init__(self, error: Any) -> None:
        self.body: dict[str, Any] = _object(error)
        code = str(self.body.get("code"))
        self.status_code = int(code) if re.fullmatch(r"[45]\d\d", code) else 502
        """As the provider would have answered if it had not begun with a 200."""
        super().__init__(f"the provider sent an error (code {self.status_code}) instead of a reply")


class Reading:
    """A reply as its chunks arrive. A call is recognised by its presence when the stream has ended.

    Args:
        tools: names of the tools that the model knows of, and of their fields.
        may_call: it may call them now. What it calls all the same is neither shown nor run.
    """

    def __init__(self, tools: Mapping[str, Sequence[str]] | None = None, *, may_call: bool = True) -> None:
        self.finish: str | None = None
        self.shown = False
        """Some of the text was let through."""
        self.empty = True
        """Neither text nor a call has arrived."""
        self._tools = tools or {}
        self._may_call = may_call
        self._curtain = Curtain(self._tools)
        self._half = ""
        """The first half of a surrogate pair, when the second is still to come."""
        self._has_text = False
        self._came, self._seen = 0, 0
        """Pieces that said something; and those that `grows` has told of."""
        self._in_deltas = False
        self._thoughts: list[str] = []
        self._thoughts_field = ""
        self._calls: list[_CallInPieces] = []
        self._usage: Usage | None = None

    def take(self, chunk: Any) -> str:
        """Adds a chunk, as decoded JSON, and returns the text in it that may be shown.

        Raises:
            ProviderFault: it is an error.
        """
        fields = _object(chunk)
        if fields.get("error"):
            raise ProviderFault(fields["error"])
        if usage := fields.get("usage"):
            self._usage = read_usage(usage) or self._usage
        choice = _first_choice(fields.get("choices"))
        finish = choice.get("finish_reason")
        if finish == "error" or choice.get("error"):
            raise ProviderFault(choice.get("error"))
        whole = _object(choice.get("message"))
        if isinstance(finish, str) and finish:
            self.finish = finish
        elif whole:
            self.finish = self.finish or "stop"
        delta = _object(choice.get("delta"))
        if delta.get("content") or any([delta.get(name) for name in _SAYS]):
            self._in_deltas = True
            return self._take_delta(delta, whole=False)
        return self._take_delta(self._news_in(whole), whole=True) if whole else ""

    def grows(self) -> bool:
        """Something has come since it was asked last, though it was not shown."""
        before, self._seen = self._seen, self._came
        return self._came > before

    def take_text(self, text: str) -> str:
        """Adds text that did not come in a chunk, or the text of one."""
        if not text:
            return ""
        self.empty, self._has_text = False, True
        text = self._half + text
        self._half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        shown = self._curtain.let_through(mended(text[:-1] if self._half else text))
        self.shown = self.shown or bool(shown.strip())
        return shown

    def reply(self) -> Reply:
        """What has arrived. A stream without a finish reason was cut, and its last call may be half a call."""
        self._curtain.let_through(mended(self._half))
        written = self._curtain.written()
        cut = self.finish is None
        native = [call.call(self._tools) for call in self._calls]
        readable = [call for call in written.calls if not (native and call[0] == UNREADABLE)]
        calls = native or [ToolCall("", mended(name), _arguments(text, self._tools, name)) for name, text in readable]
        kept = _with_unique_ids(calls) if self._may_call and not (cut and written.text) else ()
        finish: Finish = "cut" if cut and not kept else _FINISHES.get((self.finish or "").lower(), "stop")
        thoughts = mended("".join(self._thoughts))
        extra = ((self._thoughts_field, thoughts),) if self._thoughts_field in _THOUGHTS[:2] and thoughts else ()
        return Reply(
            written.text,
            kept,
            finish,
            self._usage,
            "\n".join(part for part in (thoughts, written.thoughts) if part),
            extra,
        )

    def _take_delta(self, delta: dict[str, Any], *, whole: bool) -> str:
        self._came += 1
        for name in _THOUGHTS:
            if name in delta and (thought := _text_of(delta[name])):
                self._thoughts.append(thought)
                self._thoughts_field = name
                break
        if "tool_calls" in delta or "function_call" in delta:
            for piece in _call_pieces(delta):
                self.empty = False
                self._take_call(piece, new=whole)
        return self.take_text(_text_of(delta.get("content")))

    def _news_in(self, message: dict[str, Any]) -> dict[str, Any]:
        """A whole message without what deltas have told: some providers end a stream with all of it once more."""
        if not self._in_deltas:
            return message
        told = {"content": self._has_text, "tool_calls": self._calls, **dict.fromkeys(_THOUGHTS, self._thoughts)}
        return {name: value for name, value in message.items() if not told.get(name)}

    def _take_call(self, piece: dict[str, Any], *, new: bool) -> None:
        index, call_id = piece.get("index"), _word(piece.get("id"))
        call = None if new else self._find_call(index, call_id)
        if call is None:
            call = _CallInPieces(index)
            self._calls.append(call)
        call.take(piece, call_id)

    def _find_call(self, index: Any, call_id: str) -> _CallInPieces | None:
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
    def __init__(self, index: Any) -> None:
        self.index = index
        self.id = ""
        self._name = ""
        self._arguments: list[str] = []
        self._extra: dict[str, Any] = {}

    def take(self, piece: dict[str, Any], call_id: str) -> None:
        self.id = self.id or call_id
        function = _object(piece.get("function"))
        self._name = self._name or _word(function.get("name"))
        arguments = function.get("arguments")
        if arguments is not None:
            self._arguments.append(arguments if isinstance(arguments, str) else _dumped(arguments))
        self._extra |= {name: value for name, value in piece.items() if name not in _FIELDS_OF_A_CALL}

    def call(self, tools: Mapping[str, Sequence[str]]) -> ToolCall:
        name = mended(self._name)
        arguments = _arguments("".join(self._arguments), tools, name)
        return ToolCall(mended(self.id), name, arguments, tuple(_sendable(self._extra).items()))


def _arguments(text: str, tools: Mapping[str, Sequence[str]], name: str) -> str:
    """Arguments as a JSON object, where they can be read as one; a plain one stays as it was written."""
    text = mended(text)
    try:
        value = read_arguments(text, tools.get(name, ()))
        return text if _is_plain(text, value) else dumps(value)
    except ValueError:
        return text


def _is_plain(text: str, value: dict[str, Any]) -> bool:
    try:
        return "\\u" not in text and json.loads(text) == value
    except ValueError:
        return False


def _with_unique_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    taken: set[str] = set()
    unique: list[ToolCall] = []
    for call in calls:
        # Nine letters and digits: some providers take no other ids.
        made_up = (f"call{number:05d}" for number in count(1))
        call_id = next(name for name in chain([call.id], made_up) if _is_id(name) and name not in taken)
        taken.add(call_id)
        unique.append(ToolCall(call_id, call.name, call.arguments, call.extra))
    return tuple(unique)


def _is_id(text: str) -> bool:
    return 0 < len(text) <= MAX_ID_CHARS and text.isascii() and text.isprintable() and " " not in text


def _first_choice(choices: Any) -> dict[str, Any]:
    """The one that is shown, where several were sent; an empty one where there is none."""
    for each in cast(list[Any], choices) if isinstance(choices, list) else ():
        choice = _object(each)
        if choice and choice.get("index") in (0, None, "0"):
            return choice
    return {}


def _call_pieces(delta: dict[str, Any]) -> list[dict[str, Any]]:
    pieces: Any = delta.get("tool_calls")
    if isinstance(pieces, dict):
        pieces = [pieces]
    if not pieces and isinstance(delta.get("function_call"), dict):
        pieces = [{"function": delta["function_call"]}]  # as the format was before it had tools
    return [_object(piece) for piece in cast(list[Any], pieces) if _object(piece)] if isinstance(pieces, list) else []


def _text_of(content: Any) -> str:
    """Text as it is, or the texts in a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_text_of_part(part) for part in cast(list[Any], content))
    return _text_of_part(content)


def _text_of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    fields = _object(part)
    text = fields.get("text") if fields.get("type", "text") in ("text", "output_text") else None
    return text if isinstance(text, str) else ""


def _sendable(extra: dict[str, Any]) -> dict[str, Any]:
    """The same as the next request can hold it; nothing where it cannot."""
    try:
        return cast(dict[str, Any], loads(dumps(extra))) if extra else {}
    except ValueError:
        return {}


def _dumped(value: Any) -> str:
    try:
        return dumps(value)
    except ValueError:
        return ""


def _word(value: Any) -> str:
    """A name or an id; numbers are taken as they are written."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _object(value: Any) -> dict[str, Any]:
    """A JSON object; an empty one where a provider sends something else."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
