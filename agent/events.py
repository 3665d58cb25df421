"""What happens while a turn is answered: a closed union, and the fold that rebuilds the turn from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, assert_never

from agent.conversation import Draft, Reply, Step, ToolCall, ToolResult, Turn, join_texts

StopReason = Literal["answered", "max_turns", "stopped", "failed"]
"""How a turn ended: with an answer, at the limit of tool rounds, by the visitor, or by a fault."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the reply, to be shown at once."""

    text: str


@dataclass(frozen=True, slots=True)
class Replied:
    """One completion has ended."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class ToolStarted:
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolFinished:
    call: ToolCall
    result: ToolResult | None
    """None: the call failed and is taken back."""


@dataclass(frozen=True, slots=True)
class TurnFinished:
    turn: Turn
    stop: StopReason
    reference: str = ""
    """Stands in the log beside what went wrong, when something did."""


Event = TextDelta | Replied | ToolStarted | ToolFinished | TurnFinished


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a turn has come: whoever listens can leave at any moment with a turn that is well formed."""

    draft: Draft
    reply: Reply | None = None
    """The completion whose calls are being run."""
    results: tuple[ToolResult, ...] = ()
    pending: str = ""
    """Text of the completion that is being streamed."""

    def after(self, event: Event) -> Progress:
        match event:
            case TextDelta(text):
                settled = self._settled()
                return replace(settled, pending=settled.pending + text)
            case Replied(reply):
                return replace(self._settled(), reply=reply, pending="")
            case ToolFinished(_, result):
                return replace(self, results=(*self.results, result)) if result else self
            case ToolStarted() | TurnFinished():
                return self
            case _:
                assert_never(event)

    @property
    def text(self) -> str:
        """What the visitor has read so far, as Markdown."""
        settled = self._settled()
        last = settled.reply.text if settled.reply else settled.pending
        return join_texts([*(step.reply.text for step in settled.draft.steps), last])

    def stopped(self) -> Turn:
        """The turn as it stands, marked as broken off."""
        settled = self._settled()
        text = settled.reply.text if settled.reply else settled.pending
        return settled.draft.ended(Reply(text=text, finish="cut"))

    def _settled(self) -> Progress:
        """With the finished calls of the last completion as a step."""
        if self.reply is None or not self.results:
            return self if self.reply is None or not self.reply.calls else Progress(self.draft)
        step = keep_answered(self.reply, self.results)
        return Progress(self.draft.and_then(step))


def keep_answered(reply: Reply, results: tuple[ToolResult, ...]) -> Step:
    """The reply with only the calls that were answered: the others leave no trace."""
    answered = {result.call_id for result in results}
    calls = tuple(call for call in reply.calls if call.id in answered)
    return Step(replace(reply, calls=calls), results)
