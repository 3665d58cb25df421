"""The outbox: alerts are stored first, and a worker delivers them from the store, over faults and restarts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from alerts.channel import Channel
from alerts.delivery import LOOK_AGAIN_S, Delivery
from alerts.pace import Pace, back_off_s
from alerts.text import contact_text, more_text, one_line, question_text
from alerts.ways import Ways
from store.inbox import Kept
from store.records import Contact, Question
from store.store import Store

log = logging.getLogger(__name__)

TROUBLE_EVERY = timedelta(hours=1)

NO_CHANNEL = (
    "no channel is set, so alerts are only stored and logged: "
    "set TELEGRAM_BOT_TOKEN and TELEGRAM_CHAT_ID, or ALERT_WEBHOOK_URL"
)


PACE = Pace()


class Outbox:
    """Owns the worker. Whoever hands in an alert never waits for its delivery.

    Args:
        store: keeps the alerts.
        channels: tried in this order, until one takes the alert. None: alerts wait in the store for one.
        back_off: seconds to wait after so many failed tries.
        now: the clock, with its zone; None: the store's, which several machines share.
        pace: see there.
    """

    def __init__(
        self,
        store: Store,
        channels: Sequence[Channel],
        *,
        back_off: Callable[[int], float] = back_off_s,
        now: Callable[[], datetime] | None = None,
        pace: Pace = PACE,
    ) -> None:
        self._store = store
        now = now or store.now
        self._ways = Ways(store, channels, now)
        self._delivery = Delivery(store, self._ways, back_off, now, pace)
        self._now = now
        self._end_s = pace.end_s
        self._woken = asyncio.Event()
        self._running = False
        self._store_fails = False

    async def contact(self, contact: Contact, excerpt: Sequence[str]) -> Kept:
        """Stores a contact and its alert, or what is new about one that this conversation has left before."""
        kept = await self._store.add_contact(
            contact,
            lambda reference: contact_text(contact, excerpt, reference),
            lambda reference: more_text(contact, excerpt, reference),
        )
        self.wake()
        return kept

    async def question(self, question: Question, excerpt: Sequence[str]) -> Kept:
        """Stores a question and its alert, unless this conversation has asked that before."""
        left = await self._store.contact_of(question.conversation_id)
        email = left.email if left else ""
        kept = await self._store.add_question(
            question, lambda reference: question_text(question, excerpt, reference, email)
        )
        self.wake()
        return kept

    async def trouble(self, key: str, text: str, within: timedelta = TROUBLE_EVERY) -> bool:
        """Stores an alert about the replica itself. False: there was one with this key within that time."""
        fresh = await self._store.add_trouble(key, f"Trouble: {one_line(text)}", within)
        self.wake()
        return fresh

    def wake(self) -> None:
        """Something new may be due."""
        self._woken.set()

    async def unblock(self, channel: str) -> None:
        """The owner has mended what kept this channel from working: what waited for it is due."""
        if await self._ways.unblock(channel):
            await self._store.release_alerts(self._now())
        self.wake()

    def status(self) -> str:
        """`ok`, or what is wrong in plain words."""
        if not self._running:
            return "the worker that delivers alerts does not run"
        if not self._ways.channels:
            return NO_CHANNEL
        return "; ".join(self.problems) or "ok"

    @property
    def problems(self) -> list[str]:
        """What keeps alerts from going out, in plain words."""
        return [*(["the outbox cannot use the store"] if self._store_fails else []), *self._ways.problems()]

    async def run(self) -> None:
        """Delivers until it is cancelled. A delivery under way is finished and marked first, if it ends in time."""
        self._running = True
        try:
            while True:
                self._woken.clear()
                step = asyncio.create_task(self._step())
                try:
                    wait_s = await asyncio.shield(step)
                finally:
                    await self._finish(step)
                await self._sleep(wait_s)
        finally:
            self._running = False

    def close(self) -> None:
        """Closes the channels."""
        for channel in self._ways.channels:
            channel.close()

    async def _finish(self, step: asyncio.Task[float]) -> None:
        try:
            await asyncio.wait([step], timeout=self._end_s)
        finally:
            if step.cancel():
                log.warning("An alert was under way at the end: it is not known to have arrived, and will be repeated")
                await asyncio.wait([step])
                await self._delivery.end()

    async def _sleep(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _step(self) -> float:
        try:
            wait_s = await self.deliver_next()
        except Exception as error:
            # Nothing may end the worker. Its errors are those of the store; a channel's were caught before.
            if not self._store_fails:  # once, and not again each time that it is tried
                log.exception("The outbox cannot use the store (%s)", type(error).__name__)
            self._store_fails = True
            return LOOK_AGAIN_S
        if self._store_fails:
            log.info("The outbox can use the store again")
        self._store_fails = False
        return wait_s

    async def deliver_next(self) -> float:
        """Sends what may go out now: one alert, or a digest. Returns how long nothing is to be done, in seconds."""
        return await self._delivery.next()
