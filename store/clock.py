"""The time: the machine's, and by how much the database's differs from it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, func, select


def utc_now() -> datetime:
    return datetime.now(UTC)


def ahead_of(connection: Connection, clock: Callable[[], datetime]) -> timedelta:
    """By how much the database is ahead of this clock. SQLite has none of its own: its processes share a machine."""
    if connection.dialect.name == "sqlite":
        return timedelta(0)
    return connection.execute(select(func.now())).scalar_one() - clock()
