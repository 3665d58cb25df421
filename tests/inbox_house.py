"""What the tests of the owner's messages share: alerts on a phone, and what the bot answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

from alerts.hearing import Hearing
from alerts.inbox import Inbox
from store.records import Contact, Question, Sent
from store.store import Store
from tests.alert_house import at_once
from tests.fakes.telegram import FakeTelegram

CHAT = "4242"


@dataclass
class Talk:
    """The owner's chat with the bot, without Telegram between: alerts are marked as sent, messages are handed over."""

    store: Store
    chat_id: str = CHAT
    kind: str = "private"
    heard: list[int] = field(default_factory=list[int])
    ids: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.hearing = Hearing(self.store, "77", self.chat_id, self._hear)
        self.hearing.bot_name = "Replica_Bot"

    async def _hear(self) -> None:
        self.heard.append(1)

    async def question(self, text: str = "Where did you grow up?", conversation: str = "talk") -> tuple[int, str]:
        """A visitor asks. Number of the alert's message, and the reference."""
        await self.store.open_turn(conversation, text)
        await self.store.add_question(Question(conversation, text), lambda reference: f"Asked {reference}")
        return await self.deliver()

    async def contact(self, email: str = "jane@example.org", conversation: str = "talk") -> tuple[int, str]:
        """A visitor leaves an address."""
        contact = Contact(conversation, email, email, "to talk about a job in Turin", "Jane Doe")
        await self.store.add_contact(contact, lambda reference: f"Left {reference}", lambda reference: "More")
        return await self.deliver()

    async def deliver(self, limit: int = 1) -> tuple[int, str]:
        """Marks alerts as sent in one message."""
        alerts = await self.store.claim_due_alerts(limit, datetime.now(UTC), "phone")
        assert alerts, "nothing is due"
        number = next(self.ids)
        sent = Sent(self.chat_id, (number,))
        await self.store.mark_sent([alert.id for alert in alerts], datetime.now(UTC), "phone", sent)
        self.shown = alerts[0].text
        self.reply_to = alerts[0].reply_to
        return number, alerts[0].reference

    async def says(self, text: str | None, answers: int | None = None, **more: Any) -> str | None:
        """The owner writes (None: sends a voice message). What the bot answers, if it does."""
        self.said = await self.hands_over(text, answers, **more)
        try:
            self.answered, _ = await self.deliver()
        except AssertionError:
            return None
        assert self.reply_to == self.said
        return self.shown

    async def hands_over(
        self, text: str | None, answers: int | None = None, kind: str = "message", bots: bool = True, **more: Any
    ) -> int:
        update = next(self.ids)
        number: int = more.get("message_id", update)
        message: dict[str, Any] = {"message_id": number, "chat": {"id": int(self.chat_id), "type": self.kind}, **more}
        message |= {"voice": {}} if text is None else {"text": text}
        if answers is not None:
            message["reply_to_message"] = {"message_id": answers, "from": {"id": 77, "is_bot": bots}}
        await self.hearing.handle({"update_id": 5000 + update, kind: message})
        return number


@asynccontextmanager
async def listening(inbox: Inbox) -> AsyncGenerator[Inbox]:
    """With its worker."""
    worker = asyncio.create_task(inbox.run())
    try:
        yield inbox
    finally:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker
        inbox.close()


def inbox_of(api: FakeTelegram, store: Store, **more: Any) -> Inbox:
    """That tries again at once."""
    options: dict[str, Any] = {"heard": nobody, "back_off": at_once, "look_s": 0.02}
    return Inbox(store, api.token, api.chat_id, api.url, **options | more)


async def nobody() -> None:
    """Is told that the owner was heard."""


async def until(happens: Callable[[], bool]) -> None:
    """Looks again and again: a worker's status tells nobody that it has changed."""
    async with asyncio.timeout(10):
        while True:
            if happens():
                return
            await asyncio.sleep(0.005)
