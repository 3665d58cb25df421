"""Rankings by meaning, and two rankings made one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent.finding.index_file import fact

Floats = NDArray[np.float32]

CANDIDATES = 400
"""So many passages, the nearest by their sketches, are compared by their vectors."""
SMOOTHING = 10
"""Of reciprocal ranks: how little the first places differ."""
WORDS_WEIGHT = 0.5
"""Of the ranking by words beside the one by meaning. Words find names and numbers, and much that is beside the point:
with equal weights fewer questions are answered than by meaning alone."""


@dataclass(frozen=True, slots=True)
class Sketches:
    """For each passage the signs of its vector, as bits: a thirty-second of the memory, and quick to compare."""

    version: int
    """Of the index, when they were read."""
    passages: NDArray[np.int64]
    vectors: NDArray[np.int64]
    """Ids, row by row."""
    bits: NDArray[np.uint64]
    """Column by column, which is quick to add up."""
    width: int
    """Of the vectors; 0 where there are none."""
    share: float
    """Of the passages, those that have a vector."""

    def nearest(self, connection: sqlite3.Connection, vector: Floats, limit: int) -> list[int]:
        """Ids of passages, the nearest in meaning first."""
        if not len(self.passages) or len(vector) != self.width:
            return []
        rows = np.arange(len(self.passages))
        if len(rows) > CANDIDATES:
            rows = np.argpartition(_apart(self.bits, sketch(vector)), CANDIDATES)[:CANDIDATES]
        wanted = self.vectors[rows].tolist()
        marks = ",".join("?" * len(wanted))
        stored: dict[int, bytes] = dict(
            connection.execute(f"SELECT id, vector FROM vectors WHERE id IN ({marks})", wanted).fetchall()
        )
        matrix = np.frombuffer(b"".join(stored[each] for each in wanted), np.int8).reshape(-1, self.width)
        # Not as a matrix product: its library wakes threads, which takes longer than so small a sum.
        order = np.argsort(-np.einsum("ij,j->i", unit(matrix), vector), kind="stable")[:limit]
        return self.passages[rows[order]].tolist()


def read_sketches(connection: sqlite3.Connection, version: int) -> Sketches:
    rows: list[tuple[int, int, bytes]] = connection.execute(
        "SELECT p.id, s.id, s.bits FROM passages p JOIN sketches s ON s.digest = p.digest ORDER BY p.id"
    ).fetchall()
    everything: int = connection.execute("SELECT count(*) FROM passages").fetchone()[0]
    bits = np.frombuffer(b"".join(row[2] for row in rows), np.uint64).reshape(max(1, len(rows)), -1)
    return Sketches(
        version=version,
        passages=np.array([row[0] for row in rows], np.int64),
        vectors=np.array([row[1] for row in rows], np.int64),
        bits=np.ascontiguousarray(bits.T),
        width=int(fact(connection, "width")),
        share=len(rows) / max(1, everything),
    )


def sketch(vector: Floats) -> NDArray[np.uint64]:
    """Its signs, padded to whole words of eight bytes."""
    bits = np.packbits(vector > 0)
    return np.pad(bits, (0, -len(bits) % 8)).view(np.uint64)


def small(vector: Floats) -> NDArray[np.int8]:
    """In a quarter of the space: what is lost is far less than the nearness of two passages differs."""
    return np.rint(vector * (127 / max(float(np.abs(vector).max()), 1e-9))).astype(np.int8)


def unit(vectors: object, width: int = 0) -> Floats:
    """Rows of length one.

    Raises:
        ValueError: they are no vectors, or not as wide as they should be.
    """
    try:
        rows = np.asarray(vectors, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError("what should be vectors are none") from error
    if rows.ndim != 2 or not rows.shape[1] or not np.isfinite(rows).all():
        raise ValueError("what should be vectors are none")
    if width and rows.shape[1] != width:
        raise ValueError(f"vectors have {rows.shape[1]} numbers instead of {width}")
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)).astype(np.float32)


def fused(by_words: Sequence[int], by_meaning: Sequence[int] = ()) -> dict[int, float]:
    """By reciprocal rank: what stands high in one ranking or fairly high in both, the best first."""
    scores: dict[int, float] = {}
    for ranking, weight in ((by_words, WORDS_WEIGHT), (by_meaning, 1.0)):
        for rank, each in enumerate(ranking, start=1):
            scores[each] = scores.get(each, 0.0) + weight / (SMOOTHING + rank)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def _apart(bits: NDArray[np.uint64], signs: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """In how many signs each passage differs."""
    apart = np.zeros(bits.shape[1], np.uint16)
    for column, word in zip(bits, signs, strict=True):
        apart += np.bitwise_count(column ^ word)
    return apart
