"""Queries on what the owner wrote: answers, which every conversation uses, and words to one visitor."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from store.alert_queue import new_reference
from store.records import Answer, OwnerWords
from store.states import read_state, write_state
from store.tables import alerts, answers, owner_words, questions, turns

_VERSION = "answers_version"
_ANSWER = (answers.c.reference, answers.c.question, answers.c.text, answers.c.changed)


def read_answers(connection: Connection, limit: int | None = None) -> tuple[Answer, ...]:
    rows = connection.execute(select(*_ANSWER).order_by(answers.c.changed.desc(), answers.c.id.desc()).limit(limit))
    return tuple(Answer(*row) for row in rows)


def read_version(connection: Connection) -> str:
    return read_state(connection, _VERSION) or ""


def keep_answer(connection: Connection, reference: str, text: str, now: datetime) -> Answer:
    """Answers the question with this reference, or corrects its answer, or the answer with this reference.

    Who asked is told.

    Raises:
        LookupError: there is no such question or answer.
    """
    asked = connection.execute(
        select(questions.c.id, questions.c.question, questions.c.conversation_id)
        .join(alerts, questions.c.alert_id == alerts.c.id)
        .where(alerts.c.reference == reference)
    ).one_or_none()
    which = answers.c.reference == reference if asked is None else answers.c.question_id == asked.id
    found = connection.execute(select(answers.c.id, *_ANSWER).where(which)).one_or_none()
    if found is not None:
        connection.execute(update(answers).where(answers.c.id == found.id).values(text=text, changed=now))
        answer_id, answer = found.id, Answer(found.reference, found.question, text, now)
    elif asked is not None:
        answer = Answer(new_reference("answer"), asked.question, text, now)
        added = connection.execute(
            insert(answers)
            .values(
                reference=answer.reference,
                question=answer.question,
                text=text,
                question_id=asked.id,
                created=now,
                changed=now,
            )
            .returning(answers.c.id)
        )
        answer_id = added.scalar_one()
    else:
        raise LookupError(f"there is no question or answer {reference!r}")
    if asked is not None:
        _tell_who_asked(connection, asked.conversation_id, answer_id, answer, now)
    touch_answers(connection, now)
    return answer


def _tell_who_asked(
    connection: Connection, conversation_id: str, answer_id: int, answer: Answer, now: datetime
) -> None:
    earlier = connection.execute(
        select(owner_words.c.id, owner_words.c.after).where(owner_words.c.answer_id == answer_id)
    ).one_or_none()
    after = _last_turn(connection, conversation_id) if earlier is None else earlier.after
    add_words(connection, conversation_id, answer.text, now, after=after, answer_id=answer_id, question=answer.question)
    if earlier is not None:
        delete_words(connection, owner_words.c.id == earlier.id)


def add_words(
    connection: Connection,
    conversation_id: str,
    text: str,
    now: datetime,
    *,
    after: int | None = None,
    answer_id: int | None = None,
    question: str = "",
) -> None:
    connection.execute(
        insert(owner_words).values(
            conversation_id=conversation_id,
            after=_last_turn(connection, conversation_id) if after is None else after,
            text=text,
            answer_id=answer_id,
            question=question,
            created=now,
        )
    )


def delete_words(connection: Connection, which: ColumnElement[bool]) -> None:
    connection.execute(delete(owner_words).where(which))


def delete_answers(connection: Connection, ids: Sequence[int], now: datetime) -> None:
    """With what was told to those who asked."""
    delete_words(connection, owner_words.c.answer_id.in_(ids))
    connection.execute(delete(answers).where(answers.c.id.in_(ids)))
    touch_answers(connection, now)


def touch_answers(connection: Connection, now: datetime) -> None:
    """A version that was never there before; to count up would need one process to wait for the other."""
    write_state(connection, _VERSION, secrets.token_hex(8), now)


def read_words(connection: Connection, conversation_id: str) -> tuple[OwnerWords, ...]:
    rows = connection.execute(
        select(owner_words.c.id, owner_words.c.after, owner_words.c.text, owner_words.c.question, owner_words.c.created)
        .where(owner_words.c.conversation_id == conversation_id)
        .order_by(owner_words.c.after, owner_words.c.id)
    )
    return tuple(OwnerWords(*row) for row in rows)


def newest_words(connection: Connection, conversation_id: str) -> int:
    newest = select(func.max(owner_words.c.id)).where(owner_words.c.conversation_id == conversation_id)
    return connection.scalar(newest) or 0


def _last_turn(connection: Connection, conversation_id: str) -> int:
    last = connection.scalar(select(func.max(turns.c.number)).where(turns.c.conversation_id == conversation_id))
    return -1 if last is None else last
