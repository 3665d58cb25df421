"""Queries on alerts: written with what they tell of, and claimed one after the other by whoever delivers.

States: `pending` has not been tried, `failed` is tried again when due, `kept` waits for a channel to be set,
`sent` is done. Nothing is given up.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, case, func, insert, select, update

from store.records import Alert
from store.tables import alerts

LEASE = timedelta(minutes=10)
"""A claimed alert is nobody else's for this long; then whoever claimed it is taken to be dead."""

_LETTERS = "23456789BCDFGHJKMNPQRSTVWXYZ"
"""No two look alike, and they spell no words."""

_INITIALS = {"contact": "C", "question": "Q", "trouble": "T"}

_STATES = ("pending", "failed", "kept", "sent")

_WAITING = alerts.c.state.in_(("pending", "failed"))

_LEADS_FIRST = case((alerts.c.kind == "contact", 0), else_=1)


def new_reference(kind: str) -> str:
    return f"{_INITIALS[kind]}-{''.join(secrets.choice(_LETTERS) for _ in range(5))}"


def add_alert(connection: Connection, kind: str, reference: str, text: str, now: datetime, key: str = "") -> int:
    added = connection.execute(
        insert(alerts)
        .values(kind=kind, key=key, reference=reference, text=text, state="pending", due=now, created=now)
        .returning(alerts.c.id)
    )
    return added.scalar_one()


def add_trouble(connection: Connection, key: str, text: str, within: timedelta, now: datetime) -> bool:
    same = select(alerts.c.id).where(alerts.c.kind == "trouble", alerts.c.key == key, alerts.c.created > now - within)
    if connection.execute(same.limit(1)).first():
        return False
    add_alert(connection, "trouble", new_reference("trouble"), text, now, key)
    return True


def claim_due_alerts(connection: Connection, limit: int, now: datetime) -> list[Alert]:
    due = connection.scalars(
        select(alerts.c.id)
        .where(_WAITING, alerts.c.due <= now)
        .order_by(_LEADS_FIRST, alerts.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    if not due:
        return []
    connection.execute(
        update(alerts).where(alerts.c.id.in_(due)).values(due=now + LEASE, attempts=alerts.c.attempts + 1)
    )
    rows = connection.execute(
        select(alerts.c.id, alerts.c.kind, alerts.c.reference, alerts.c.text, alerts.c.created, alerts.c.attempts)
        .where(alerts.c.id.in_(due))
        .order_by(_LEADS_FIRST, alerts.c.id)
    )
    return [Alert(*row) for row in rows]


def next_due(connection: Connection) -> datetime | None:
    return connection.scalar(select(func.min(alerts.c.due)).where(_WAITING))


def sent_since(connection: Connection, since: datetime) -> tuple[int, datetime | None]:
    count, last = connection.execute(
        select(func.count(), func.max(alerts.c.sent)).where(alerts.c.state == "sent", alerts.c.sent > since)
    ).one()
    return count, last


def mark_sent(connection: Connection, alert_ids: Sequence[int], now: datetime) -> None:
    connection.execute(update(alerts).where(alerts.c.id.in_(alert_ids)).values(state="sent", reason="", sent=now))


def mark_failed(connection: Connection, alert_ids: Sequence[int], retry_at: datetime, reason: str) -> None:
    connection.execute(
        update(alerts).where(alerts.c.id.in_(alert_ids)).values(state="failed", due=retry_at, reason=reason)
    )


def mark_kept(connection: Connection, alert_id: int) -> None:
    connection.execute(update(alerts).where(alerts.c.id == alert_id).values(state="kept"))


def release_alerts(connection: Connection, now: datetime) -> None:
    connection.execute(update(alerts).where(alerts.c.state == "kept").values(state="pending"))
    connection.execute(update(alerts).where(_WAITING).values(due=now))


def count_alerts(connection: Connection) -> dict[str, int]:
    rows = connection.execute(select(alerts.c.state, func.count()).group_by(alerts.c.state))
    return dict.fromkeys(_STATES, 0) | {state: count for state, count in rows}
