"""Queries on what visitors leave: a contact or a question is written together with its alert, or not at all."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Connection, func, insert, or_, select, update

from store.alert_queue import add_alert, new_reference
from store.records import Contact, Question
from store.states import wait_for_others
from store.tables import alerts, contacts, questions, storable

CONTACTS = 5
"""Addresses that one conversation may leave."""
QUESTIONS = 10
"""Questions that one conversation may pass on."""
FOLLOW_UPS = 5
"""Alerts in one conversation on what was added to contacts that it has left before."""
NOTES_CHARS = 12_000
"""What the notes on one contact may grow to."""

CONTACT = (
    contacts.c.conversation_id,
    contacts.c.email,
    contacts.c.ascii_email,
    contacts.c.notes,
    contacts.c.name,
    contacts.c.disposable,
)
"""The columns of a `Contact`, in its order."""

AlertText = Callable[[str], str]
"""Makes an alert's text from its reference."""

Kept = Literal["new", "more", "known", "full"]
"""`new`: with an alert. `more`: added to a contact. `known`: nothing that was not there. `full`: it was not kept."""


def add_contact(
    connection: Connection, contact: Contact, alert_text: AlertText, more_text: AlertText, now: datetime
) -> Kept:
    wait_for_others(connection, contact.conversation_id)
    key = contact.email.strip().casefold()
    left = connection.execute(
        select(contacts.c.id, contacts.c.email_key, contacts.c.notes, contacts.c.name, alerts.c.reference)
        .join(alerts, contacts.c.alert_id == alerts.c.id)
        .where(contacts.c.conversation_id == contact.conversation_id)
    ).all()
    known = next((one for one in left if one.email_key == key), None)
    if known is not None:
        follow_ups = _count_follow_ups(connection, [one.reference for one in left])
        return _add_to(connection, known, contact, more_text, follow_ups, now)
    if len(left) >= CONTACTS:
        return "full"
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
            alert_id=add_alert(
                connection, "contact", reference, alert_text(reference), now, conversation_id=contact.conversation_id
            ),
            created=now,
        )
    )
    return "new"


def _add_to(
    connection: Connection, known: Any, contact: Contact, more_text: AlertText, follow_ups: int, now: datetime
) -> Kept:
    """Adds what is new to the row of a contact, with one more alert: the owner has seen only what came before."""
    notes, name = merged_notes(known.notes, contact.notes), contact.name or known.name
    if (notes, name) == (known.notes, known.name):
        return "known"
    if len(notes) > NOTES_CHARS:
        return "full"
    connection.execute(update(contacts).where(contacts.c.id == known.id).values(notes=notes, name=name))
    tells_more = notes != known.notes or not known.name
    if tells_more and follow_ups < FOLLOW_UPS:
        reference = f"{known.reference}-{follow_ups + 2}"
        add_alert(connection, "contact", reference, more_text(reference), now, conversation_id=contact.conversation_id)
    return "more"


def _count_follow_ups(connection: Connection, references: Sequence[str]) -> int:
    more = or_(*(alerts.c.reference.startswith(f"{reference}-") for reference in references))
    return connection.execute(select(func.count()).select_from(alerts).where(more)).scalar_one()


def merged_notes(kept: str, newer: str) -> str:
    """Both, the newer on lines of its own; only what the other one says as well is left out."""
    newer = storable(newer)
    lines = {_bare(line) for line in kept.splitlines()}
    if all(_bare(line) in lines for line in newer.splitlines() if line.strip()):
        return kept
    if not kept.strip() or f" {_bare(kept)} " in f" {_bare(newer)} ":
        return newer
    return f"{kept}\n{newer}"


def add_question(connection: Connection, question: Question, alert_text: AlertText, now: datetime) -> Kept:
    wait_for_others(connection, question.conversation_id)
    key = question_key(question.question)
    passed_on = connection.scalars(
        select(questions.c.question_key).where(questions.c.conversation_id == question.conversation_id)
    ).all()
    if key in passed_on:
        return "known"
    if len(passed_on) >= QUESTIONS:
        return "full"
    reference = new_reference("question")
    connection.execute(
        insert(questions).values(
            conversation_id=question.conversation_id,
            question=question.question,
            question_key=key,
            alert_id=add_alert(
                connection, "question", reference, alert_text(reference), now, conversation_id=question.conversation_id
            ),
            created=now,
        )
    )
    return "new"


def read_contacts(connection: Connection) -> list[Contact]:
    return [Contact(*row) for row in connection.execute(select(*CONTACT).order_by(contacts.c.id.desc()))]


def contact_of(connection: Connection, conversation_id: str) -> Contact | None:
    """The newest that the conversation left."""
    row = connection.execute(
        select(*CONTACT).where(contacts.c.conversation_id == conversation_id).order_by(contacts.c.id.desc()).limit(1)
    ).one_or_none()
    return None if row is None else Contact(*row)


def read_questions(connection: Connection) -> list[Question]:
    rows = connection.execute(select(questions.c.conversation_id, questions.c.question).order_by(questions.c.id.desc()))
    return [Question(*row) for row in rows]


def question_key(question: str) -> str:
    """The same for questions that differ in case, blanks or closing punctuation only.

    A digest, for an index takes no text of any length.
    """
    return hashlib.sha256(_bare(question).encode()).hexdigest()


def _bare(text: str) -> str:
    plain = " ".join(storable(text).casefold().split())
    bare = plain
    while bare and (bare[-1].isspace() or unicodedata.category(bare[-1]).startswith("P")):
        bare = bare[:-1]
    return bare or plain
