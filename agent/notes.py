"""What the keyless model quotes: the owner's own answers first, then the files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cache

from agent.answers import Answered, Answers
from agent.encoder import Encode, load_encoder
from agent.library import Library, Shelf
from agent.passages import Passage
from agent.search import LargeSearch, Search, open_search

LARGE = 400
"""Passages that are encoded at each start, in some ten seconds of the background. Of more, those that share words with
a question are, and only when it is asked."""


class Notes:
    """Owns the searches over the files and over the answers, each built anew when what it searches has changed.

    Args:
        library: the owner's files.
        answers: what the owner has answered by now.
        load: the encoder.
    """

    def __init__(self, library: Library, answers: Answers, load: Callable[[], Encode] = load_encoder) -> None:
        self._library = library
        self._answers = answers
        self._load = cache(load)
        self._shelf: Shelf | None = None
        self._files: Search | LargeSearch | None = None
        self._said: Sequence[Answered] | None = None
        self._person: Search | None = None

    def open(self) -> Notes:
        """Builds the search over the files; blocks."""
        self._search()
        return self

    async def answering(self, question: str) -> tuple[Passage, ...]:
        """The passages that answer, best first; empty when none does."""
        said, passages = await self._answers.current(), await self._answers.passages()
        return await asyncio.to_thread(self._find, question, said, passages)

    def _find(self, question: str, said: Sequence[Answered], passages: Sequence[Passage]) -> tuple[Passage, ...]:
        if said is not self._said:
            self._person, self._said = (open_search(passages, self._load) if passages else None), said
        return (self._person.answering(question) if self._person else ()) or self._search().answering(question)

    def _search(self) -> Search | LargeSearch:
        shelf = self._library.shelf
        if self._files is None or shelf is not self._shelf:
            passages, index = shelf.knowledge.passages, self._library.index
            if index and len(passages) > LARGE:
                self._files = LargeSearch(index, self._load)
            else:
                self._files = open_search(passages, self._load)
            self._shelf = shelf
        return self._files
