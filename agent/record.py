"""What the transcript and the log want to know of one turn."""

from __future__ import annotations

import time
from collections.abc import Container

from agent.calls import ModelCall, money
from agent.conversation import Turn, Usage
from agent.events import Event, Progress, Replied, StopReason, TextDelta, ToolFinished, TurnFinished
from agent.small_talk import asks_for_facts
from agent.toolkit import OK


class Record:
    """What the transcript and the log want to know of a turn: a fold over its events."""

    def __init__(self, progress: Progress, tools: Container[str] = ()) -> None:
        self.progress = progress
        self._known = tools
        self.turn: Turn | None = None
        self.stop: StopReason = "stopped"
        self.reference = ""
        self._began = time.monotonic()
        self._first_token_s: float | None = None
        self._tools: list[str] = []
        self._usages: list[Usage] = []
        self.calls: list[ModelCall] = []
        """Every request to a provider, those too of which no event tells."""

    def note(self, event: Event) -> None:
        self.progress = self.progress.after(event)
        match event:
            case TextDelta():
                self._first_token_s = self._first_token_s or time.monotonic() - self._began
            case Replied(reply) if reply.usage:
                self._usages.append(reply.usage)
            case ToolFinished(call, result):
                # A name that the model made up could forge a line of the log.
                name = call.name if call.name in self._known else "unknown"
                self._tools.append(f"{name}={'failed' if result is None else _verdict(result.content)}")
            case TurnFinished(turn, stop, reference):
                self.turn, self.stop, self.reference = turn, stop, reference
            case _:
                pass

    def line(self, conversation_id: str, number: int) -> str:
        """One line for a person: no word of the visitor's stands in it."""
        first = "-" if self._first_token_s is None else f"{self._first_token_s:.2f} s"
        return (
            f"turn {name_of(conversation_id, number)}: {self.stop}, first word after {first}, "
            f"whole {self.duration_s:.2f} s, {self._tokens()}, tools {', '.join(self._tools) or 'none'}"
            + (f", reference {self.reference}" if self.reference else "")
        )

    @property
    def rests_on_nothing(self) -> bool:
        """A question was answered; the answer names nothing that it was taken from, and no tool was called."""
        if self.turn is None or self.stop not in ("answered", "max_turns") or self._tools:
            return False
        return asks_for_facts(self.turn.message) and not any(step.reply.sources for step in self.turn.steps)

    @property
    def duration_s(self) -> float:
        return time.monotonic() - self._began

    def _tokens(self) -> str:
        """What the turn cost. Models that nobody meters are counted by their replies."""
        usages = [call.usage for call in self.calls] or self._usages
        if not usages:
            return "tokens not counted"
        about = "about " if any(call.estimated for call in self.calls) else ""
        read, written = sum(usage.prompt for usage in usages), sum(usage.completion for usage in usages)
        cost = money(self.calls)
        return f"tokens {about}{read} in, {written} out" + (f", cost {about}{cost}" if cost else "")


def name_of(conversation_id: str, number: int) -> str:
    """How the log calls a turn."""
    return f"{conversation_id[:6]}/{number}"


def _verdict(content: str) -> str:
    return content if content == OK else "answered"
