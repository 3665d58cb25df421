"""Opens the database and makes its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, make_url, select
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from store.records import StoreError
from store.tables import SCHEMA_VERSION, metadata, schema_version

WRITES = {"sqlite_begin": "BEGIN IMMEDIATE"}
"""Execution options of a connection that will write: it takes SQLite's lock first, instead of failing at its
first write because another connection wrote after it had read."""


def open_engine(url: str) -> Engine:
    """The engine of a database whose tables are there.

    Raises:
        StoreError: the address cannot be used, or the tables are of a newer program.
    """
    try:
        address = make_url(url)
    except ArgumentError:
        raise StoreError("DATABASE_URL: needs an address such as postgresql+psycopg://user:password@host/db") from None
    is_sqlite = address.get_backend_name() == "sqlite"
    if is_sqlite:
        _make_folder(address)
    try:
        # Statements carry visitors' words: they do not belong in the log.
        engine = create_engine(address, hide_parameters=True, pool_pre_ping=not is_sqlite)
    except (SQLAlchemyError, ImportError) as error:
        raise StoreError(f"DATABASE_URL: its driver {address.drivername!r} is not installed") from error
    if is_sqlite:
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    try:
        with engine.execution_options(**WRITES).begin() as connection:
            _make_tables(connection)
    except SQLAlchemyError as error:
        engine.dispose()
        raise StoreError("the database cannot be opened or written: check DATABASE_URL or DATA_DIR") from error
    except StoreError:
        engine.dispose()
        raise
    return engine


def _make_folder(address: URL) -> None:
    if not address.database or address.database == ":memory:":
        raise StoreError("DATABASE_URL: SQLite needs a file, such as sqlite:///data/replica.sqlite3")
    folder = Path(address.database).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder {str(folder)!r} cannot be made: set DATA_DIR to one that can") from error


def _make_tables(connection: Connection) -> None:
    """Makes what is missing: a table that came later is no other schema, since older programs do without it."""
    known = inspect(connection).has_table(schema_version.name)
    found = connection.execute(select(schema_version.c.version)).scalar_one() if known else SCHEMA_VERSION
    if found > SCHEMA_VERSION:
        raise StoreError(f"the database is of a newer program (schema {found}; this one knows {SCHEMA_VERSION})")
    metadata.create_all(connection)
    if not known:
        connection.execute(insert(schema_version).values(version=SCHEMA_VERSION))


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # BEGIN is ours to say, see WRITES
    for pragma in ("busy_timeout = 10000", "journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))
