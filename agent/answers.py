"""What the owner has answered in person: it joins the persona, as true as the files and newer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.finding.search import Search, open_search
from agent.passages import Passage, fitting, inert

OPENING = "\n<answers>\n"
CLOSING = "\n</answers>"

SOURCE = "answers"
"""Stands for the file that an answer is from."""
MAX_QUESTION_CHARS = 300
FIND = 4
"""Older answers that go along with a message at the most."""


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


@dataclass(frozen=True, slots=True)
class Book:
    """All answers as they were at one moment, with what is made of them once for many messages."""

    answers: tuple[Answered, ...] = ()
    """Oldest first: a new one leaves what stands before it in a request as it was."""
    text: str = ""
    """What stands behind the files in the system message; empty when there are none."""
    passages: tuple[Passage, ...] = ()
    """The same as passages, whose labels a reply may name."""
    labels: frozenset[str] = frozenset()
    first: int = 0
    """Where the answers begin that stand in the system message."""


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
        self._book = Book()
        self._older: tuple[Book, Search] | None = None
        """The search over what has no room in the persona, and the answers that it was made of."""

    async def book(self) -> Book:
        """The answers of now, by one quick query; the same object until one changes."""
        version = await self._store.answers_version()
        if version != self._version:
            self._book = book_of(tuple(reversed(await self._store.answers())), self._max_bytes)
            self._version = version
        return self._book

    async def found(self, book: Book, message: str) -> tuple[Passage, ...]:
        """Of the answers that have no room in the persona, those that a message may be about, the best first."""
        if not book.first:
            return ()
        if self._older is None or self._older[0] is not book:
            self._older = (book, await asyncio.to_thread(open_search, book.passages[: book.first], None))
        best = await asyncio.to_thread(self._older[1].sharing, message, FIND)
        return tuple(fitting(best, self._max_bytes // 2))


def book_of(answers: tuple[Answered, ...], max_bytes: int) -> Book:
    passages = tuple(Passage(SOURCE, answer.question, answer.text) for answer in answers)
    return Book(
        answers,
        answers_part(answers, max_bytes),
        passages,
        frozenset(one.label for one in passages),
        first_in(answers, max_bytes),
    )


def first_in(answers: Sequence[Answered], max_bytes: int) -> int:
    """Where the answers begin that have room in the persona. When there are too many, the oldest go until half of it
    is free, so that the beginning of requests stays the same for many answers more. The newest one stays."""
    sizes = [len(_written(answer).encode()) for answer in answers]
    first, total = 0, 0
    for number, size in enumerate(sizes):
        total += size
        if total > max_bytes:
            while first < number and total > max_bytes / 2:
                total -= sizes[first]
                first += 1
    return first


def answers_part(answers: Sequence[Answered], max_bytes: int) -> str:
    """As many answers as the system message has room for; of one that is too long by itself, its beginning."""
    if not answers:
        return ""
    written = [_written(answer, max_bytes) for answer in answers[first_in(answers, max_bytes) :]]
    joined = "\n".join(written)
    return f"{OPENING}{joined}{CLOSING}"


def _written(answer: Answered, max_bytes: int | None = None) -> str:
    text = inert(answer.text)
    if max_bytes is not None:
        text = text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")
    return f"<answer>\nAsked: {_asked(answer)}\n{text}\n</answer>"


def _asked(answer: Answered) -> str:
    """The question came from a visitor: one line of it is enough."""
    return inert(" ".join(answer.question.split()))[:MAX_QUESTION_CHARS]
