"""The file that the index is kept in: many threads and processes read it, and it is made anew when it is of no use."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Generator
from pathlib import Path

log = logging.getLogger(__name__)

FORMAT = 0x4B4E01
"""Raised with every change of the tables: a file of another format is thrown away, not converted."""

BUSY_S = 5.0
"""How long to wait for another process that writes."""
MOST_REPAIRS = 3
"""A file that breaks more often is on a failing disk."""

TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    checked_ns INTEGER NOT NULL, hash BLOB NOT NULL, note TEXT NOT NULL
);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL, digest BLOB NOT NULL
);
CREATE INDEX passages_of_file ON passages (file);
CREATE INDEX passages_of_digest ON passages (digest);
CREATE VIRTUAL TABLE words USING fts5(
    heading, text, content='', tokenize='porter unicode61 remove_diacritics 2'
);
CREATE TABLE sketches (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, bits BLOB NOT NULL);
CREATE TABLE vectors (id INTEGER PRIMARY KEY, vector BLOB NOT NULL);
"""
"""The words of passages are indexed and not kept twice; sketches stand apart from vectors, to be read without them."""

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
_LOST = -1
_NO_DAMAGE = (0, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT)


class NoFullText(Exception):
    """This Python's SQLite cannot search text. The message says what to do."""


class Lost(Exception):
    """The file is not the one that was opened: someone removed or replaced it."""


class OtherFormat(Exception):
    """The file was made by another version of the program."""


class IndexFile:
    """Owns the connections, one for each thread; one for all where there is no file.

    Args:
        path: None keeps the index in memory.
        edition: what the passages were made by; those of another edition are of no use.
    """

    def __init__(self, path: Path | None, edition: str) -> None:
        self.path = path
        self.problem = ""
        """Why there is no file although one was asked for, in words that say what to do."""
        self._edition = edition
        self._mine = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._memory: sqlite3.Connection | None = None
        self._memory_lock = threading.Lock()
        self.age = 0
        """Raised with each repair: connections of before are of no more use."""
        self._repairs = 0
        _require_full_text()
        self._open(replace_others=True)

    @contextlib.contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """A consistent view.

        Raises:
            Lost, sqlite3.Error: see `repair`.
        """
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """All or nothing. Raises as `reading` does."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection
            connection.execute("UPDATE facts SET value = value + 1 WHERE name = 'version'")

    def repair(self, fault: Exception) -> bool:
        """Whether there is an index again after a fault: empty, in a new file or else in memory."""
        code = primary_code(fault)
        if code in _NO_DAMAGE or self.path is None:
            return False
        self._repairs += 1
        self.age += 1
        if code != _LOST and code not in _DAMAGED:
            self._stay_in_memory(_told(fault))
        elif self._repairs > MOST_REPAIRS:
            self._stay_in_memory("its file was lost or damaged again and again")
        else:
            log.warning("The index of the knowledge was lost or damaged: it is built again")
            if code in _DAMAGED:
                _discard(self.path)
            self._open(replace_others=False)
        return True

    def close(self) -> None:
        """Gives back the connections of all threads."""
        while self._opened:
            self._opened.pop().close()
        if self._memory is not None:
            self._memory.close()

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Generator[sqlite3.Connection]:
        memory = self._memory
        with self._memory_lock if memory else contextlib.nullcontext():
            connection = memory or self._connection()
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # Some faults have ended the transaction already.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _connection(self) -> sqlite3.Connection:
        """This thread's own."""
        path = self.path
        identity = path and _identity(path)
        if path is None or identity is None:  # None: another thread has just moved the index to memory
            raise Lost
        if getattr(self._mine, "age", None) != self.age:
            self._mine.connection = self._connect(path, "rw")
            self._mine.age, self._mine.identity = self.age, identity
        elif self._mine.identity != identity:
            raise Lost
        return self._mine.connection

    def _connect(self, path: Path, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_S,
            isolation_level=None,
            check_same_thread=False,  # closed by the thread that closes the index
        )
        self._opened.append(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _open(self, *, replace_others: bool) -> None:
        if self.path is None:
            memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            self._prepare(memory)
            self._memory = memory
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._open_or_replace(self.path, replace_others=replace_others)
        except (OSError, sqlite3.Error, OtherFormat) as error:
            self._stay_in_memory(_told(error))

    def _open_or_replace(self, path: Path, *, replace_others: bool) -> None:
        try:
            self._prepare(self._connect(path, "rwc"))
        except (sqlite3.Error, OtherFormat) as error:
            # While it runs, a process of another version may share the folder: they must not replace in turns.
            useless = replace_others if isinstance(error, OtherFormat) else primary_code(error) in _DAMAGED
            if not useless:
                raise
            log.info("The index of the knowledge is damaged or of another version: it is built again")
            _discard(path)
            self._prepare(self._connect(path, "rwc"))

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = WAL").close()
        if _is_empty(connection):
            connection.execute("BEGIN IMMEDIATE")
            try:
                if _is_empty(connection):  # no other process was first
                    _make_tables(connection, self._edition)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        if _format(connection) != FORMAT or fact(connection, "edition") != self._edition:
            raise OtherFormat

    def _stay_in_memory(self, why: str) -> None:
        self.problem = (
            f"the index cannot be kept in {str(self.path)!r} ({why}): it is built in memory, at each start anew; "
            "check DATA_DIR"
        )
        log.warning("The knowledge: %s", self.problem)
        self.path = None
        self._open(replace_others=False)


def fact(connection: sqlite3.Connection, name: str) -> str | int:
    return connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()[0]


def primary_code(fault: Exception) -> int:
    """SQLite's code for a fault, without its details; 0 where it has none, as for a closed connection."""
    return _LOST if isinstance(fault, Lost) else getattr(fault, "sqlite_errorcode", 0) & 0xFF


def has_full_text(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.probe USING fts5(text)")
        connection.execute("DROP TABLE temp.probe")
    except sqlite3.DatabaseError:
        return False
    return True


def _require_full_text() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        if not has_full_text(connection):
            raise NoFullText(
                f"the SQLite {sqlite3.sqlite_version} of this Python has no FTS5, so large knowledge cannot be "
                "searched; use a Python from python.org, your distribution or uv, or keep the knowledge small"
            )


def _make_tables(connection: sqlite3.Connection, edition: str) -> None:
    for statement in TABLES.split(";\n"):
        connection.execute(statement)
    # A match in a heading counts twice.
    connection.execute("INSERT INTO words (words, rank) VALUES ('rank', 'bm25(2.0, 1.0)')")
    facts = {"edition": edition, "version": 0, "space": "", "width": 0}
    connection.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def _discard(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_empty(connection: sqlite3.Connection) -> bool:
    return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _format(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _told(error: Exception) -> str:
    """A fault in words without what it may hold of texts or paths."""
    if isinstance(error, OtherFormat):
        return "another version of the program uses it"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return getattr(error, "sqlite_errorname", type(error).__name__)
