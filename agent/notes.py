"""What the keyless model quotes: the owner's own answers first, then the files."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import numpy as np

from agent.answers import Answers, Book
from agent.finding.embeddings import MOST_LOCAL
from agent.finding.encoder import Encode, Vectors
from agent.finding.search import LargeSearch, Search, open_search
from agent.library import Library, Shelf
from agent.passages import Passage

MOST_ENCODED = 300
"""Answers, the newest ones, that are found by meaning; older ones by their words."""
MOST_KEPT = 5000
"""Vectors of texts, before all are made anew."""
AT_ONCE = 8
"""Answers that are encoded while a visitor waits for it; more are encoded beside."""


log = logging.getLogger(__name__)


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
        self._book: Book | None = None
        self._by_words: Search | None = None
        self._person: Search | None = None
        self._encoded: dict[str, Vectors] = {}
        """Texts of answers with their vectors: a new answer costs itself alone."""
        self._had: frozenset[Passage] = frozenset()
        """Answers that were encoded before."""
        self._encoding: asyncio.Task[None] | None = None

    def open(self) -> Notes:
        """Builds the search over the files; blocks."""
        self._search()
        return self

    async def answering(self, question: str) -> tuple[Passage, ...]:
        """The passages that answer, best first; empty when none does."""
        book = await self._answers.book()
        if book is not self._book:
            self._book, self._person = book, None
            self._by_words = await asyncio.to_thread(open_search, book.passages, None)
            newest = book.passages[-MOST_ENCODED:]
            self._encoding = asyncio.create_task(asyncio.to_thread(self._encode, book, newest))
            if len(self._had.symmetric_difference(newest)) <= AT_ONCE:
                await asyncio.shield(self._encoding)
        return await asyncio.to_thread(self._find, question)

    def _encode(self, book: Book, passages: Sequence[Passage]) -> None:
        """Lets answers be found by their meaning, too. Until then they are found by words."""
        try:
            search = open_search(passages, self._remembering)
        except Exception as error:
            log.warning("Answers are found by their words alone (%s)", type(error).__name__)
            return
        if book is self._book:
            self._person, self._had = search, frozenset(passages)

    def _remembering(self) -> Encode:
        encode = self._load()

        def remember(texts: Sequence[str]) -> Vectors:
            if len(self._encoded) > MOST_KEPT:
                self._encoded.clear()
            missing = [text for text in dict.fromkeys(texts) if text not in self._encoded]
            for start in range(0, len(missing), AT_ONCE):
                some = missing[start : start + AT_ONCE]
                self._encoded.update(zip(some, encode(some), strict=True))
            return np.array([self._encoded[text] for text in texts], np.float32)

        return remember

    def _find(self, question: str) -> tuple[Passage, ...]:
        for search in (self._person, self._by_words, self._search()):
            if found := search.answering(question) if search else ():
                return found
        return ()

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
