"""Takes out of the database what the owner wants forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, Table, delete, func, select, update

from store.answers import delete_answers, delete_words
from store.tables import alert_messages, alerts, answers, contacts, model_calls, owner_words, questions, turns
from store.targets import target_named


def forget(connection: Connection, reference: str, now: datetime) -> str | None:
    """An answer (`A-…`), or all that is kept of the visitor whose contact or question it is.

    Returns:
        What was forgotten, in words; None if there is nothing of that reference.
    """
    reference = reference.strip().upper()
    if reference.startswith("A-"):
        return _forget_answer(connection, reference, now)
    target = target_named(connection, reference)
    if target is None or target.conversation_id is None:
        return None
    return _forget_visitor(connection, target.conversation_id)


def _forget_answer(connection: Connection, reference: str, now: datetime) -> str | None:
    found = connection.scalar(select(answers.c.id).where(answers.c.reference == reference))
    if found is None:
        return None
    delete_answers(connection, [found], now)
    return f"the answer {reference}"


def _forget_visitor(connection: Connection, conversation_id: str) -> str:
    """Requests to providers stay, for the costs; answers stay, for others, and are named."""
    asked = select(questions.c.id).where(questions.c.conversation_id == conversation_id)
    stay = connection.scalars(select(answers.c.reference).where(answers.c.question_id.in_(asked))).all()
    elsewhere = _left_elsewhere(connection, conversation_id)
    counts = [
        _counted(connection, table, conversation_id, word)
        for table, word in ((contacts, "contact"), (questions, "question"), (turns, "message"))
    ]
    delete_words(connection, owner_words.c.conversation_id == conversation_id)
    connection.execute(update(answers).where(answers.c.question_id.in_(asked)).values(question_id=None))
    told = select(alerts.c.id).where(alerts.c.conversation_id == conversation_id)
    connection.execute(delete(alert_messages).where(alert_messages.c.alert_id.in_(told)))
    for table in (contacts, questions, alerts, turns):
        connection.execute(delete(table).where(table.c.conversation_id == conversation_id))
    connection.execute(
        update(model_calls).where(model_calls.c.conversation_id == conversation_id).values(conversation_id="")
    )
    words = f"all that was kept of one visitor: {', '.join(counts)}"
    if stay:
        words += f". What you answered stays, for others: {', '.join(stay)}"
    return f"{words}. Also left under {', '.join(elsewhere)}" if elsewhere else words


def _left_elsewhere(connection: Connection, conversation_id: str) -> Sequence[str]:
    """References under which other conversations left an address of this one: the same person, or somebody else."""
    theirs = select(contacts.c.email_key).where(contacts.c.conversation_id == conversation_id)
    return connection.scalars(
        select(alerts.c.reference)
        .join(contacts, contacts.c.alert_id == alerts.c.id)
        .where(contacts.c.email_key.in_(theirs), contacts.c.conversation_id != conversation_id)
        .order_by(contacts.c.id)
    ).all()


def _counted(connection: Connection, table: Table, conversation_id: str, word: str) -> str:
    of_theirs = select(func.count()).select_from(table).where(table.c.conversation_id == conversation_id)
    count = connection.execute(of_theirs).scalar_one()
    return f"{count} {word}{'' if count == 1 else 's'}"
