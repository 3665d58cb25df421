"""What the index asks of its file, inside a transaction that the caller began."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agent.finding.asking import Asked, expression, spaced
from agent.finding.fusing import Floats, sketch, small, unit
from agent.finding.index_file import fact
from agent.finding.watching import Stamp
from agent.knowledge import Passage

CONTEXT_WEIGHT = 0.5
"""Of the best match with what was said before, beside the best match with the question."""
POOL, WIDE_POOL = 50, 200
"""How many passages a ranking holds; more where two rankings by words are added up."""
SHORTEST_BEGINNING = 4
SETTLING_NS = 2_000_000_000
"""A file that changed so shortly before it was looked at may change again within the same tick of its clock."""


@dataclass(frozen=True, slots=True)
class Found:
    passage: Passage
    score: float
    """Comparable within one answer only."""
    id: str
    """Of the file, heading and text: the same after a restart, and on another machine."""


@dataclass(frozen=True, slots=True)
class Content:
    """What is kept of one file."""

    note: str
    passages: int
    chars: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A file as it was when it was last looked at."""

    stamp: Stamp
    checked_ns: int
    hash: bytes
    """Empty where the file could not be opened."""
    note: str = ""

    def still_is(self, stamp: Stamp) -> bool:
        """Whether the stamp alone says that nothing has changed."""
        return bool(self.hash) and self.stamp == stamp and stamp.mtime_ns < self.checked_ns - SETTLING_NS


def kept_files(connection: sqlite3.Connection) -> dict[str, Kept]:
    rows = connection.execute("SELECT name, size, mtime_ns, checked_ns, hash FROM files")
    return {name: Kept(Stamp(size, mtime), checked, digest) for name, size, mtime, checked, digest in rows}


def restamp(connection: sqlite3.Connection, name: str, kept: Kept) -> None:
    """The same text with another date."""
    row = (kept.stamp.size, kept.stamp.mtime_ns, kept.checked_ns, name)
    connection.execute("UPDATE files SET size = ?, mtime_ns = ?, checked_ns = ? WHERE name = ?", row)


def add(connection: sqlite3.Connection, name: str, kept: Kept, passages: Iterable[Passage]) -> None:
    """Puts a file in the place of what was known of it."""
    there = connection.execute("SELECT hash FROM files WHERE name = ?", (name,)).fetchone()
    if there and kept.hash and there[0] == kept.hash:
        return  # another process was first
    remove(connection, name)
    row = (name, kept.stamp.size, kept.stamp.mtime_ns, kept.checked_ns, kept.hash, _storable(kept.note))
    columns = "name, size, mtime_ns, checked_ns, hash, note"
    file = connection.execute(f"INSERT INTO files ({columns}) VALUES (?, ?, ?, ?, ?, ?)", row).lastrowid
    place: int = connection.execute("SELECT coalesce(max(id), 0) FROM passages").fetchone()[0]
    texts = [(_storable(passage.heading), _storable(passage.text)) for passage in passages]
    connection.executemany(
        "INSERT INTO passages VALUES (?, ?, ?, ?, ?)",
        ((each, file, heading, text, digest(heading, text)) for each, (heading, text) in enumerate(texts, place + 1)),
    )
    connection.executemany(
        "INSERT INTO words (rowid, heading, text) VALUES (?, ?, ?)",
        ((each, spaced(heading), spaced(text)) for each, (heading, text) in enumerate(texts, place + 1)),
    )


def remove(connection: sqlite3.Connection, name: str) -> None:
    """A file with its passages; nothing where it is not known."""
    query = "SELECT p.id, p.heading, p.text FROM passages p JOIN files f ON f.id = p.file WHERE f.name = ?"
    rows = connection.execute(query, (name,)).fetchall()
    # The words are not kept as text: to be taken out they have to be told once more, as they were.
    connection.executemany(
        "INSERT INTO words (words, rowid, heading, text) VALUES ('delete', ?, ?, ?)",
        ((each, spaced(heading), spaced(text)) for each, heading, text in rows),
    )
    connection.execute("DELETE FROM passages WHERE file = (SELECT id FROM files WHERE name = ?)", (name,))
    connection.execute("DELETE FROM files WHERE name = ?", (name,))


def remove_orphans(connection: sqlite3.Connection) -> None:
    """Vectors of passages that are no more. After all files: a passage may only have moved to another one."""
    orphans = "SELECT id FROM sketches WHERE digest NOT IN (SELECT digest FROM passages)"
    connection.execute(f"DELETE FROM vectors WHERE id IN ({orphans})")
    connection.execute("DELETE FROM sketches WHERE digest NOT IN (SELECT digest FROM passages)")


def by_words(connection: sqlite3.Connection, asked: Asked) -> list[int]:
    """Ids of passages that share words with a question, the best first."""
    if asked.heading and (under := _scored(connection, f'heading : "{asked.heading}"', POOL)):
        return list(under)
    beginnings = frozenset(
        term for term in asked.terms if len(term) >= SHORTEST_BEGINNING and not _is_known(connection, term)
    )
    scores = _scored(connection, expression(asked.terms, beginnings=beginnings), WIDE_POOL if asked.before else POOL)
    before = _scored(connection, expression(asked.before), WIDE_POOL)
    # However many words were said before, together they weigh less than those of the question.
    weight = CONTEXT_WEIGHT * max(scores.values(), default=1.0) / max(*before.values(), 1e-9, 1e-9)
    for each, score in before.items():
        scores[each] = scores.get(each, 0.0) + weight * score
    return sorted(scores, key=lambda each: (-scores[each], each))


def fetch(connection: sqlite3.Connection, scores: dict[int, float], limit: int) -> tuple[Found, ...]:
    """The passages, the best first; the same text in two files once."""
    found: dict[bytes, Found] = {}
    query = "SELECT f.name, p.heading, p.text, p.digest FROM passages p JOIN files f ON f.id = p.file WHERE p.id = ?"
    for each, score in scores.items():
        if len(found) >= limit:
            break
        row = connection.execute(query, (each,)).fetchone()
        if row is None:
            continue  # the file is damaged where SQLite does not see it
        name, heading, text, its_digest = row
        found.setdefault(its_digest, Found(Passage(name, heading, text), score, digest(name, heading, text).hex()))
    return tuple(found.values())


def count(connection: sqlite3.Connection, term: str) -> int:
    return connection.execute("SELECT count(*) FROM words WHERE words MATCH ?", (expression((term,)),)).fetchone()[0]


def size(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT count(*) FROM passages").fetchone()[0]


def all_passages(connection: sqlite3.Connection) -> Iterator[Passage]:
    query = "SELECT f.name, p.heading, p.text FROM passages p JOIN files f ON f.id = p.file ORDER BY f.name, p.id"
    return (Passage(*row) for row in connection.execute(query))


def beginnings(connection: sqlite3.Connection, files: int, each: int) -> Iterator[Passage]:
    """The first passages of the first files, by file, in their order."""
    for file, name in connection.execute("SELECT id, name FROM files ORDER BY name LIMIT ?", (files,)).fetchall():
        query = "SELECT heading, text FROM passages WHERE file = ? ORDER BY id LIMIT ?"
        yield from (Passage(name, *row) for row in connection.execute(query, (file, each)))


def under(connection: sqlite3.Connection, label: str) -> Iterator[Passage]:
    """What a label names: a file, or a file and its headings."""
    for file, name in connection.execute("SELECT id, name FROM files ORDER BY name").fetchall():
        if name != label and not label.startswith(f"{name} › "):
            continue
        query = "SELECT heading, text FROM passages WHERE file = ? ORDER BY id"
        found = (Passage(name, *row) for row in connection.execute(query, (file,)))
        yield from (passage for passage in found if label in (passage.file, passage.label))


def labels(connection: sqlite3.Connection) -> frozenset[str]:
    """What the passages are called."""
    query = "SELECT DISTINCT f.name, p.heading FROM passages p JOIN files f ON f.id = p.file"
    named = connection.execute(query).fetchall()
    return frozenset(label for file, heading in named for label in (file, Passage(file, heading, "").label))


def contents(connection: sqlite3.Connection) -> dict[str, Content]:
    query = (
        "SELECT f.name, f.note, count(p.id), coalesce(sum(length(p.text)), 0) FROM files f "
        "LEFT JOIN passages p ON p.file = f.id GROUP BY f.id ORDER BY f.name"
    )
    return {name: Content(*row) for name, *row in connection.execute(query)}


def begin_space(connection: sqlite3.Connection, space: str) -> None:
    """Makes room for the vectors of another model."""
    connection.execute("DELETE FROM sketches")
    connection.execute("DELETE FROM vectors")
    connection.execute("UPDATE facts SET value = ? WHERE name = 'space'", (space,))
    connection.execute("UPDATE facts SET value = 0 WHERE name = 'width'")


def without_vector(connection: sqlite3.Connection, after: int, limit: int) -> list[tuple[int, bytes, str]]:
    query = (
        "SELECT id, digest, heading, text FROM passages WHERE id > ? AND digest NOT IN (SELECT digest FROM sketches) "
        "ORDER BY id LIMIT ?"
    )
    rows = connection.execute(query, (after, limit)).fetchall()
    return [(each, its_digest, f"{heading}. {text}" if heading else text) for each, its_digest, heading, text in rows]


def keep_vectors(connection: sqlite3.Connection, digests: Sequence[bytes], vectors: object) -> None:
    rows: Floats = unit(vectors, int(fact(connection, "width")))
    if len(rows) != len(digests):
        raise ValueError(f"{len(rows)} vectors came for {len(digests)} texts")
    connection.execute("UPDATE facts SET value = ? WHERE name = 'width'", (rows.shape[1],))
    for its_digest, row in zip(digests, rows, strict=True):
        place = connection.execute(
            "INSERT OR IGNORE INTO sketches (digest, bits) VALUES (?, ?)", (its_digest, sketch(row).tobytes())
        )
        if place.rowcount:
            connection.execute("INSERT INTO vectors VALUES (?, ?)", (place.lastrowid, small(row).tobytes()))


def digest(*parts: str) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=12).digest()


def _is_known(connection: sqlite3.Connection, term: str) -> bool:
    query = "SELECT 1 FROM words WHERE words MATCH ? LIMIT 1"
    return connection.execute(query, (expression((term,)),)).fetchone() is not None


def _scored(connection: sqlite3.Connection, query: str, limit: int) -> dict[int, float]:
    if not query:
        return {}
    rows = connection.execute(
        "SELECT rowid, -rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (query, limit)
    )
    return dict(rows.fetchall())


def _storable(text: str) -> str:
    """Halves of surrogates, from file names and damaged texts, are no UTF-8."""
    return text.encode("utf-8", "replace").decode()
