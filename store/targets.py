"""Queries on what an alert is about, by the message that it went out in or by its reference."""

from __future__ import annotations

import re

from sqlalchemy import Connection, select

from store.inbox import contact_of
from store.records import Target
from store.tables import alert_messages, alerts, answers, contacts, questions


def targets_of(connection: Connection, chat_id: str, message_id: int) -> list[Target]:
    rows = connection.execute(
        select(alerts.c.kind, alerts.c.key, alerts.c.reference)
        .join(alert_messages, alert_messages.c.alert_id == alerts.c.id)
        .where(alert_messages.c.chat_id == chat_id, alert_messages.c.message_id == message_id)
        .order_by(alerts.c.id)
    ).all()
    found = [_target(connection, *row) for row in rows]
    return list(dict.fromkeys(target for target in found if target is not None))


def target_named(connection: Connection, reference: str) -> Target | None:
    reference = reference.strip().upper()
    if reference.startswith("A-"):
        return _asked(connection, reference)
    row = connection.execute(
        select(alerts.c.kind, alerts.c.key, alerts.c.reference).where(alerts.c.reference == reference)
    ).one_or_none()
    return None if row is None else _target(connection, *row)


def _target(connection: Connection, kind: str, key: str, reference: str) -> Target | None:
    if kind == "contact":
        return _contact(connection, re.sub(r"(?<=.-.....)-\d+$", "", reference))
    if kind == "question":
        return _question(connection, reference)
    if kind == "reply":
        return target_named(connection, key) if key else None
    return Target(kind, reference, None, "", "")


def _contact(connection: Connection, reference: str) -> Target | None:
    row = connection.execute(
        select(contacts.c.conversation_id, contacts.c.email)
        .join(alerts, contacts.c.alert_id == alerts.c.id)
        .where(alerts.c.reference == reference)
    ).one_or_none()
    return None if row is None else Target("contact", reference, row.conversation_id, "", row.email)


def _question(connection: Connection, reference: str) -> Target | None:
    row = connection.execute(
        select(questions.c.conversation_id, questions.c.question)
        .join(alerts, questions.c.alert_id == alerts.c.id)
        .where(alerts.c.reference == reference)
    ).one_or_none()
    if row is None:
        return None
    left = contact_of(connection, row.conversation_id)
    return Target("question", reference, row.conversation_id, row.question, left.email if left else "")


def _asked(connection: Connection, reference: str) -> Target | None:
    """The question that was answered; the answer itself if who asked was forgotten."""
    row = connection.execute(
        select(answers.c.question, alerts.c.reference)
        .join(questions, answers.c.question_id == questions.c.id, isouter=True)
        .join(alerts, questions.c.alert_id == alerts.c.id, isouter=True)
        .where(answers.c.reference == reference)
    ).one_or_none()
    if row is None:
        return None
    if row.reference is None:
        return Target("answer", reference, None, row.question, "")
    return _question(connection, row.reference)
