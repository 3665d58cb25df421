"""Queries on what visitors leave: a contact or a question is written together with its alert, or not at all."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, insert, select, update

from store.alert_queue import add_alert, new_reference
from store.records import Contact, Question
from store.tables import contacts, questions, storable

AlertText = Callable[[str], str]
"""Makes an alert's text from its reference."""


def add_contact(connection: Connection, contact: Contact, alert_text: AlertText, now: datetime) -> bool:
    key = contact.email.strip().casefold()
    known = connection.execute(
        select(contacts.c.id, contacts.c.notes, contacts.c.name).where(
            contacts.c.conversation_id == contact.conversation_id, contacts.c.email_key == key
        )
    ).one_or_none()
    if known is not None:
        newer = {"notes": contact.notes or known.notes, "name": contact.name or known.name}
        connection.execute(update(contacts).where(contacts.c.id == known.id).values(newer))
        return False
    reference = new_reference("contact")
    connection.execute(
        insert(contacts).values(
            conversation_id=contact.conversation_id,
            email=contact.email,
            email_key=key,
            ascii_email=contact.ascii_email,
            notes=contact.notes,
            name=contact.name,
            disposable=contact.disposable,
            alert_id=add_alert(connection, "contact", reference, alert_text(reference), now),
            created=now,
        )
    )
    return True


def add_question(connection: Connection, question: Question, alert_text: AlertText, now: datetime) -> bool:
    key = question_key(question.question)
    known = connection.execute(
        select(questions.c.id).where(
            questions.c.conversation_id == question.conversation_id, questions.c.question_key == key
        )
    ).first()
    if known is not None:
        return False
    reference = new_reference("question")
    connection.execute(
        insert(questions).values(
            conversation_id=question.conversation_id,
            question=question.question,
            question_key=key,
            alert_id=add_alert(connection, "question", reference, alert_text(reference), now),
            created=now,
        )
    )
    return True


def read_contacts(connection: Connection) -> list[Contact]:
    rows = connection.execute(
        select(
            contacts.c.conversation_id,
            contacts.c.email,
            contacts.c.ascii_email,
            contacts.c.notes,
            contacts.c.name,
            contacts.c.disposable,
        ).order_by(contacts.c.id.desc())
    )
    return [Contact(*row) for row in rows]


def read_questions(connection: Connection) -> list[Question]:
    rows = connection.execute(select(questions.c.conversation_id, questions.c.question).order_by(questions.c.id.desc()))
    return [Question(*row) for row in rows]


def question_key(question: str) -> str:
    """The same for questions that differ in case, blanks or closing punctuation only.

    A digest, for an index takes no text of any length.
    """
    plain = " ".join(storable(question).casefold().split())
    bare = plain
    while bare and (bare[-1].isspace() or unicodedata.category(bare[-1]).startswith("P")):
        bare = bare[:-1]
    return hashlib.sha256((bare or plain).encode()).hexdigest()
