"""The outbox: alerts are stored first, and a worker delivers them from the store, over faults and restarts."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from alerts.channel import AlertError, Channel
from alerts.text import contact_text, digest_text, more_text, one_line, question_text
from store.inbox import Kept
from store.records import Alert, Contact, Question
from store.store import Store

log = logging.getLogger(__name__)

MAX_BACK_OFF_S = 600.0
MAX_PAUSE_S = 3600.0
"""The longest pause that a channel gets when it asks for one, in seconds."""
MANY = 20
"""As many tries as it takes to the longest back-off."""
LOOK_AGAIN_S = 30.0
"""How often the worker looks into the store unasked, in seconds."""
TROUBLE_EVERY = timedelta(hours=1)

HOUR = timedelta(hours=1)
ALERTS_AN_HOUR = 60
"""When so many have gone out within an hour, the others go out bundled."""
DIGEST_EVERY = timedelta(minutes=10)
"""How long alerts are gathered for a digest, counted from the message before."""
DIGEST_ALERTS = 100
"""So many fit into one digest; what is left waits for the next one."""

NO_CHANNEL = (
    "no channel is set, so alerts are only stored and logged: "
    "set TELEGRAM_BOT_TOKEN and TELEGRAM_CHAT_ID, or ALERT_WEBHOOK_URL"
)


def back_off_s(attempts: int) -> float:
    """Seconds to wait after so many tries: twice as long each time, up to ten minutes, and never for all at once."""
    return min(MAX_BACK_OFF_S, 2.0 ** min(attempts, MANY)) * random.uniform(0.5, 1)


def room(sent: int, last: datetime | None, now: datetime) -> tuple[int, float]:
    """How many alerts the next message holds, and how long it has to wait, in seconds.

    Args:
        sent: alerts that went out within the last hour.
        last: when the last of them did.
        now: the present.
    """
    if last is None or sent < ALERTS_AN_HOUR:
        return 1, 0.0
    return DIGEST_ALERTS, max(0.0, (last + DIGEST_EVERY - now).total_seconds())


def utc_now() -> datetime:
    return datetime.now(UTC)


class Outbox:
    """Owns the worker. Whoever hands in an alert never waits for its delivery.

    Args:
        store: keeps the alerts.
        channels: tried in this order, until one takes the alert. None: alerts wait in the store for one.
        back_off: seconds to wait after so many failed tries.
        now: the clock, with its zone.
    """

    def __init__(
        self,
        store: Store,
        channels: Sequence[Channel],
        *,
        back_off: Callable[[int], float] = back_off_s,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._store = store
        self._channels = tuple(channels)
        self._back_off = back_off
        self._now = now
        self._woken = asyncio.Event()
        self._running = False
        self._released = False
        self._problems: dict[str, str] = {}
        """Why a channel, or the store, does not work at present."""
        self._pauses: dict[str, float] = {}
        """When a channel that asked for a pause may be tried again, on the monotonic clock."""

    async def contact(self, contact: Contact, excerpt: Sequence[str]) -> Kept:
        """Stores a contact and its alert, or what is new about one that this conversation has left before."""
        kept = await self._store.add_contact(
            contact,
            lambda reference: contact_text(contact, excerpt, reference),
            lambda reference: more_text(contact, excerpt, reference),
        )
        self._woken.set()
        return kept

    async def question(self, question: Question, excerpt: Sequence[str]) -> Kept:
        """Stores a question and its alert, unless this conversation has asked that before."""
        kept = await self._store.add_question(question, lambda reference: question_text(question, excerpt, reference))
        self._woken.set()
        return kept

    async def trouble(self, key: str, text: str) -> bool:
        """Stores an alert about the replica itself. False: there was one with this key within the hour."""
        fresh = await self._store.add_trouble(key, f"Trouble: {one_line(text)}", TROUBLE_EVERY)
        self._woken.set()
        return fresh

    def status(self) -> str:
        """`ok`, or what is wrong in plain words."""
        if not self._running:
            return "the worker that delivers alerts does not run"
        if not self._channels:
            return NO_CHANNEL
        return "; ".join(self._problems.values()) or "ok"

    async def run(self) -> None:
        """Delivers until it is cancelled; a delivery in flight is finished and marked first."""
        self._running = True
        try:
            while True:
                self._woken.clear()
                step = asyncio.create_task(self._step())
                try:
                    wait_s = await asyncio.shield(step)
                except asyncio.CancelledError:
                    await step
                    raise
                await self._sleep(wait_s)
        finally:
            self._running = False

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
            log.exception("The outbox cannot use the store (%s)", type(error).__name__)
            self._problems["store"] = "the outbox cannot use the store"
            return LOOK_AGAIN_S
        self._problems.pop("store", None)
        return wait_s

    async def deliver_next(self) -> float:
        """Sends one message, if one is due. Returns how long nothing is to be done, in seconds."""
        now = self._now()
        if self._channels and not self._released:
            await self._store.release_alerts(now)  # a restart may have mended what they waited for
            self._released = True
        alerts, wait_s = room(*await self._store.alerts_sent_since(now - HOUR), now)
        if wait_s > 0:
            return min(LOOK_AGAIN_S, wait_s)
        if claimed := await self._store.claim_due_alerts(alerts, now):
            await self._deliver(claimed)
            return 0
        due = await self._store.next_alert_due()
        return LOOK_AGAIN_S if due is None else min(LOOK_AGAIN_S, max(0.0, (due - now).total_seconds()))

    async def _deliver(self, alerts: Sequence[Alert]) -> None:
        """Sends one message; its alerts are marked together, when it has gone out or failed as a whole."""
        if not self._channels:
            for alert in alerts:
                log.warning("Alert without a channel, kept in the store: %s", " · ".join(alert.text.splitlines()))
                await self._store.mark_kept(alert.id)
            return
        text = alerts[0].text if len(alerts) == 1 else digest_text(alerts)
        failures: list[AlertError] = []
        for channel in self._channels:
            failure = await self._try(channel, text)
            if failure is None:
                await self._delivered(alerts, channel)
                return
            failures.append(failure)
        attempts = max(alert.attempts for alert in alerts)
        wait_s = min(self._wait_s(failure, attempts) for failure in failures)
        reasons = "; ".join(failure.reason for failure in failures)
        log.warning("Alert %s did not go out: %s. Next try in %.0f s.", _references(alerts), reasons, wait_s)
        retry_at = self._now() + timedelta(seconds=wait_s)
        await self._store.mark_failed([alert.id for alert in alerts], retry_at, reasons)

    async def _try(self, channel: Channel, text: str) -> AlertError | None:
        pause_s = self._pauses.get(channel.name, 0) - time.monotonic()
        if pause_s > 0:
            return AlertError(self._problems.get(channel.name, "a pause"), retry_after_s=pause_s)
        try:
            await channel.send(text)
            return None
        except AlertError as error:
            failure = error
        except Exception as error:
            # Its text may hold the channel's secret.
            failure = AlertError(f"{channel.name} failed in an unknown way ({type(error).__name__})")
        self._problems[channel.name] = failure.reason
        if failure.retry_after_s is not None:
            self._pauses[channel.name] = time.monotonic() + min(MAX_PAUSE_S, failure.retry_after_s)
        return failure

    async def _delivered(self, alerts: Sequence[Alert], channel: Channel) -> None:
        await self._store.mark_sent([alert.id for alert in alerts], self._now())
        log.info("Alert %s went out by %s", _references(alerts), channel.name)
        if self._problems.pop(channel.name, None):
            await self._store.release_alerts(self._now())  # the way is free again for the others too

    def _wait_s(self, failure: AlertError, attempts: int) -> float:
        if failure.retry_after_s is not None:
            return min(MAX_PAUSE_S, max(1.0, failure.retry_after_s))
        return self._back_off(MANY if failure.permanent else attempts)


def _references(alerts: Sequence[Alert]) -> str:
    return ", ".join(alert.reference for alert in alerts)
