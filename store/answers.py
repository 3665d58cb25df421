"""Queries on what the owner wrote: answers, which every conversation uses, and words to one visitor."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, func, insert, select, update

from store.alert_queue import new_reference
from store.records import Answer, Origin, OwnerWords, Written
from store.states import read_state, write_state
from store.tables import alerts, answers, owner_words, questions, turns

_VERSION = "answers_version"
_ANSWER = (answers.c.reference, answers.c.question, answers.c.text, answers.c.changed)


def read_answers(connection: Connection, limit: int | None = None) -> tuple[Answer, ...]:
    rows = connection.execute(select(*_ANSWER).order_by(answers.c.changed.desc(), answers.c.id.desc()).limit(limit))
    return tuple(Answer(*row) for row in rows)


def read_version(connection: Connection) -> str:
    return read_state(connection, _VERSION) or ""


def keep_answer(
    connection: Connection, reference: str, text: str, now: datetime, origin: Origin | None = None
) -> Answer:
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
    came_from = _came_from(connection, origin)
    if found is not None:
        connection.execute(update(answers).where(answers.c.id == found.id).values(text=text, changed=now, **came_from))
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
                **came_from,
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
    origin: Origin | None = None,
) -> None:
    connection.execute(
        insert(owner_words).values(
            conversation_id=conversation_id,
            after=_last_turn(connection, conversation_id) if after is None else after,
            text=text,
            answer_id=answer_id,
            question=question,
            created=now,
            **_came_from(connection, origin),
        )
    )


def written_in(connection: Connection, origin: Origin) -> Written | None:
    """None: nothing came of that message, or it is gone."""
    answer = connection.execute(select(answers.c.reference, answers.c.text).where(_from(answers, origin))).one_or_none()
    if answer is not None:
        return Written(answer.reference, None, answer.text)
    words = connection.execute(
        select(owner_words.c.conversation_id, owner_words.c.text).where(_from(owner_words, origin))
    ).one_or_none()
    return None if words is None else Written("", words.conversation_id, words.text)


def rewrite_words(connection: Connection, origin: Origin, text: str, now: datetime) -> None:
    """As new words in the place of the old ones: a page asks for words newer than the last ones that it has."""
    old = connection.execute(
        select(owner_words.c.id, owner_words.c.conversation_id, owner_words.c.after).where(_from(owner_words, origin))
    ).one()
    delete_words(connection, owner_words.c.id == old.id)
    add_words(connection, old.conversation_id, text, now, after=old.after, origin=origin)


def _came_from(connection: Connection, origin: Origin | None) -> dict[str, str | int | None]:
    """The columns. What an earlier bot's message of that number made is no longer known by it."""
    if origin is None:
        return {"chat_id": None, "message_id": None}
    for table in (answers, owner_words):
        connection.execute(update(table).where(_from(table, origin)).values(chat_id=None, message_id=None))
    return {"chat_id": origin.chat_id, "message_id": origin.message_id}


def _from(table: Table, origin: Origin) -> ColumnElement[bool]:
    return and_(table.c.chat_id == origin.chat_id, table.c.message_id == origin.message_id)


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
