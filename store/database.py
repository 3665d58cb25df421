"""Opens the database, and has its tables brought to the newest schema."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from store.records import StoreError
from store.schema import upgrade

WRITES = {"sqlite_begin": "BEGIN IMMEDIATE"}
"""Execution options of a connection that will write: it takes SQLite's lock first, instead of failing at its
first write because another connection wrote after it had read."""


LOCKED_S = 5
"""How long a transaction waits for others that are in its way, in seconds."""

# Statements carry visitors' words: they do not belong in the log.
_SQLITE: dict[str, Any] = {"hide_parameters": True}
_SERVER: dict[str, Any] = {
    "hide_parameters": True,
    "pool_pre_ping": True,
    "connect_args": {
        "prepare_threshold": None,  # poolers that hosts put in front of a server lose prepared statements
        "connect_timeout": 5,
        "tcp_user_timeout": 10_000,  # milliseconds; a server that has gone would be waited for until Linux gives up
    },
}


def open_engine(url: str) -> Engine:
    """The engine of a database whose tables are there.

    Raises:
        StoreError: the address cannot be used, or the tables are of a newer program.
    """
    address = read_address(url)
    is_sqlite = address.get_backend_name() == "sqlite"
    if is_sqlite:
        _make_folder(address)
    try:
        engine = create_engine(address, **(_SQLITE if is_sqlite else _SERVER))
    except (SQLAlchemyError, ImportError) as error:
        raise StoreError(f"DATABASE_URL: its driver {address.drivername!r} is not installed") from error
    if is_sqlite:
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    else:
        event.listen(engine, "connect", _set_up_postgresql)
    try:
        with engine.execution_options(**WRITES).begin() as connection:
            upgrade(connection)
    except SQLAlchemyError as error:
        engine.dispose()
        raise StoreError("the database cannot be opened or written: check DATABASE_URL or DATA_DIR") from error
    except StoreError:
        engine.dispose()
        raise
    return engine


def read_address(url: str) -> URL:
    """The address, with the driver that the requirements hold where it names PostgreSQL alone.

    Raises:
        StoreError: it is none, or of a database that the store does not know.
    """
    try:
        address = make_url(url)
    except ArgumentError:
        address = None
    if address is not None and address.drivername in ("postgres", "postgresql"):  # as hosts give it
        address = address.set(drivername="postgresql+psycopg")
    if address is None or address.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise StoreError(
            "DATABASE_URL: needs an address such as postgresql+psycopg://user:password@host/db or sqlite:///file"
        )
    return address


def _make_folder(address: URL) -> None:
    if not address.database or address.database == ":memory:":
        raise StoreError("DATABASE_URL: SQLite needs a file, such as sqlite:///data/replica.sqlite3")
    folder = Path(address.database).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder {str(folder)!r} cannot be made: set DATA_DIR to one that can") from error


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # BEGIN is ours to say, see WRITES
    wait = f"busy_timeout = {LOCKED_S * 1000}"
    with _closed_on_failure(connection):
        for pragma in (wait, "journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}").close()


def _set_up_postgresql(connection: Any, _record: object) -> None:
    with _closed_on_failure(connection):
        connection.execute(f"SET lock_timeout = '{LOCKED_S}s'")
        connection.commit()


@contextmanager
def _closed_on_failure(connection: Any) -> Generator[None]:
    """The pool does not know it yet, and would leave it open."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))
