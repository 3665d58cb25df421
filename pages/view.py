"""What the page shows of a turn: a fold over its events, and the values that travel to the browser."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal, assert_never

from agent.conversation import Draft, OwnerWords, ToolCall, Transcript, Turn
from agent.events import Event, Progress, Replied, StopReason, TextDelta, ToolFinished, ToolStarted, TurnFinished
from agent.passages import footnote
from agent.reception import Opened
from agent.toolkit import OK, Tool
from pages.markup import Growing, blocks_of

Tools = Mapping[str, Tool[Any]]

State = Literal["waiting", "streaming", "done", "stopped", "broken", "failed"]
"""`stopped`: the visitor ended the answer; `broken`: it stops in the middle; `failed`: there is none, and the text says
so."""

BROKE_OFF = "(This answer broke off.)"
"""Ends such an answer for callers of the API; the page draws a mark."""

HISTORY_TURNS = 200
"""So many turns come back after a reload."""

HISTORY_CHARACTERS = 60_000
"""Of these, the last ones with so many characters of text, the last of all in any case: some texts take a hundred times
as long to render as others."""


@dataclass(frozen=True, slots=True)
class Line:
    """A quiet line on what a tool does."""

    call_id: str
    state: Literal["working", "done"]
    text: str


@dataclass(frozen=True, slots=True)
class Showing:
    """A turn that is being answered, as far as it has come."""

    tools: Tools
    number: int | None = None
    """None until the message is taken."""
    progress: Progress = field(default_factory=lambda: Progress(Draft("")))
    lines: tuple[Line, ...] = ()
    turn: Turn | None = None
    stop: StopReason | None = None

    def after(self, event: Opened | Event) -> Showing:
        if isinstance(event, Opened):
            return replace(self, number=event.number)
        showing = replace(self, progress=self.progress.after(event))
        match event:
            case ToolStarted(call):
                return replace(showing, lines=_begun(self.lines, call, self.tools))
            case ToolFinished(call, result):
                done = result is not None and result.content == OK
                return replace(showing, lines=_ended(self.lines, call, self.tools, done=done))
            case TurnFinished(turn, stop):
                return replace(showing, turn=turn, stop=stop, lines=_settled(self.lines))
            case TextDelta() | Replied():
                return showing
            case _:
                assert_never(event)

    @property
    def text(self) -> str:
        return self.turn.text if self.turn else self.progress.text

    @property
    def state(self) -> State:
        if self.turn is None:
            return "streaming" if self.progress.text else "waiting"
        return _state_of(self.turn, self.stop or "")

    @property
    def sources(self) -> tuple[str, ...]:
        """Labels of what the finished reply rests on."""
        return _sources_of(self.turn) if self.turn else ()

    @property
    def for_callers(self) -> str:
        """The text so far; a finished one with its sources, and a word where it broke off."""
        if self.turn is None:
            return self.text
        text = f"{self.text}{footnote(self.sources)}"
        return f"{text}\n\n{BROKE_OFF}".lstrip() if self.turn.incomplete else text

    def for_the_browser(self, rendering: Growing) -> dict[str, Any]:
        """The turn so far. A finished one is rendered as a whole: that is what stays."""
        blocks = [block.html for block in blocks_of(self.text)] if self.turn else list(rendering.blocks)
        return {
            "number": self.number,
            "state": self.state,
            "blocks": blocks,
            "tools": [{"state": line.state, "text": line.text} for line in self.lines],
            "sources": list(self.sources),
        }


def _begun(lines: tuple[Line, ...], call: ToolCall, tools: Tools) -> tuple[Line, ...]:
    tool = tools.get(call.name)
    return (*lines, Line(call.id, "working", tool.working)) if tool else lines


def _ended(lines: tuple[Line, ...], call: ToolCall, tools: Tools, *, done: bool) -> tuple[Line, ...]:
    """A call that asked the visitor for something, or failed, leaves no line: the reply speaks of it."""
    others = tuple(line for line in lines if line.call_id != call.id or line.state == "done")
    tool = tools.get(call.name)
    return _once((*others, Line(call.id, "done", tool.done))) if tool and done else others


def _settled(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    return tuple(line for line in lines if line.state == "done")


def _once(lines: Iterable[Line]) -> tuple[Line, ...]:
    """The same thing done twice is said once."""
    return tuple({(line.state, line.text): line for line in lines}.values())


def _state_of(turn: Turn, stop: str) -> State:
    if stop == "failed":
        return "failed"
    if not turn.incomplete:
        return "done"
    return "stopped" if stop == "stopped" else "broken"


def _sources_of(turn: Turn) -> tuple[str, ...]:
    """Of the last reply: what the model named before it called a tool was never compared with what it was given."""
    return turn.steps[-1].reply.sources


def history(transcript: Transcript, tools: Tools) -> list[dict[str, Any]]:
    """The last turns of a conversation as the browser shows them."""
    columns = (transcript.numbers, transcript.feedback, transcript.words, transcript.stops)
    turns = list(zip(transcript.conversation.turns, *columns, strict=True))
    sizes = accumulate(
        sum(map(len, (turn.message, turn.text, *(one.text for one in after)))) for turn, _, _, after, _ in turns[::-1]
    )
    shown = max(1, sum(size <= HISTORY_CHARACTERS for size in sizes))
    return [
        {
            "number": number,
            "question": turn.message,
            "state": _state_of(turn, stop),
            "blocks": list(_rendered(turn.text)),
            "tools": [{"state": "done", "text": text} for text in _done_in(turn, tools)],
            "sources": list(_sources_of(turn)),
            "words": [_words(one) for one in after],
            "liked": liked,
        }
        for turn, number, liked, after, stop in turns[-min(shown, HISTORY_TURNS) :]
    ]


def owner_words(transcript: Transcript) -> list[dict[str, Any]]:
    """What the owner in person wrote to the visitor, each with the number of the turn that it stands under."""
    placed = zip(transcript.numbers, transcript.words, strict=True)
    return [{"number": number, "words": [_words(one) for one in after]} for number, after in placed][-HISTORY_TURNS:]


def _words(one: OwnerWords) -> dict[str, Any]:
    return {
        "id": one.id,
        "question": one.question,
        "blocks": list(_rendered(one.text)),
        "written": one.created.isoformat(),
    }


@lru_cache(256)
def _rendered(text: str) -> tuple[str, ...]:
    return tuple(block.html for block in blocks_of(text))


def _done_in(turn: Turn, tools: Tools) -> list[str]:
    texts = [
        tools[call.name].done
        for step in turn.steps
        for call, result in zip(step.reply.calls, step.results, strict=True)
        if call.name in tools and result.content == OK
    ]
    return list(dict.fromkeys(texts))
