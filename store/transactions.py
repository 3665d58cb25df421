"""Runs queries for the store: each in a transaction of its own, in a thread of the store's own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError, StatementError

from store.database import LOCKED_S, WRITES
from store.records import NotStorable, StoreError

P = ParamSpec("P")
T = TypeVar("T")

RACES = 10
"""Times that a write is begun again after another one took its number or reference."""

QUEUED_S = LOCKED_S - 1
"""Who has waited so long for a thread is told at once, in seconds; below what those in front of it were given."""

READERS = 4
WRITERS = 4

_BUSY = "the database is busy: something else has held it for too long"
_FULL = "the disk of the database is full"
_REASONS = {
    "SQLITE_BUSY": _BUSY,
    "SQLITE_FULL": _FULL,
    "SQLITE_READONLY": "the database file may not be written",
    "SQLITE_CORRUPT": "the database file is damaged",
    "55P03": _BUSY,
    "53100": _FULL,
}
"""Plain words for what SQLite and PostgreSQL (by its SQLSTATE) call these."""

_LOST_RACES = ("40P01", "40001")
"""PostgreSQL ended the transaction because it and another one waited for each other."""


class Transactions:
    """Owns the engine and its threads, so that nothing else in the process can keep the store from running.

    SQLite has one thread that writes, since it lets only one write at a time: ours wait in line, not at its lock.

    Args:
        engine: closed with this.
        longest_s: seconds after which a caller is told that the database does not answer.
    """

    def __init__(self, engine: Engine, longest_s: float = 2 * LOCKED_S) -> None:
        self._engine = engine
        self._longest_s = longest_s
        is_sqlite = engine.dialect.name == "sqlite"
        self._file = _File(engine.url.database) if is_sqlite and engine.url.database else None
        self._readers = ThreadPoolExecutor(READERS, "store-read")
        self._writers = ThreadPoolExecutor(1 if is_sqlite else WRITERS, "store-write")

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._readers.shutdown()
        self._writers.shutdown()
        self._engine.dispose()

    async def read(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(self._readers, self._engine, lambda connection: query(connection, *args, **kwargs))

    async def write(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        writer = self._engine.execution_options(**WRITES)
        return await self._run(self._writers, writer, lambda connection: query(connection, *args, **kwargs))

    async def _run(self, threads: ThreadPoolExecutor, engine: Engine, query: Callable[[Connection], T]) -> T:
        latest = time.monotonic() + QUEUED_S

        def in_thread() -> T:
            if time.monotonic() > latest:
                raise StoreError(_BUSY)
            if self._file is not None:
                self._file.check()
            return _run(engine, query)

        try:
            running = asyncio.get_running_loop().run_in_executor(threads, in_thread)
        except RuntimeError:
            raise StoreError("the store is closed") from None
        try:
            async with asyncio.timeout(self._longest_s):
                return await running
        except TimeoutError:
            raise StoreError("the database does not answer") from None


class _File:
    """The database file as it was opened: SQLite would go on writing into one that was deleted."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._opened = self._identity()

    def check(self) -> None:
        if self._identity() != self._opened:
            raise StoreError("the database file is gone, or another one stands in its place: start the program again")

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino


def _run(engine: Engine, query: Callable[[Connection], T], races: int = RACES) -> T:
    """One transaction. Who loses a race for a number or a reference starts again and sees what the winner wrote."""
    try:
        while True:
            try:
                with engine.begin() as connection:
                    return query(connection)
            except DBAPIError as error:
                races -= 1
                if races < 0 or not _lost_race(error):
                    raise
    except SQLAlchemyError as error:
        kind = NotStorable if _is_never_taken(error) else StoreError
        raise kind(_in_plain_words(error)) from error


def _is_never_taken(error: SQLAlchemyError) -> bool:
    if isinstance(error, DataError):
        return True
    return isinstance(error, StatementError) and isinstance(error.orig, ValueError | OverflowError)


def _lost_race(error: DBAPIError) -> bool:
    return isinstance(error, IntegrityError) or _code(error) in _LOST_RACES


def _in_plain_words(error: SQLAlchemyError) -> str:
    return _REASONS.get(_code(error), f"the database cannot be used ({type(error).__name__})")


def _code(error: SQLAlchemyError) -> str:
    origin = error.orig if isinstance(error, DBAPIError) else None
    return getattr(origin, "sqlite_errorname", None) or getattr(origin, "sqlstate", None) or ""
