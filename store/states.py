"""Small facts of the installation, what may be done by one process at a time, and waiting for others' writes."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, insert, or_, select, update

from store.tables import leases, states, storable


def read_state(connection: Connection, key: str) -> str | None:
    return connection.scalar(select(states.c.value).where(states.c.key == key))


def state_since(connection: Connection, key: str, moment: datetime) -> str | None:
    """None if it was written before that moment."""
    return connection.scalar(select(states.c.value).where(states.c.key == key, states.c.changed >= moment))


def write_state(connection: Connection, key: str, value: str | None, now: datetime) -> None:
    """None takes it away."""
    if value is None:
        connection.execute(delete(states).where(states.c.key == key))
        return
    changed = connection.execute(update(states).where(states.c.key == key).values(value=value, changed=now))
    if not changed.rowcount:
        connection.execute(insert(states).values(key=key, value=value, changed=now))


def take_lease(connection: Connection, name: str, holder: str, for_s: float, now: datetime) -> bool:
    values = {"holder": holder, "until": now + timedelta(seconds=for_s)}
    free = or_(leases.c.holder == holder, leases.c.until <= now)
    if connection.execute(update(leases).where(leases.c.name == name, free).values(values)).rowcount:
        return True
    if connection.execute(select(leases.c.name).where(leases.c.name == name)).first():
        return False
    connection.execute(insert(leases).values(name=name, **values))
    return True


def drop_lease(connection: Connection, name: str, holder: str) -> None:
    connection.execute(delete(leases).where(leases.c.name == name, leases.c.holder == holder))


def wait_for_others(connection: Connection, name: str) -> None:
    """Until the end of the transaction nobody else passes here with this name, so that what was read stays true.

    SQLite lets only one write at a time in any case.
    """
    if connection.dialect.name == "postgresql":
        digest = hashlib.sha256(storable(name).encode()).digest()
        connection.execute(select(func.pg_advisory_xact_lock(int.from_bytes(digest[:8], signed=True))))
