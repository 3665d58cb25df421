"""What was said, as frozen values: a conversation that a provider would refuse cannot be built.

    Conversation > Turn > Step(Reply, results)

Row ids, clocks and the provider's dictionaries live elsewhere; `to_wire` is the one door to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from agent.passages import Passage, footnote, with_passages

WireMessage = dict[str, Any]
"""One message as the chat-completions format has it."""

Finish = Literal["stop", "length", "content_filter", "tool_calls", "cut"]
"""Why a completion ended: the provider's word for it, or `cut` when the stream broke off."""

UNSAID = "…"
"""Stands on the wire for an answer of which the visitor saw nothing: providers refuse an empty one."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants to run."""

    id: str
    """Ties the call to its result; unique within a reply."""
    name: str
    arguments: str
    """JSON text, as the model wrote it; nobody has validated it yet."""
    extra: tuple[tuple[str, Any], ...] = ()
    """Fields that the provider added to the call and wants back unchanged in the same turn."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered."""

    call_id: str
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one completion, as the provider counted them."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """One completion: text, calls, or both."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = "stop"
    usage: Usage | None = None
    reasoning: str = ""
    """The model's thoughts, wherever they stood: never shown."""
    extra: tuple[tuple[str, Any], ...] = ()
    """Fields that the provider wants back in the same turn, its thoughts among them, under its own names for them."""
    sources: tuple[str, ...] = ()
    """Labels of what the text rests on, as the model names it."""


@dataclass(frozen=True, slots=True)
class Step:
    """A reply with the results of all its calls, in the same order.

    Raises:
        ValueError: a call has no result, a result has no call, or two calls share an id.
    """

    reply: Reply
    results: tuple[ToolResult, ...] = ()

    def __post_init__(self) -> None:
        called = [call.id for call in self.reply.calls]
        answered = [result.call_id for result in self.results]
        if called != answered:
            raise ValueError(f"results {answered!r} do not answer the calls {called!r}")
        if len(set(called)) != len(called) or "" in called:
            raise ValueError(f"call ids must be unique and not empty: {called!r}")


@dataclass(frozen=True, slots=True)
class Turn:
    """A visitor's message and everything up to the end of the answer.

    Raises:
        ValueError: the last step still calls a tool, or an earlier one calls none.
    """

    message: str
    steps: tuple[Step, ...]
    aside: str = ""
    """What the owner in person wrote to the visitor afterwards."""
    found: tuple[Passage, ...] = ()
    """Passages that were found for the message, where not all of them are in the persona."""

    def __post_init__(self) -> None:
        if not self.steps or self.steps[-1].reply.calls:
            raise ValueError("a turn ends with a reply that calls no tool")
        if any(not step.reply.calls for step in self.steps[:-1]):
            raise ValueError("only the last reply of a turn calls no tool")

    @property
    def text(self) -> str:
        """What the visitor reads, as Markdown."""
        return join_texts(step.reply.text for step in self.steps)

    @property
    def incomplete(self) -> bool:
        """The answer broke off: the visitor pressed Stop, or the connection was cut."""
        return self.steps[-1].reply.finish == "cut"


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns of one visitor, oldest first."""

    turns: tuple[Turn, ...] = ()
    summary: str = ""
    """Stands for the oldest turns in requests, where they do not all fit."""
    summarised: int = 0
    """So many turns the summary stands for."""

    def and_then(self, turn: Turn) -> Conversation:
        return replace(self, turns=(*self.turns, turn))

    def latest(self, count: int) -> Conversation:
        """With only the last turns in requests."""
        return replace(self, summarised=max(self.summarised, len(self.turns) - count))

    @property
    def visitor_messages(self) -> tuple[str, ...]:
        return tuple(turn.message for turn in self.turns)


@dataclass(frozen=True, slots=True)
class OwnerWords:
    """What the owner in person wrote to a visitor."""

    id: int
    """Grows with every one that is written; a corrected one gets a new one."""
    after: int
    """The number of the turn that they follow; -1: they came before all."""
    text: str
    question: str
    """The visitor's question that they answer; empty when they answer none."""
    created: datetime


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as it is kept: the tuples run in step."""

    conversation: Conversation = field(default_factory=Conversation)
    numbers: tuple[int, ...] = ()
    """The number of each turn, which stays the same when another one is replaced."""
    feedback: tuple[bool | None, ...] = ()
    """The visitor's thumb on each turn: up, down, none."""
    words: tuple[tuple[OwnerWords, ...], ...] = ()
    """What the owner wrote after each turn."""
    stops: tuple[str, ...] = ()
    """How each turn ended, see StopReason; empty where nobody can tell."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A turn that is still being answered."""

    message: str
    steps: tuple[Step, ...] = field(default=())
    found: tuple[Passage, ...] = ()
    """See Turn."""

    def and_then(self, step: Step) -> Draft:
        return replace(self, steps=(*self.steps, step))

    def ended(self, reply: Reply) -> Turn:
        """The turn with `reply` as its last word; calls that were never run are left out."""
        last = Reply(text=reply.text, finish=reply.finish, usage=reply.usage, sources=reply.sources)
        return Turn(self.message, (*self.steps, Step(last)), found=self.found)


def mended(text: str) -> str:
    """The text as it can be sent and stored: half surrogates, which no encoding takes, are made whole or replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def join_texts(texts: Iterable[str]) -> str:
    """The texts of several replies as the visitor reads them: one after the other, blanks left out."""
    return "\n\n".join(text for text in (text.strip() for text in texts) if text)


def to_wire(system: str, conversation: Conversation, draft: Draft, notice: str = "") -> list[WireMessage]:
    """The messages of the next request: one leading system message, whole turns, the draft.

    Args:
        system: the persona.
        conversation: what was said before.
        draft: the visitor's message and the steps since.
        notice: a line for this request alone. It joins the leading system message, since some
            providers refuse system text anywhere else; it is never stored.
    """
    earlier = f"Earlier in this conversation, for you to know: {conversation.summary}" if conversation.summary else ""
    leading = "\n\n".join(part for part in (system, earlier, notice) if part)
    wire: list[WireMessage] = [{"role": "system", "content": leading}]
    taken: set[str] = set()
    for turn in conversation.turns[conversation.summarised :]:
        wire.append({"role": "user", "content": with_passages(turn.message, turn.found)})
        wire.extend(_steps_to_wire(turn.steps, taken, current=False))
        if turn.aside:
            quoted = json.dumps(turn.aside, ensure_ascii=False)  # as data: it ends where its quotes end
            wire[-1]["content"] += f"\n\n[The owner wrote to the visitor in person: {quoted}]"
    wire.append({"role": "user", "content": with_passages(draft.message, draft.found)})
    wire.extend(_steps_to_wire(draft.steps, taken, current=True))
    return wire


def _steps_to_wire(steps: Sequence[Step], taken: set[str], *, current: bool) -> list[WireMessage]:
    wire: list[WireMessage] = []
    for step in steps:
        reply = step.reply
        if not reply.calls:
            # With its sources, so that a model which reads how it answered goes on naming them.
            wire.append({"role": "assistant", "content": (reply.text.strip() or UNSAID) + footnote(reply.sources)})
            continue
        ids = [_unused_id(call.id, taken) for call in reply.calls]
        named = zip(reply.calls, ids, strict=True)
        wire.append(
            {
                **(dict(reply.extra) if current else {}),
                "role": "assistant",
                "content": reply.text,
                "tool_calls": [_call_to_wire(call, call_id, current=current) for call, call_id in named],
            }
        )
        wire.extend(
            {"role": "tool", "tool_call_id": call_id, "content": result.content}
            for result, call_id in zip(step.results, ids, strict=True)
        )
    return wire


def _unused_id(call_id: str, taken: set[str]) -> str:
    """The id, or another one where an earlier reply had it: some providers count anew for each reply, and some
    take no id twice in a request."""
    number = 1
    unused = call_id
    while unused in taken:
        unused, number = f"again{number:04d}", number + 1
    taken.add(unused)
    return unused


def _call_to_wire(call: ToolCall, call_id: str, *, current: bool) -> WireMessage:
    wire: WireMessage = {
        "id": call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": _object_text(call.arguments)},
    }
    return {**dict(call.extra), **wire} if current else wire


def _object_text(arguments: str) -> str:
    """The arguments, if they are a JSON object: some providers refuse anything else."""
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"
