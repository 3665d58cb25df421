"""Queries on alerts: written with what they tell of, and claimed one after the other by whoever delivers.

States: `pending` has not been tried, `failed` is tried again when due, `kept` waits for a channel to be set,
`sent` is done. Nothing is given up.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    case,
    delete,
    func,
    insert,
    literal,
    not_,
    or_,
    select,
    update,
)

from store.records import Alert, Sent
from store.states import wait_for_others
from store.tables import alert_messages, alerts

LEASE = timedelta(minutes=1)
"""A claimed alert is nobody else's for this long, unless its holder renews it; then the holder is taken to be dead."""

_LETTERS = "23456789BCDFGHJKMNPQRSTVWXYZ"
"""No two look alike, and they spell no words."""

_INITIALS = {"contact": "C", "question": "Q", "trouble": "T", "reply": "R", "answer": "A"}

_STATES = ("pending", "failed", "kept", "sent")

_WAITING = alerts.c.state.in_(("pending", "failed"))

_IS_REPLY = alerts.c.kind == "reply"

_IN_TURN = (case((_IS_REPLY, 0), (alerts.c.kind == "contact", 1), else_=2), alerts.c.id)
"""The owner waits for a reply with the phone in hand; leads come before the rest."""


def new_reference(kind: str) -> str:
    return f"{_INITIALS[kind]}-{''.join(secrets.choice(_LETTERS) for _ in range(5))}"


def add_alert(
    connection: Connection,
    kind: str,
    reference: str,
    text: str,
    now: datetime,
    *,
    key: str = "",
    conversation_id: str | None = None,
    reply_to: int | None = None,
) -> int:
    added = connection.execute(
        insert(alerts)
        .values(
            kind=kind,
            key=key,
            reference=reference,
            text=text,
            state="pending",
            due=now,
            created=now,
            conversation_id=conversation_id,
            reply_to=reply_to,
        )
        .returning(alerts.c.id)
    )
    return added.scalar_one()


def add_trouble(connection: Connection, key: str, text: str, within: timedelta, now: datetime) -> bool:
    wait_for_others(connection, f"trouble {key}")
    same = select(alerts.c.id).where(alerts.c.kind == "trouble", alerts.c.key == key, alerts.c.created > now - within)
    if connection.execute(same.limit(1)).first():
        return False
    add_alert(connection, "trouble", new_reference("trouble"), text, now, key=key)
    return True


def claim_due_alerts(
    connection: Connection, limit: int, now: datetime, holder: str, lease: timedelta = LEASE
) -> list[Alert]:
    due = connection.execute(
        select(alerts.c.id, alerts.c.kind)
        .where(_WAITING, alerts.c.due <= now, _is_free(now), or_(_IS_REPLY, literal(limit > 0)))
        .order_by(*_IN_TURN)
        .limit(max(1, limit))
        .with_for_update(skip_locked=True)
    ).all()
    if not due:
        return []
    ids = [due[0].id] if due[0].kind == "reply" else [row.id for row in due]
    connection.execute(
        update(alerts)
        .where(alerts.c.id.in_(ids))
        .values(claimed_by=holder, lease=now + lease, attempts=alerts.c.attempts + 1)
    )
    rows = connection.execute(
        select(
            alerts.c.id,
            alerts.c.kind,
            alerts.c.reference,
            alerts.c.text,
            alerts.c.created,
            alerts.c.attempts,
            alerts.c.conversation_id,
            alerts.c.reply_to,
        )
        .where(alerts.c.id.in_(ids))
        .order_by(*_IN_TURN)
    )
    return [Alert(*row) for row in rows]


def extend_claims(
    connection: Connection, alert_ids: Sequence[int], now: datetime, holder: str, lease: timedelta = LEASE
) -> None:
    connection.execute(update(alerts).where(_held(alert_ids, holder)).values(lease=now + lease))


def drop_claims(connection: Connection, holder: str) -> None:
    connection.execute(update(alerts).where(_WAITING, alerts.c.claimed_by == holder).values(claimed_by="", lease=None))


def next_due(connection: Connection) -> datetime | None:
    free = case((alerts.c.lease > alerts.c.due, alerts.c.lease), else_=alerts.c.due)
    return connection.scalar(select(func.min(free)).where(_WAITING))


def sent_since(connection: Connection, since: datetime) -> tuple[int, datetime | None]:
    count, last = connection.execute(
        select(func.count(), func.max(alerts.c.sent)).where(
            alerts.c.state == "sent", alerts.c.sent > since, not_(_IS_REPLY)
        )
    ).one()
    return count, last


def mark_sent(
    connection: Connection, alert_ids: Sequence[int], now: datetime, holder: str, sent: Sent | None = None
) -> None:
    if sent is not None:
        _keep_messages(connection, alert_ids, sent)  # it has gone out, whoever holds the claim by now
    # What the bot replied may list visitors, and nobody reads it a second time.
    text = case((_IS_REPLY, ""), else_=alerts.c.text)
    connection.execute(
        update(alerts)
        .where(_held(alert_ids, holder))
        .values(state="sent", reason="", sent=now, claimed_by="", lease=None, text=text)
    )


def _keep_messages(connection: Connection, alert_ids: Sequence[int], sent: Sent) -> None:
    here = alert_messages.c.chat_id == sent.chat_id
    # Another bot counts its messages in the same chat from the beginning.
    connection.execute(delete(alert_messages).where(here, alert_messages.c.message_id.in_(sent.message_ids)))
    kept = connection.scalars(select(alerts.c.id).where(alerts.c.id.in_(alert_ids))).all()
    rows = [
        {"chat_id": sent.chat_id, "message_id": message_id, "alert_id": alert_id}
        for message_id in dict.fromkeys(sent.message_ids)
        for alert_id in kept
    ]
    if rows:
        connection.execute(insert(alert_messages), rows)


def mark_failed(connection: Connection, alert_ids: Sequence[int], retry_at: datetime, reason: str, holder: str) -> None:
    connection.execute(
        update(alerts)
        .where(_held(alert_ids, holder))
        .values(state="failed", due=retry_at, reason=reason, claimed_by="", lease=None)
    )


def mark_kept(connection: Connection, alert_id: int) -> None:
    waiting = and_(alerts.c.id == alert_id, _WAITING)
    connection.execute(update(alerts).where(waiting).values(state="kept", claimed_by="", lease=None))


def release_alerts(connection: Connection, now: datetime) -> None:
    connection.execute(update(alerts).where(alerts.c.state == "kept").values(state="pending"))
    connection.execute(update(alerts).where(_WAITING, _is_free(now)).values(due=now, claimed_by="", lease=None))


def count_alerts(connection: Connection) -> dict[str, int]:
    rows = connection.execute(select(alerts.c.state, func.count()).group_by(alerts.c.state))
    return dict.fromkeys(_STATES, 0) | {state: count for state, count in rows}


def _is_free(now: datetime) -> ColumnElement[bool]:
    return or_(alerts.c.lease.is_(None), alerts.c.lease <= now)


def _held(alert_ids: Sequence[int], holder: str) -> ColumnElement[bool]:
    return and_(alerts.c.id.in_(alert_ids), alerts.c.state != "sent", alerts.c.claimed_by == holder)
