"""The store: asynchronous on the outside, one short transaction in a thread for each call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from agent.conversation import Conversation, Transcript, Turn
from store import alert_queue, inbox, model_calls, turns
from store.database import WRITES, open_engine
from store.inbox import AlertText, Kept
from store.records import Alert, CallRow, Contact, KeptCall, Question, StoreError
from store.tables import schema_version

P = ParamSpec("P")
T = TypeVar("T")

RACES = 10
"""Times that a write is begun again after another one took its number or reference."""


class Store:
    """Owns the engine. Every method raises StoreError when the database cannot be used."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writer = engine.execution_options(**WRITES)

    @staticmethod
    def open(url: str) -> Store:
        """Opens the database at `url`; makes folder, file and tables where they are missing.

        Raises:
            StoreError: it cannot be opened.
        """
        return Store(open_engine(url))

    async def close(self) -> None:
        await asyncio.to_thread(self._engine.dispose)

    async def ping(self) -> None:
        """Raises StoreError unless the database can be read and written."""
        await self._write(_read_version)

    # Conversations

    async def conversation(self, conversation_id: str) -> Conversation:
        return (await self.transcript(conversation_id)).conversation

    async def transcript(self, conversation_id: str) -> Transcript:
        """The turns that were not replaced, oldest first. One that was never closed reads as broken off."""
        return await self._read(turns.read_transcript, conversation_id)

    async def open_turn(self, conversation_id: str, message: str) -> int:
        """Keeps a visitor's words before anybody answers them.

        Returns:
            The turn's number: from 0 on in each conversation, and never used twice there.
        """
        return await self._write(turns.open_turn, conversation_id, message, _now())

    async def close_turn(
        self, conversation_id: str, number: int, turn: Turn, stop: str, calls: Sequence[CallRow] = ()
    ) -> None:
        """Keeps the answer, and what it asked of providers. The message stays as it was when the turn was opened.

        Raises:
            LookupError: there is no such turn.
        """
        await self._write(_close_turn, conversation_id, number, turn, stop, _now(), calls)

    async def drop_last_turn(self, conversation_id: str) -> str | None:
        """Marks the last turn as replaced, so that it can be asked again.

        Returns:
            Its message; None when the conversation has no turn.
        """
        return await self._write(turns.drop_last_turn, conversation_id)

    async def set_feedback(self, conversation_id: str, number: int, liked: bool | None) -> None:
        """Keeps a thumb up, a thumb down, or (None) neither.

        Raises:
            LookupError: there is no such turn.
        """
        await self._write(turns.set_feedback, conversation_id, number, liked)

    # What replies cost

    async def model_calls(self, limit: int = 100) -> list[KeptCall]:
        """The last requests to providers, newest first."""
        return await self._read(model_calls.read_calls, limit)

    async def tokens_since(self, moment: datetime) -> int:
        """Tokens that providers read and wrote since then."""
        return await self._read(model_calls.tokens_since, moment)

    # What visitors leave

    async def add_contact(self, contact: Contact, alert_text: AlertText, more_text: AlertText) -> Kept:
        """Keeps a contact and its alert, both or neither; or adds newer notes to one that the conversation has left.

        Args:
            contact: who, and what they want.
            alert_text: makes the alert's text from its reference.
            more_text: makes the text of an alert on what was added, from its reference.
        """
        return await self._write(inbox.add_contact, contact, alert_text, more_text, _now())

    async def add_question(self, question: Question, alert_text: AlertText) -> Kept:
        """Keeps a question and its alert, both or neither, and each question of a conversation once."""
        return await self._write(inbox.add_question, question, alert_text, _now())

    async def contacts(self) -> list[Contact]:
        """All contacts, newest first."""
        return await self._read(inbox.read_contacts)

    async def questions(self) -> list[Question]:
        """All questions, newest first."""
        return await self._read(inbox.read_questions)

    # Alerts

    async def add_trouble(self, key: str, text: str, within: timedelta) -> bool:
        """Keeps an alert about the replica itself, unless one with this key was kept within that time."""
        return await self._write(alert_queue.add_trouble, key, text, within, _now())

    async def claim_due_alerts(self, limit: int, now: datetime) -> list[Alert]:
        """Takes alerts that are due: those on contacts first, then the oldest.

        They are not handed out again before `alert_queue.LEASE` is over.
        """
        return await self._write(alert_queue.claim_due_alerts, limit, now)

    async def next_alert_due(self) -> datetime | None:
        """When the next alert may be tried."""
        return await self._read(alert_queue.next_due)

    async def alerts_sent_since(self, since: datetime) -> tuple[int, datetime | None]:
        """How many alerts went out after `since`, and when the last of them did."""
        return await self._read(alert_queue.sent_since, since)

    async def mark_sent(self, alert_ids: Sequence[int], now: datetime) -> None:
        """Keeps that these alerts have gone out, all or none."""
        await self._write(alert_queue.mark_sent, alert_ids, now)

    async def mark_failed(self, alert_ids: Sequence[int], retry_at: datetime, reason: str) -> None:
        """Keeps why these alerts did not go out; they are due again at `retry_at`."""
        await self._write(alert_queue.mark_failed, alert_ids, retry_at, reason)

    async def mark_kept(self, alert_id: int) -> None:
        """Sets an alert aside until `release_alerts`: there is no channel to send it through."""
        await self._write(alert_queue.mark_kept, alert_id)

    async def release_alerts(self, now: datetime) -> None:
        """Makes every alert that was not sent due at `now`: kept, failed, or claimed by a process that died."""
        await self._write(alert_queue.release_alerts, now)

    async def alert_counts(self) -> dict[str, int]:
        """How many alerts are `pending`, `failed` (and tried again), `kept` (no channel is set) and `sent`."""
        return await self._read(alert_queue.count_alerts)

    async def _read(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(_run, self._engine, lambda connection: query(connection, *args, **kwargs))

    async def _write(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(_run, self._writer, lambda connection: query(connection, *args, **kwargs))


def _run(engine: Engine, query: Callable[[Connection], T], races: int = RACES) -> T:
    """One transaction. Who loses a race for a number or a reference starts again and sees what the winner wrote."""
    try:
        while True:
            try:
                with engine.begin() as connection:
                    return query(connection)
            except IntegrityError:
                races -= 1
                if races < 0:
                    raise
    except SQLAlchemyError as error:
        raise StoreError(f"the database cannot be used ({type(error).__name__})") from error


def _close_turn(
    connection: Connection,
    conversation_id: str,
    number: int,
    turn: Turn,
    stop: str,
    now: datetime,
    calls: Sequence[CallRow],
) -> None:
    """One transaction for both: a second one would cost more than the rows do."""
    turns.close_turn(connection, conversation_id, number, turn, stop, now)
    model_calls.add_calls(connection, conversation_id, number, calls)


def _read_version(connection: Connection) -> int:
    return connection.execute(select(schema_version.c.version)).scalar_one()


def _now() -> datetime:
    return datetime.now(UTC)
