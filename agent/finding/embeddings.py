"""Search by meaning beside words, where something makes vectors of texts: a provider, or the local encoder."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from agent.contract import ModelError
from agent.finding.asking import text_to_embed
from agent.finding.encoder import Encode
from agent.finding.fusing import Floats, unit
from agent.finding.index import Found, Index

log = logging.getLogger(__name__)

Embed = Callable[[Sequence[str]], Awaitable[object]]
"""Texts to as many rows of numbers, in their order. May raise anything."""

BATCH = 64
LOCAL_BATCH = 8
MOST_LOCAL = 5000
"""Passages that the local encoder makes vectors of: they take about two minutes of the processor, once."""
MAX_CHARS = 4000
"""Of a passage; models refuse texts that are longer than they can read."""
QUESTION_S = 2.0
"""A visitor waits no longer for the vector of a question: then words alone decide."""
PAUSES_S = (5.0, 30.0, 120.0)
"""Before trying again, when passages could not be embedded; after the last, the next renewal begins anew."""


class Embeddings:
    """Finds by words and, as far as there are vectors, by meaning.

    Args:
        index: where passages and vectors are kept.
        embed: makes the vectors.
        space: names the model; vectors of another are dropped.
        question_s: how long a question may take.
        pauses_s: before each new attempt to embed passages.
        embed_question: makes the vectors of questions, where they are counted otherwise.
        most: of more passages none gets a vector.
    """

    def __init__(
        self,
        index: Index,
        embed: Embed,
        space: str,
        question_s: float = QUESTION_S,
        pauses_s: Sequence[float] = PAUSES_S,
        *,
        embed_question: Embed | None = None,
        most: int | None = None,
    ) -> None:
        self._index = index
        self._embed = embed
        self._embed_question = embed_question or embed
        self._most = most
        self._space = space
        self._question_s = question_s
        self._pauses_s = pauses_s
        self._filling = asyncio.Lock()
        self._failing = False

    async def find(self, question: str, context: str = "", limit: int = 8) -> tuple[Found, ...]:
        """As `Index.find`. Where the vector of the question fails or is late, by words alone."""
        vector = None
        try:
            async with asyncio.timeout(self._question_s):
                vector = unit(await self._embed_question([text_to_embed(question, context)[-MAX_CHARS:]]))[0]
        except Exception as error:
            # Whatever goes wrong at a provider, the words are still there.
            self._note(error)
        else:
            self._note(None)
        return await asyncio.to_thread(self._index.find, question, context, limit, vector)

    async def fill(self) -> int:
        """Embeds the passages that have no vector yet, and says how many. Call it after each renewal."""
        async with self._filling:
            if self._most is not None and await asyncio.to_thread(self._index.size) > self._most:
                return 0
            done = 0
            for pause in (*self._pauses_s, None):
                try:
                    return done + await self._fill()
                except _Stopped as stopped:
                    done += stopped.done
                    if pause is None:
                        break
                    await asyncio.sleep(pause)
            return done

    async def _fill(self) -> int:
        done = place = 0
        try:
            while batch := await asyncio.to_thread(self._index.without_vector, self._space, place, BATCH):
                texts = {digest: text[:MAX_CHARS] for _, digest, text in batch}
                vectors = await self._embed(list(texts.values()))
                await asyncio.to_thread(self._index.keep_vectors, self._space, list(texts), vectors)
                place = batch[-1][0]
                done += len(texts)
        except Exception as error:
            self._note(error)
            raise _Stopped(done) from error
        if done:
            self._note(None)
        return done

    def _note(self, error: Exception | None) -> None:
        """Says it once when vectors begin to fail, and once when they work again."""
        if error and not self._failing:
            told = str(error) if isinstance(error, ModelError | ValueError) else type(error).__name__
            log.warning("Searching the knowledge by words alone for now: embeddings fail (%s)", told)
            log.debug("Embedding failed", exc_info=error)
        if not error and self._failing:
            log.info("The knowledge is searched by meaning again")
        self._failing = error is not None


class _Stopped(Exception):
    def __init__(self, done: int) -> None:
        self.done = done


def local(load: Callable[[], Encode]) -> Embed:
    """The encoder of the keyless model: nothing leaves the machine. Between two batches it rests as long as the batch
    took, so that visitors find the processor free."""

    async def embed(texts: Sequence[str]) -> object:
        encode = await asyncio.to_thread(load)
        rows: list[Floats] = []
        for start in range(0, len(texts), LOCAL_BATCH):
            began = time.monotonic()
            rows.append(await asyncio.to_thread(encode, texts[start : start + LOCAL_BATCH]))
            if start + LOCAL_BATCH < len(texts):
                await asyncio.sleep(time.monotonic() - began)
        return np.concatenate(rows)

    return embed
