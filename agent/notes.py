"""What the keyless model quotes: the owner's own answers first, then the files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from agent.answers import Answered, Answers
from agent.encoder import Encode, load_encoder
from agent.knowledge import Passage
from agent.search import Search, open_search


class Notes:
    """Owns the index over the answers, which is built anew when they have changed.

    Args:
        files: the index over the files.
        answers: what the owner has answered by now.
        owner: the owner's name.
        load: the encoder of the answers' index.
    """

    def __init__(self, files: Search, answers: Answers, owner: str, load: Callable[[], Encode] = load_encoder) -> None:
        self._files = files
        self._answers = answers
        self._source = f"what {owner} answered in person"
        self._load = load
        self._indexed: Sequence[Answered] = ()
        self._index: Search | None = None

    async def answering(self, question: str) -> tuple[Passage, ...]:
        """The passages that answer, best first; empty when none does."""
        known = await self._answers.current()
        return await asyncio.to_thread(self._find, question, known)

    def _find(self, question: str, known: Sequence[Answered]) -> tuple[Passage, ...]:
        if known is not self._indexed:
            passages = [Passage(self._source, answer.question, answer.text) for answer in known]
            self._index = open_search(passages, self._load) if passages else None
            self._indexed = known
        return (self._index.answering(question) if self._index else ()) or self._files.answering(question)
