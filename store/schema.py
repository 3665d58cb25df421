"""Brings the tables of a database to the schema of this program, whichever earlier program made them."""

from __future__ import annotations

import logging
from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, String, Table, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from store.records import StoreError

log = logging.getLogger(__name__)

NEWEST = "0003"
"""The last of the revisions. It stands here so that a start with nothing to do need not import Alembic."""

REVISIONS = Path(__file__).parent / "revisions"

_MIGRATING = 3_141_592_653
"""Names the lock that processes which start at once on one PostgreSQL wait for."""

_version = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))


def upgrade(connection: Connection, to: str = NEWEST) -> None:
    """Within the connection's transaction: all of it is kept, or none.

    Raises:
        StoreError: the tables are of a newer program.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL lock_timeout = '60s'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _MIGRATING})
    found = _found(connection)
    if found == NEWEST:
        return
    if found is not None and found > NEWEST:
        raise StoreError(
            f"the database is of a newer program (schema {found!r}; this one knows {NEWEST!r}): "
            "run that program, or set DATABASE_URL or DATA_DIR to another database"
        )
    _migrate(connection, found, to)
    log.info("The database has the tables of schema %s now", to)


def _found(connection: Connection) -> str | None:
    """The revision of the tables; None if they are none or older than revisions are."""
    if not inspect(connection).has_table(_version.name):
        return None
    return connection.execute(select(_version.c.version_num)).scalar_one_or_none()


def _migrate(connection: Connection, found: str | None, to: str) -> None:
    # Most starts have nothing to migrate, and do without the time that this takes.
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext, RevisionStep
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(REVISIONS), version_locations=[str(REVISIONS)])
    missing = reversed(list(scripts.iterate_revisions(to, found or "base")))
    steps = [RevisionStep(scripts.revision_map, script, is_upgrade=True) for script in missing]

    def planned(_heads: object, _context: object) -> list[RevisionStep]:
        return steps

    try:
        context = MigrationContext.configure(connection, opts={"fn": planned})
        with Operations.context(context):
            context.run_migrations()
    except SQLAlchemyError as error:
        raise StoreError("the database could not be brought up to date; nothing in it was changed") from error
