"""What the keyless model quotes: the owner's own answers first, then the files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from agent.answers import Answered, Answers
from agent.embeddings import MOST_LOCAL
from agent.encoder import Encode
from agent.library import Library, Shelf
from agent.passages import Passage
from agent.search import LargeSearch, Search, open_search


class Notes:
    """Owns the searches over the files and over the answers, each built anew when what it searches has changed.

    Args:
        library: the owner's files.
        answers: what the owner has answered by now.
        load: the encoder.
        by_meaning: the index has vectors of this encoder, or will have.
    """

    def __init__(
        self, library: Library, answers: Answers, load: Callable[[], Encode], *, by_meaning: bool = False
    ) -> None:
        self._library = library
        self._answers = answers
        self._load = load
        self._by_meaning = by_meaning
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
            index = self._library.index
            if index and shelf.is_indexed:
                by_meaning = self._by_meaning and index.size() <= MOST_LOCAL
                self._files = LargeSearch(index, self._load, by_meaning=by_meaning)
            else:
                self._files = open_search(shelf.knowledge.passages, self._load)
            self._shelf = shelf
        return self._files
