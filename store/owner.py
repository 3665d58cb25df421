"""What the owner does from the phone: each message once, in one transaction with all that it changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import Connection, distinct, func, not_, select

from store import answers as replies
from store import forgetting, inbox, states, targets
from store.alert_queue import add_alert, new_reference
from store.records import Answer, Contact, Origin, Stats, Target, Written
from store.tables import alerts, answers, contacts, model_calls, questions, turns

OFFSET = "telegram_offset"

OFFSET_HOLDS = timedelta(days=6)
"""After a week without one, Telegram numbers its updates anew, from anywhere. It may count that week from earlier."""


class Owner:
    """The store in the hands of the owner, on an open transaction."""

    def __init__(self, connection: Connection, now: datetime) -> None:
        self._connection = connection
        self._now = now
        self.about: Target | None = None
        """What this is about: the one thing that was looked up. A message to the bot's reply means it, too."""

    def target_of(self, chat_id: str, message_id: int) -> list[Target]:
        """What the bot's message was about; several, if it was a digest."""
        found = targets.targets_of(self._connection, chat_id, message_id)
        if len(found) == 1:
            self.about = found[0]
        return found

    def target_named(self, reference: str) -> Target | None:
        """The contact or question of that reference; an answer's leads to its question."""
        self.about = targets.target_named(self._connection, reference)
        return self.about

    def contact_of(self, conversation_id: str) -> Contact | None:
        """The newest contact that a conversation left."""
        return inbox.contact_of(self._connection, conversation_id)

    def answer(self, target: Target, text: str, origin: Origin | None = None) -> Answer:
        """Answers a question, or corrects its answer, for all visitors; the one who asked is told.

        Raises:
            LookupError: the target is no question or answer.
        """
        return replies.keep_answer(self._connection, target.reference, text, self._now, origin)

    def tell(self, conversation_id: str, text: str, origin: Origin | None = None) -> None:
        """Writes to one visitor."""
        replies.add_words(self._connection, conversation_id, text, self._now, origin=origin)

    def written_in(self, origin: Origin) -> Written | None:
        """What came of an earlier message of the owner's; None: nothing, or it is gone."""
        return replies.written_in(self._connection, origin)

    def tell_anew(self, origin: Origin, text: str) -> None:
        """Puts other words in the place of those to one visitor that came from this message."""
        replies.rewrite_words(self._connection, origin, text, self._now)

    def contacts(self, limit: int) -> list[tuple[str, Contact, datetime]]:
        """The last contacts, newest first: reference, contact, when it was left."""
        rows = self._connection.execute(
            select(alerts.c.reference, contacts.c.created, *inbox.CONTACT)
            .join(alerts, contacts.c.alert_id == alerts.c.id)
            .order_by(contacts.c.id.desc())
            .limit(limit)
        )
        return [(reference, Contact(*contact), created) for reference, created, *contact in rows]

    def open_questions(self, limit: int) -> list[tuple[str, str, datetime]]:
        """The last questions that have no answer, newest first: reference, question, when it was asked."""
        rows = self._connection.execute(
            select(alerts.c.reference, questions.c.question, questions.c.created)
            .join(alerts, questions.c.alert_id == alerts.c.id)
            .where(_IS_OPEN)
            .order_by(questions.c.id.desc())
            .limit(limit)
        )
        return [(reference, question, created) for reference, question, created in rows]

    def answers(self, limit: int) -> tuple[Answer, ...]:
        """The last answers, newest first."""
        return replies.read_answers(self._connection, limit)

    def stats(self, since: datetime) -> Stats:
        return read_stats(self._connection, since)

    def forget(self, reference: str) -> str | None:
        """See `store.forgetting.forget`."""
        self.about = None
        return forgetting.forget(self._connection, reference, self._now)

    def state(self, key: str) -> str | None:
        return states.read_state(self._connection, key)

    def set_state(self, key: str, value: str | None) -> None:
        states.write_state(self._connection, key, value, self._now)


_IS_OPEN = not_(select(answers.c.id).where(answers.c.question_id == questions.c.id).exists())


def handle_update(
    connection: Connection,
    update_id: int,
    act: Callable[[Owner], str | None],
    reply_to: int | None,
    offset_key: str,
    now: datetime,
) -> bool:
    states.wait_for_others(connection, offset_key)
    offset = read_offset(connection, offset_key, now)
    if offset is not None and update_id < offset:
        return False
    owner = Owner(connection, now)
    text = act(owner)
    if text is not None:
        about = owner.about
        add_alert(
            connection,
            "reply",
            new_reference("reply"),
            text,
            now,
            key=about.reference if about else "",
            conversation_id=about.conversation_id if about else None,
            reply_to=reply_to,
        )
    states.write_state(connection, offset_key, json.dumps(update_id + 1), now)
    return True


def read_offset(connection: Connection, offset_key: str, now: datetime) -> int | None:
    value = states.state_since(connection, offset_key, now - OFFSET_HOLDS)
    return None if value is None else int(value)


def read_stats(connection: Connection, since: datetime) -> Stats:
    said = connection.execute(
        select(
            func.count(distinct(turns.c.conversation_id)),
            func.count(),
            func.count().filter(turns.c.liked.is_(True)),
            func.count().filter(turns.c.liked.is_(False)),
        ).where(turns.c.opened >= since, turns.c.replaced.is_(False))
    ).one()
    left, asked, answered = (
        connection.execute(select(func.count()).select_from(table).where(table.c.created >= since)).scalar_one()
        for table in (contacts, questions, answers)
    )
    open_questions = connection.execute(select(func.count()).select_from(questions).where(_IS_OPEN)).scalar_one()
    cost = connection.scalar(select(func.sum(model_calls.c.cost)).where(model_calls.c.at >= since))
    return Stats(said[0], said[1], left, asked, open_questions, answered, said[2], said[3], float(cost or 0))
