"""Passages on disk, found by their words and their meaning; only files that changed are read again."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from agent.finding import index_rows as rows
from agent.finding.asking import Asked, read_question
from agent.finding.fusing import Floats, Sketches, fused, read_sketches, unit
from agent.finding.index_file import IndexFile, Lost, fact
from agent.finding.index_rows import Content, Found, Kept
from agent.finding.watching import stamp_of
from agent.knowledge import Passage

log = logging.getLogger(__name__)

Reader = Callable[[Path], tuple[Sequence[Passage], str]]
"""The passages of a file, and a note that is kept with it, such as the report on it. May raise."""
Outcome = Literal["unchanged", "read", "removed", "failed"]
T = TypeVar("T")

FILE_NAME = "knowledge.db"
MOST = 0.9
"""Meaning counts when so many passages have vectors: before, it would prefer those that happen to have them."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a renewal did, by the names of files; false where it did nothing."""

    read: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """The reader raised: nothing of these files can be found, and they are tried again each time."""

    def __bool__(self) -> bool:
        return bool(self.read or self.removed or self.failed)


class Index:
    """Owns the file. Threads share it. All calls block: from asynchronous code through `asyncio.to_thread`."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file
        self._renewing = threading.RLock()
        self._source: tuple[Reader, Mapping[str, Path]] | None = None
        self._sketches: Sketches | None = None

    @property
    def problem(self) -> str:
        """Why the index lives in memory although it should not; empty when all is well."""
        return self._file.problem

    def renew(self, read: Reader, files: Mapping[str, Path]) -> Renewal:
        """Makes the index hold these files, by the names that their passages carry, and no others.

        Raises:
            sqlite3.Error: another process has been writing for longer than we wait.
        """
        with self._renewing:
            self._source = (read, dict(files))
            while True:
                try:
                    return self._renew(read, files)
                except (sqlite3.Error, Lost) as fault:
                    if not self._file.repair(fault):
                        raise

    def find(
        self, question: str, context: str = "", limit: int = 8, vector: Sequence[float] | Floats | None = None
    ) -> tuple[Found, ...]:
        """The passages nearest to a question, the best first.

        Args:
            question: whatever a visitor wrote.
            context: the previous question and answer; counts little, and only where the question is short of words.
            limit: at most so many.
            vector: of the question, where passages have vectors.
        """
        asked = read_question(question, context)
        meant = None if vector is None else unit([vector])[0]
        try:
            return self._reading(lambda connection: self._find(connection, asked, limit, meant))
        except (sqlite3.Error, Lost) as fault:
            log.warning("The knowledge could not be searched (%s)", getattr(fault, "sqlite_errorname", "closed"))
            return ()

    def count(self, word: str) -> int:
        """How many passages have a word, in any of its forms."""
        return self._reading(lambda connection: rows.count(connection, word))

    def size(self) -> int:
        """How many passages there are."""
        return self._reading(rows.size)

    def passages(self) -> tuple[Passage, ...]:
        """All of them, by file, in their order."""
        return self._reading(lambda connection: tuple(rows.all_passages(connection)))

    def beginnings(self, files: int, each: int) -> tuple[Passage, ...]:
        """The first passages of the first files, by file, in their order."""
        return self._reading(lambda connection: tuple(rows.beginnings(connection, files, each)))

    def under(self, label: str) -> tuple[Passage, ...]:
        """What a label names: a file, or a file and its headings."""
        return self._reading(lambda connection: tuple(rows.under(connection, label)))

    def labels(self) -> frozenset[str]:
        """What the passages are called."""
        return self._reading(rows.labels)

    def contents(self) -> dict[str, Content]:
        """What is kept, by the names of files."""
        return self._reading(rows.contents)

    def without_vector(self, space: str, after: int, limit: int) -> list[tuple[int, bytes, str]]:
        """Passages that have none, from a place on: place, digest and text. Vectors of other spaces are dropped."""
        if self._reading(lambda connection: fact(connection, "space")) != space:
            with self._renewing, self._file.writing() as connection:
                rows.begin_space(connection, space)
        return self._reading(lambda connection: rows.without_vector(connection, after, limit))

    def keep_vectors(self, space: str, digests: Sequence[bytes], vectors: object) -> None:
        """Keeps the vectors of passages, unless the space has changed since.

        Raises:
            ValueError: there are not as many, or not as wide as those that are kept.
        """
        with self._renewing, self._file.writing() as connection:
            if fact(connection, "space") == space:
                rows.keep_vectors(connection, digests, vectors)

    def close(self) -> None:
        self._file.close()

    def _reading(self, work: Callable[[sqlite3.Connection], T]) -> T:
        age = self._file.age
        try:
            with self._file.reading() as connection:
                return work(connection)
        except (sqlite3.Error, Lost) as fault:
            self._restore(fault, age)
        with self._file.reading() as connection:
            return work(connection)

    def _restore(self, fault: Exception, age: int) -> None:
        """Builds the index again, unless another thread has by now."""
        with self._renewing:
            if self._file.age != age:
                return
            if not self._file.repair(fault):
                raise fault
            if self._source:
                self.renew(*self._source)

    def _find(
        self, connection: sqlite3.Connection, asked: Asked, limit: int, meant: Floats | None
    ) -> tuple[Found, ...]:
        by_words = rows.by_words(connection, asked)
        by_meaning = [] if meant is None else self._by_meaning(connection, meant)
        return rows.fetch(connection, fused(by_words, by_meaning), limit)

    def _by_meaning(self, connection: sqlite3.Connection, meant: Floats) -> list[int]:
        try:
            sketches = self._current_sketches(connection)
            return sketches.nearest(connection, meant, rows.POOL) if sketches.share >= MOST else []
        except (KeyError, ValueError):
            log.warning("The vectors of the knowledge are damaged: it is searched by words alone")
            return []

    def _current_sketches(self, connection: sqlite3.Connection) -> Sketches:
        version = int(fact(connection, "version"))
        sketches = self._sketches
        if sketches is None or sketches.version != version:
            self._sketches = sketches = read_sketches(connection, version)
        return sketches

    def _renew(self, read: Reader, files: Mapping[str, Path]) -> Renewal:
        with self._file.reading() as connection:
            known = rows.kept_files(connection)
        done: dict[str, Outcome] = {name: "removed" for name in known if name not in files}
        done |= {name: self._renew_file(read, name, path, known.get(name)) for name, path in files.items()}
        for name, outcome in done.items():
            if outcome in ("removed", "failed") and name in known:
                with self._file.writing() as connection:
                    rows.remove(connection, name)
        renewal = Renewal(
            read=_those(done, "read"),
            removed=tuple(name for name in _those(done, "removed") if name in known),
            failed=_those(done, "failed"),
        )
        if renewal:
            with self._file.writing() as connection:
                rows.remove_orphans(connection)
        return renewal

    def _renew_file(self, read: Reader, name: str, path: Path, known: Kept | None) -> Outcome:
        checked = time.time_ns()
        try:
            stamp = stamp_of(path)
        except OSError:
            return "removed"
        if known and known.still_is(stamp):
            return "unchanged"
        digest = _hash_of(path)
        if known and digest and digest == known.hash:
            with self._file.writing() as connection:
                rows.restamp(connection, name, Kept(stamp, checked, digest))
            return "unchanged"
        try:
            passages, note = read(path)
        except Exception as error:
            # A reader may fail in any way on a damaged file; the others must still be read.
            log.warning("Reading %r failed (%s)", name, type(error).__name__)
            log.debug("Reading %r failed", name, exc_info=True)
            return "failed"
        with self._file.writing() as connection:
            rows.add(connection, name, Kept(stamp, checked, digest, note), passages)
        return "read"


def open_index(folder: Path | None, edition: str = "") -> Index:
    """Opens the index in a folder, or makes it. It holds nothing new before `renew`.

    Args:
        folder: None, or one that cannot be written, keeps it in memory.
        edition: names what reads the files; passages by another edition are thrown away.

    Raises:
        NoFullText: this Python's SQLite cannot search text.
    """
    return Index(IndexFile(folder / FILE_NAME if folder else None, edition))


def _those(done: Mapping[str, Outcome], outcome: Outcome) -> tuple[str, ...]:
    return tuple(name for name, its_outcome in done.items() if its_outcome == outcome)


def _hash_of(path: Path) -> bytes:
    """Empty where the file cannot be opened: the reader says why."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").digest()
    except OSError:
        return b""
