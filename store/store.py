"""The store: asynchronous on the outside, one short transaction in a thread for each call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection

from agent.conversation import Conversation, Transcript, Turn
from store import alert_queue, answers, forgetting, inbox, model_calls, owner, states, targets, turns
from store.clock import ahead_of, utc_now
from store.database import open_engine
from store.inbox import AlertText, Kept
from store.owner import Owner
from store.records import (
    Alert,
    Answer,
    CallRow,
    Contact,
    KeptCall,
    OwnerWords,
    Question,
    Sent,
    Stats,
    Target,
)  # fmt: skip
from store.transactions import Transactions


class Store:
    """Owns the database. Every method raises StoreError when it cannot be used.

    Args:
        transactions: on the database.
        clock: of this machine, with its zone.
    """

    def __init__(self, transactions: Transactions, clock: Callable[[], datetime] = utc_now) -> None:
        self._db = transactions
        self._clock = clock
        self._ahead = timedelta(0)
        """By how much the database's clock is ahead of the machine's: leases of several machines need one clock."""

    @staticmethod
    def open(url: str, clock: Callable[[], datetime] = utc_now) -> Store:
        """Opens the database at `url`; makes folder, file and tables where they are missing.

        Raises:
            StoreError: it cannot be opened.
        """
        return Store(Transactions(open_engine(url)), clock)

    def now(self) -> datetime:
        """The database's time, as far as `keep_time` has asked for it."""
        return self._clock() + self._ahead

    async def keep_time(self) -> None:
        """Sets the clock by the database's. A file has none, and its processes share the machine's."""
        self._ahead = await self._db.read(ahead_of, self._clock)

    async def close(self) -> None:
        await self._db.close()

    async def ping(self) -> None:
        """Raises StoreError unless the database can be read and written."""
        await self._db.write(states.write_state, "ping", "null", self.now())

    # Conversations

    async def conversation(self, conversation_id: str) -> Conversation:
        return (await self.transcript(conversation_id)).conversation

    async def transcript(self, conversation_id: str) -> Transcript:
        """The turns that were not replaced, oldest first. One that was never closed reads as broken off."""
        return await self._db.read(turns.read_transcript, conversation_id)

    async def open_turn(self, conversation_id: str, message: str) -> int:
        """Keeps a visitor's words before anybody answers them.

        Returns:
            The turn's number: from 0 on in each conversation, and never used twice there.
        """
        return await self._db.write(turns.open_turn, conversation_id, message, self.now())

    async def close_turn(
        self, conversation_id: str, number: int, turn: Turn, stop: str, calls: Sequence[CallRow] = ()
    ) -> None:
        """Keeps the answer, and what it asked of providers. The message stays as it was when the turn was opened.

        Raises:
            LookupError: there is no such turn.
        """
        await self._db.write(_close_turn, conversation_id, number, turn, stop, self.now(), calls)

    async def drop_last_turn(self, conversation_id: str) -> str | None:
        """Marks the last turn as replaced, so that it can be asked again.

        Returns:
            Its message; None when the conversation has no turn.
        """
        return await self._db.write(turns.drop_last_turn, conversation_id)

    async def set_feedback(self, conversation_id: str, number: int, liked: bool | None) -> None:
        """Keeps a thumb up, a thumb down, or (None) neither.

        Raises:
            LookupError: there is no such turn.
        """
        await self._db.write(turns.set_feedback, conversation_id, number, liked)

    # What replies cost

    async def model_calls(self, limit: int = 100) -> list[KeptCall]:
        """The last requests to providers, newest first."""
        return await self._db.read(model_calls.read_calls, limit)

    async def tokens_since(self, moment: datetime) -> int:
        """Tokens that providers read and wrote since then."""
        return await self._db.read(model_calls.tokens_since, moment)

    # What visitors leave

    async def add_contact(self, contact: Contact, alert_text: AlertText, more_text: AlertText) -> Kept:
        """Keeps a contact and its alert, both or neither; or adds newer notes to one that the conversation has left.

        Args:
            contact: who, and what they want.
            alert_text: makes the alert's text from its reference.
            more_text: makes the text of an alert on what was added, from its reference.
        """
        return await self._db.write(inbox.add_contact, contact, alert_text, more_text, self.now())

    async def add_question(self, question: Question, alert_text: AlertText) -> Kept:
        """Keeps a question and its alert, both or neither, and each question of a conversation once."""
        return await self._db.write(inbox.add_question, question, alert_text, self.now())

    async def contacts(self) -> list[Contact]:
        """All contacts, newest first."""
        return await self._db.read(inbox.read_contacts)

    async def contact_of(self, conversation_id: str) -> Contact | None:
        """The newest contact that a conversation left."""
        return await self._db.read(inbox.contact_of, conversation_id)

    async def questions(self) -> list[Question]:
        """All questions, newest first."""
        return await self._db.read(inbox.read_questions)

    # Alerts

    async def add_trouble(self, key: str, text: str, within: timedelta) -> bool:
        """Keeps an alert about the replica itself, unless one with this key was kept within that time."""
        return await self._db.write(alert_queue.add_trouble, key, text, within, self.now())

    async def claim_due_alerts(
        self, limit: int, now: datetime, holder: str = "", lease: timedelta = alert_queue.LEASE
    ) -> list[Alert]:
        """Takes alerts that are due: one reply to the owner alone; else those on contacts first, then the oldest.

        They are nobody else's while the lease lasts. With a limit of 0 it takes a reply, or nothing.
        """
        return await self._db.write(alert_queue.claim_due_alerts, limit, now, holder, lease)

    async def extend_claims(
        self, alert_ids: Sequence[int], now: datetime, holder: str, lease: timedelta = alert_queue.LEASE
    ) -> None:
        """Renews the claims that the holder still has: the lease begins anew."""
        await self._db.write(alert_queue.extend_claims, alert_ids, now, holder, lease)

    async def drop_claims(self, holder: str) -> None:
        """Gives back what the holder has claimed and not marked."""
        await self._db.write(alert_queue.drop_claims, holder)

    async def next_alert_due(self) -> datetime | None:
        """When the next alert may be tried."""
        return await self._db.read(alert_queue.next_due)

    async def alerts_sent_since(self, since: datetime) -> tuple[int, datetime | None]:
        """How many alerts went out after `since`, and when the last of them did. Replies to the owner do not count."""
        return await self._db.read(alert_queue.sent_since, since)

    async def mark_sent(
        self, alert_ids: Sequence[int], now: datetime, holder: str = "", sent: Sent | None = None
    ) -> None:
        """Keeps that those of the alerts which the holder still has have gone out, and where all of them went."""
        await self._db.write(alert_queue.mark_sent, alert_ids, now, holder, sent)

    async def mark_failed(self, alert_ids: Sequence[int], retry_at: datetime, reason: str, holder: str = "") -> None:
        """Keeps why those which the holder still has did not go out; they are due again at `retry_at`."""
        await self._db.write(alert_queue.mark_failed, alert_ids, retry_at, reason, holder)

    async def mark_kept(self, alert_id: int) -> None:
        """Sets an alert aside until `release_alerts`: there is no channel to send it through."""
        await self._db.write(alert_queue.mark_kept, alert_id)

    async def release_alerts(self, now: datetime) -> None:
        """Makes kept and failed alerts due at `now`, but none that somebody is about to send."""
        await self._db.write(alert_queue.release_alerts, now)

    async def alert_counts(self) -> dict[str, int]:
        """How many alerts are `pending`, `failed` (and tried again), `kept` (no channel is set) and `sent`."""
        return await self._db.read(alert_queue.count_alerts)

    async def target_of(self, chat_id: str, message_id: int) -> list[Target]:
        """What the alerts in a message were about."""
        return await self._db.read(targets.targets_of, chat_id, message_id)

    async def target_named(self, reference: str) -> Target | None:
        """The contact or question of that reference; an answer's leads to its question."""
        return await self._db.read(targets.target_named, reference)

    # What the owner does

    async def handle_update(
        self,
        update_id: int,
        act: Callable[[Owner], str | None],
        reply_to: int | None = None,
        offset_key: str = owner.OFFSET,
    ) -> bool:
        """Does what an update from the owner's phone asks for, and queues what `act` returns as the bot's reply to it.

        All of it in one transaction, in the store's thread; `act` is begun again when another process was in its way.

        Args:
            update_id: updates of lower ids than the last one are done already.
            act: changes the store through what it is given, and nothing else.
            reply_to: the owner's message.
            offset_key: the state that keeps the id of the next update.

        Returns:
            False: it was done before, and `act` did not run.
        """
        return await self._db.write(owner.handle_update, update_id, act, reply_to, offset_key, self.now())

    async def update_offset(self, offset_key: str = owner.OFFSET) -> int | None:
        """The id of the next update; None when there was none for so long that any id may come."""
        return await self._db.read(owner.read_offset, offset_key, self.now())

    async def answers(self) -> tuple[Answer, ...]:
        """All of the owner's answers, newest first."""
        return await self._db.read(answers.read_answers)

    async def answers_version(self) -> str:
        """Another one whenever an answer was added, corrected or forgotten."""
        return await self._db.read(answers.read_version)

    async def owner_words(self, conversation_id: str) -> tuple[OwnerWords, ...]:
        """What the owner wrote to a visitor, in the order of the conversation."""
        return await self._db.read(answers.read_words, conversation_id)

    async def news(self, conversation_id: str) -> int:
        """The id of the newest or last corrected of these words; 0 when there are none."""
        return await self._db.read(answers.newest_words, conversation_id)

    async def stats(self, since: datetime) -> Stats:
        return await self._db.read(owner.read_stats, since)

    async def forget(self, reference: str) -> str | None:
        """Takes out an answer, or all that is kept of a visitor. Returns what that was, in words; None: nothing."""
        return await self._db.write(forgetting.forget, reference, self.now())

    # The installation

    async def state(self, key: str) -> str | None:
        return await self._db.read(states.read_state, key)

    async def set_state(self, key: str, value: str | None) -> None:
        """None takes it away."""
        await self._db.write(states.write_state, key, value, self.now())

    async def take_lease(self, name: str, holder: str, for_s: float) -> bool:
        """Takes or renews what one process at a time may have. False: another one has it."""
        await self.keep_time()
        return await self._db.write(states.take_lease, name, holder, for_s, self.now())

    async def drop_lease(self, name: str, holder: str) -> None:
        """Gives it back, if the holder has it."""
        await self._db.write(states.drop_lease, name, holder)


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
