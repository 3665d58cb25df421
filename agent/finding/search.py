"""Finds the passages that answer a question, and none where the knowledge does not answer it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from agent.finding.encoder import Encode, Vectors, load_encoder
from agent.finding.lexical import lacks, plain, sentences, subject, words
from agent.knowledge import Passage

log = logging.getLogger(__name__)

Floats = NDArray[np.float32]
Positions = NDArray[np.int64]
Terms = dict[str, str]
"""Words by their stems."""

MAX_QUESTION_CHARS = 600
"""Of a longer message the questions are looked up, else its beginning."""
MAX_QUOTED = 3
CANDIDATES = 16
"""Of large knowledge, so many passages are encoded for each question."""
BESIDE = 0.8
"""What it takes to be quoted beside the best passage: this share of its rank."""

COVER_WEIGHT = 0.2
"""Of the words that question and passage share, beside nearness in meaning, in ranking."""

UNEXPLAINED, MISSING, COMPLETE, LACKING = 3.5, 5.5, 2.0, 2.0
ENOUGH = 2.9
"""Whether to answer at all: the weights of four signs, and the sum it takes. A logistic regression, rounded, over 243
questions about three persons' files; docs/decisions/0003-search-without-a-key.md tells how."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the encoder made of the passages."""

    encode: Encode
    parts: Vectors
    """For each passage a row for the whole and one for each of its sentences, all with their heading."""
    starts: Positions
    """Where each passage's rows begin."""

    def nearness(self, text: str) -> Floats:
        """Of each passage, by its nearest part: 1 is the same meaning, below 0.2 is chance."""
        return np.maximum.reduceat(self.parts @ self.encode([text])[0], self.starts)

    def nearness_to(self, text: str, position: int) -> float:
        """Of one passage."""
        start, end = [*self.starts[position : position + 2].tolist(), len(self.parts)][:2]
        return float((self.parts[start:end] @ self.encode([text])[0]).max())


@dataclass(frozen=True, slots=True)
class Search:
    """An index over passages. Nothing in it changes, so threads can share it."""

    passages: tuple[Passage, ...]
    holders: dict[str, Positions]
    """For each stem, the passages that have it."""
    rarity: dict[str, float] | None
    """By stem, of words in a whole that these passages are a part of; None: they are the whole."""
    headings: dict[str, tuple[Passage, ...]]
    """What stands under a heading that is a question."""
    meaning: Meaning | None
    """None: no encoder, by words alone."""

    def answering(self, question: str) -> tuple[Passage, ...]:
        """One to three passages, the best first; none where nothing answers the question."""
        question = asked_in(question)
        if found := self.headings.get(plain(question)):
            return found[:MAX_QUOTED]
        terms = terms_in(subject(question))
        if not self.passages or not (terms or (self.meaning and plain(question))):
            return ()
        cover = self._cover(terms)
        near = self.meaning.nearness(question) if self.meaning else np.zeros_like(cover)
        rank = np.where(self._telling(), near + COVER_WEIGHT * cover, -1)
        best_first: list[int] = np.argsort(-rank, kind="stable")[:MAX_QUOTED].tolist()
        best = best_first[0]
        if not self._answers(question, terms, best, float(near[best]), float(cover[best])):
            return ()
        return tuple(self.passages[each] for each in best_first if rank[each] >= BESIDE * rank[best])

    def _telling(self) -> NDArray[np.bool_]:
        """Passages that say something: a word or two, such as a heading that nothing stands under, is no answer."""
        return np.array([one.text.count(" ") >= 2 or "\n" in one.text for one in self.passages], np.bool_)

    def sharing(self, question: str, limit: int) -> tuple[Passage, ...]:
        """Passages that share words with a question, the best first, whether they answer it or not."""
        cover = self._cover(terms_in(subject(asked_in(question))))
        best_first: list[int] = np.argsort(-cover, kind="stable")[:limit].tolist()
        return tuple(self.passages[each] for each in best_first if cover[each] > 0)

    def _answers(self, question: str, terms: Terms, position: int, near: float, cover: float) -> bool:
        """Whether a passage answers, rather than being about something near.

        "What was Babbage's wife called?" is near every passage about Babbage, for the word that it shares with them.
        So what counts is the nearness that shared words do not explain, and whether the other words come near, too.
        """
        missing = [word for stem, word in terms.items() if position not in self.holders.get(stem, ())]
        complete = bool(terms) and not missing
        if not self.meaning:
            return complete
        sum_of_signs = (
            UNEXPLAINED * (near * (1 - cover) if terms else 0)
            + MISSING * (self.meaning.nearness_to(" ".join(missing), position) if missing else near)
            + COMPLETE * complete
            - LACKING * lacks(question, self.passages[position].text)
        )
        return sum_of_signs >= ENOUGH

    def _cover(self, terms: Terms) -> Floats:
        """For each passage, the share of the question's words that it has, rare words counting for more."""
        cover = np.zeros(len(self.passages), np.float32)
        total = 0.0
        for stem in terms:
            holders = self.holders.get(stem)
            held_by = 0 if holders is None else len(holders)
            rarity = self.rarity[stem] if self.rarity else _rarity(len(self.passages), held_by)
            total += rarity
            if holders is not None:
                cover[holders] += rarity
        return cover / np.float32(total or 1)


class Whole(Protocol):
    """What the search needs of an index over knowledge that is too large to be encoded."""

    def find(
        self, question: str, context: str = "", limit: int = 8, vector: Floats | None = None
    ) -> Sequence[HasPassage]: ...

    def count(self, word: str) -> int:
        """How many passages have a word."""
        ...

    def size(self) -> int:
        """How many passages there are."""
        ...


class HasPassage(Protocol):
    @property
    def passage(self) -> Passage: ...


class LargeSearch:
    """As `Search`, over what an index holds: it names the candidates, and the same rule decides among them.

    Args:
        whole: the index.
        load: the encoder; takes half a second, so in a thread.
        by_meaning: the index holds vectors of this encoder; else candidates are named by words alone, and most that
            is asked in other words is missed.
    """

    def __init__(self, whole: Whole, load: Callable[[], Encode] = load_encoder, *, by_meaning: bool = False) -> None:
        self._whole = whole
        self._encode = _loaded(load)
        self._by_meaning = by_meaning

    def answering(self, question: str) -> tuple[Passage, ...]:
        """One to three passages, the best first; none where nothing answers the question. Takes half a second."""
        vector = self._encode([asked_in(question)])[0] if self._encode and self._by_meaning else None
        candidates = [found.passage for found in self._whole.find(question, limit=CANDIDATES, vector=vector)]
        if not candidates:
            return ()
        size = self._whole.size()
        terms = terms_in(subject(asked_in(question)))
        rarity = {stem: _rarity(size, self._whole.count(word)) for stem, word in terms.items()}
        return _search(candidates, self._encode, rarity).answering(question)


def open_search(passages: Sequence[Passage], load: Callable[[], Encode] | None = load_encoder) -> Search:
    """Builds the index: about two seconds for a hundred passages, so in a thread. Works without an encoder, too.

    Args:
        passages: what is searched.
        load: the encoder; None: by words alone, which takes no time.
    """
    return _search(passages, _loaded(load) if passages and load else None)


def _search(passages: Sequence[Passage], encode: Encode | None, rarity: dict[str, float] | None = None) -> Search:
    holders: dict[str, list[int]] = {}
    headings: dict[str, tuple[Passage, ...]] = {}
    for position, passage in enumerate(passages):
        for stem in terms_in(_headed(passage, passage.text)):
            holders.setdefault(stem, []).append(position)
        if (heading := _heading(passage)).endswith("?"):
            headings[plain(heading)] = (*headings.get(plain(heading), ()), passage)
    return Search(
        passages=tuple(passages),
        holders={stem: np.array(positions, np.int64) for stem, positions in holders.items()},
        rarity=rarity,
        headings=headings,
        meaning=_meaning(passages, encode) if passages and encode else None,
    )


def _rarity(passages: int, held_by: int) -> float:
    return math.log(1 + passages / (0.5 + held_by))


def asked_in(message: str) -> str:
    """What a message asks: its questions where it says other things as well, else its beginning."""
    if "?" in message.rstrip()[:-1] or len(message) > MAX_QUESTION_CHARS:
        questions = [sentence for sentence in sentences(message) if sentence.endswith("?")]
        message = " ".join(questions) or message
    return message[:MAX_QUESTION_CHARS]


def terms_in(text: str) -> Terms:
    """The words that say what a text is about."""
    found = words(text)
    stemmer: Any = import_module("snowballstemmer").stemmer("english")
    return dict(zip(stemmer.stemWords(found), found, strict=True))


def _loaded(load: Callable[[], Encode]) -> Encode | None:
    try:
        return load()
    except Exception as error:
        # Packages with compiled parts fail in many ways on a strange machine; the search must still work.
        log.warning("Searching by words alone, so rewordings are missed: no encoder (%s)", type(error).__name__)
        log.debug("Loading the encoder failed", exc_info=True)
        return None


def _meaning(passages: Sequence[Passage], encode: Encode) -> Meaning:
    parts: list[str] = []
    starts: list[int] = []
    for passage in passages:
        starts.append(len(parts))
        parts.append(_headed(passage, passage.text))
        inside = sentences(passage.text)
        if len(inside) > 1:
            parts.extend(_headed(passage, sentence) for sentence in inside)
    return Meaning(encode, encode(parts), np.array(starts, np.int64))


def _heading(passage: Passage) -> str:
    """The nearest one: those above it say what the whole file is about."""
    return passage.heading.rpartition(" › ")[2]


def _headed(passage: Passage, text: str) -> str:
    heading = _heading(passage)
    return f"{heading}. {text}" if heading else text
