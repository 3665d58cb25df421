"""Rankings by meaning, and two rankings made one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent.index_file import fact

Floats = NDArray[np.float32]

CANDIDATES = 1000
"""So many passages, the nearest by their sketches, are compared exactly."""
SMOOTHING = 60
"""Of reciprocal ranks: how little the first places differ. The value of the paper, and everybody's."""


@dataclass(frozen=True, slots=True)
class Sketches:
    """For each passage the signs of its vector, as bits: a thirty-second of the memory, and quick to compare."""

    version: int
    """Of the index, when they were read."""
    passages: NDArray[np.int64]
    vectors: NDArray[np.int64]
    """Ids, row by row."""
    bits: NDArray[np.uint8]
    width: int
    """Of the vectors; 0 where there are none."""
    share: float
    """Of the passages, those that have a vector."""

    def nearest(self, connection: sqlite3.Connection, vector: Floats, limit: int) -> list[int]:
        """Ids of passages, the nearest in meaning first."""
        if not len(self.bits) or len(vector) != self.width:
            return []
        rows = np.arange(len(self.bits))
        if len(rows) > CANDIDATES:
            rows = np.argpartition(_apart(self.bits, sketch(vector)), CANDIDATES)[:CANDIDATES]
        wanted = self.vectors[rows].tolist()
        marks = ",".join("?" * len(wanted))
        stored: dict[int, bytes] = dict(
            connection.execute(f"SELECT id, vector FROM vectors WHERE id IN ({marks})", wanted).fetchall()
        )
        matrix = np.frombuffer(b"".join(stored[each] for each in wanted), np.float16).reshape(-1, self.width)
        order = np.argsort(-(matrix.astype(np.float32) @ vector), kind="stable")[:limit]
        return self.passages[rows[order]].tolist()


def read_sketches(connection: sqlite3.Connection, version: int) -> Sketches:
    rows: list[tuple[int, int, bytes]] = connection.execute(
        "SELECT p.id, s.id, s.bits FROM passages p JOIN sketches s ON s.digest = p.digest ORDER BY p.id"
    ).fetchall()
    everything: int = connection.execute("SELECT count(*) FROM passages").fetchone()[0]
    bits: Any = np.frombuffer(b"".join(row[2] for row in rows), np.uint8).reshape(len(rows), -1) if rows else None
    return Sketches(
        version=version,
        passages=np.array([row[0] for row in rows], np.int64),
        vectors=np.array([row[1] for row in rows], np.int64),
        bits=bits if rows else np.zeros((0, 0), np.uint8),
        width=int(fact(connection, "width")),
        share=len(rows) / max(1, everything),
    )


def sketch(vector: Floats) -> NDArray[np.uint8]:
    """Its signs, padded to whole words of eight bytes."""
    bits = np.packbits(vector > 0)
    return np.pad(bits, (0, -len(bits) % 8))


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


def fused(*rankings: Sequence[int]) -> dict[int, float]:
    """By reciprocal rank: what stands high in one ranking or fairly high in both, the best first."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, each in enumerate(ranking, start=1):
            scores[each] = scores.get(each, 0.0) + 1 / (SMOOTHING + rank)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def _apart(bits: NDArray[np.uint8], signs: NDArray[np.uint8]) -> NDArray[np.int64]:
    """In how many signs each row differs."""
    different = np.bitwise_xor(bits.view(np.uint64), signs.view(np.uint64))
    return np.bitwise_count(different).sum(axis=1, dtype=np.int64)
