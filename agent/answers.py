"""What the owner has answered in person: it joins the persona, as true as the files and newer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agent.passages import Passage, inert

OPENING = "\n<answers>\n"
CLOSING = "\n</answers>"

SOURCE = "answers"
"""Stands for the file that an answer is from."""
MAX_QUESTION_CHARS = 300


class Answered(Protocol):
    """One answer of the owner's."""

    @property
    def question(self) -> str: ...
    @property
    def text(self) -> str: ...


class Answerers(Protocol):
    """What is needed of a store."""

    async def answers(self) -> Sequence[Answered]:
        """All answers, newest first."""
        ...

    async def answers_version(self) -> str:
        """Another one whenever an answer is added, changed or taken back. It is asked for with each message."""
        ...


class Answers:
    """Owns the answers as they were last read.

    Args:
        store: keeps them, for several processes.
        max_bytes: so many of them go into the persona, in UTF-8, the newest ones.
    """

    def __init__(self, store: Answerers, max_bytes: int) -> None:
        self._store = store
        self._max_bytes = max_bytes
        self._version: str | None = None
        self._known: tuple[Answered, ...] = ()

    async def current(self) -> tuple[Answered, ...]:
        """Oldest first: a new one leaves what stands before it in a request as it was. The same object until one
        changes."""
        version = await self._store.answers_version()
        if version != self._version:
            self._known = tuple(reversed(await self._store.answers()))
            self._version = version
        return self._known

    async def as_text(self) -> str:
        """What stands behind the files in the system message; empty when there are none."""
        return answers_part(await self.current(), self._max_bytes)

    async def passages(self) -> tuple[Passage, ...]:
        """The same as passages, whose labels a reply may name."""
        return tuple(Passage(SOURCE, answer.question, answer.text) for answer in await self.current())


def answers_part(answers: Sequence[Answered], max_bytes: int) -> str:
    """The answers for the system message, oldest first. When they are too many, the oldest go until half of the room
    is free, so that the beginning of the requests stays the same for many answers more."""
    written = [f"<answer>\nAsked: {_asked(answer)}\n{inert(answer.text)}\n</answer>" for answer in answers]
    first, total = 0, 0
    for number, text in enumerate(written):
        total += len(text.encode())
        if total > max_bytes:
            while first <= number and total > max_bytes / 2:
                total -= len(written[first].encode())
                first += 1
    kept = "\n".join(written[first:])
    return f"{OPENING}{kept}{CLOSING}" if kept else ""


def _asked(answer: Answered) -> str:
    """The question came from a visitor: one line of it is enough."""
    return inert(" ".join(answer.question.split()))[:MAX_QUESTION_CHARS]
