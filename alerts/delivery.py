"""Delivers what the store holds: claims alerts, sends them through the first way that takes them, and marks them."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from alerts.channel import AlertError, Channel
from alerts.pace import Pace
from alerts.text import digest_text, digests, without_hints
from alerts.ways import MAX_PAUSE_S, Ways
from store.records import Alert, Sent, StoreError
from store.store import Store

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 30.0
"""How often the worker looks into the store unasked, in seconds."""
A_MOMENT_S = 0.05
"""How long it waits at least where there is nothing to do, in seconds: another worker may be just taking an alert."""
HOUR = timedelta(hours=1)


class Delivery:
    """Owns the claims of one worker. Of several workers on one store, whoever claims an alert sends it."""

    def __init__(
        self, store: Store, ways: Ways, back_off: Callable[[int], float], now: Callable[[], datetime], pace: Pace
    ) -> None:
        self._store = store
        self._ways = ways
        self._back_off = back_off
        self._now = now
        self._pace = pace
        self._holder = secrets.token_hex(8)
        """Names the claims of this worker: no other one, in whatever process, has the same."""
        self._released = False
        self._unmarked: list[tuple[list[int], datetime, Sent]] = []
        """What went out while the store could not be told."""
        self._begun: set[frozenset[int]] = set()
        """Alerts in one message of which a part has gone out."""

    async def next(self) -> float:
        """Sends what may go out now: one alert, or a digest. Returns how long nothing is to be done, in seconds."""
        await self._store.keep_time()
        await self._mark_rest()
        now = self._now()
        channels = await self._ways.open()
        if self._ways.channels and not channels:
            return min(LOOK_AGAIN_S, max(A_MOMENT_S, self._ways.closed_s()))
        if channels and not self._released:
            await self._store.release_alerts(now)  # a restart may have mended what they waited for
            self._released = True
        alerts, wait_s = self._pace.room(*await self._store.alerts_sent_since(now - HOUR), now)
        # What the bot answers the owner goes out all the same.
        claimed = await self._store.claim_due_alerts(0 if wait_s else alerts, now, self._holder, self._pace.lease)
        if claimed:
            await self._deliver(claimed, channels)
            return 0
        due = await self._store.next_alert_due()
        due_s = LOOK_AGAIN_S if due is None else (due - now).total_seconds()
        return min(LOOK_AGAIN_S, max(wait_s, due_s, A_MOMENT_S))

    async def end(self) -> None:
        """Gives back what is claimed, so that nobody waits for the lease: what is not known to have arrived repeats."""
        try:
            await self._mark_rest()
            await self._store.drop_claims(self._holder)
        except StoreError as error:
            log.warning("A claim was not given back: %s", error)

    async def _deliver(self, alerts: Sequence[Alert], channels: Sequence[Channel]) -> None:
        """Sends them, each message marked before the next one: what has gone out is not told again with the rest."""
        if not channels:
            for alert in alerts:
                log.warning("Alert without a channel, kept in the store: %s", _logged(alert))
                await self._store.mark_kept(alert.id)
            return
        async with self._holding(alerts):
            messages = self._messages(alerts)
            for number, message in enumerate(messages):
                if failures := await self._send(message, channels):
                    await self._failed([one for rest in messages[number:] for one in rest], failures)
                    return

    def _messages(self, alerts: Sequence[Alert]) -> list[list[Alert]]:
        """A message of which a part has gone out stays as it is, so that only the rest of it is sent."""
        messages: list[list[Alert]] = []
        left = {alert.id: alert for alert in alerts}
        for begun in self._begun:
            if begun <= left.keys():
                messages.append([left.pop(one) for one in sorted(begun)])
        return messages + digests(list(left.values()))

    async def _send(self, alerts: Sequence[Alert], channels: Sequence[Channel]) -> list[AlertError]:
        """Sends one message. Returns why no channel took it; nothing if one did."""
        failures: list[AlertError] = []
        ids = frozenset(alert.id for alert in alerts)
        for channel in channels:
            outcome = await self._try(channel, alerts)
            if isinstance(outcome, Sent):
                self._begun.discard(ids)
                await self._delivered(alerts, channel, outcome)
                return []
            failures.append(outcome)
        if any(failure.partly for failure in failures):
            self._begun.add(ids)
        return failures

    @asynccontextmanager
    async def _holding(self, alerts: Sequence[Alert]) -> AsyncGenerator[None]:
        """Meanwhile the claims do not run out."""
        extending = asyncio.create_task(self._extend([alert.id for alert in alerts]))
        try:
            yield
        finally:
            extending.cancel()
            await asyncio.wait([extending])

    async def _extend(self, alert_ids: Sequence[int]) -> None:
        while True:
            await asyncio.sleep(self._pace.lease.total_seconds() / 3)
            try:
                await self._store.extend_claims(alert_ids, self._now(), self._holder, self._pace.lease)
            except StoreError as error:
                log.warning("A claim was not renewed: %s", error)

    async def _try(self, channel: Channel, alerts: Sequence[Alert]) -> Sent | AlertError:
        text = alerts[0].text if len(alerts) == 1 else digest_text(alerts)
        try:
            return await channel.send(text, alerts[0].reply_to)
        except AlertError as error:
            failure = error
        except Exception as error:
            # Its text may hold the channel's secret.
            failure = AlertError(f"{channel.name} failed in an unknown way ({type(error).__name__})")
        await self._ways.failed(channel, failure)
        return failure

    async def _delivered(self, alerts: Sequence[Alert], channel: Channel, sent: Sent) -> None:
        self._unmarked.append(([alert.id for alert in alerts], self._now(), sent))
        await self._mark_rest()
        log.info("Alert %s went out by %s", _references(alerts), channel.name)
        if self._ways.worked(channel):
            await self._store.release_alerts(self._now())  # the way is free again for the others too

    async def _mark_rest(self) -> None:
        while self._unmarked:
            alert_ids, at, sent = self._unmarked[0]
            await self._store.mark_sent(alert_ids, at, self._holder, sent)
            del self._unmarked[0]

    async def _failed(self, alerts: Sequence[Alert], failures: Sequence[AlertError]) -> None:
        """Marks the alerts. They are due again when the first channel may be tried that is not the owner's to mend."""
        attempts = max(alert.attempts for alert in alerts)
        wait_s = min((self._wait_s(one, attempts) for one in failures if not one.permanent), default=0.0)
        reasons = "; ".join(failure.reason for failure in failures)
        if wait_s:
            log.warning("Alert %s did not go out: %s. Next try in %.0f s.", _references(alerts), reasons, wait_s)
        retry_at = self._now() + timedelta(seconds=wait_s)
        await self._store.mark_failed([alert.id for alert in alerts], retry_at, reasons, self._holder)

    def _wait_s(self, failure: AlertError, attempts: int) -> float:
        if failure.retry_after_s is not None:
            return min(MAX_PAUSE_S, max(1.0, failure.retry_after_s))
        return self._back_off(attempts)


def _references(alerts: Sequence[Alert]) -> str:
    return ", ".join(alert.reference for alert in alerts)


def _logged(alert: Alert) -> str:
    return " · ".join(without_hints(alert.text).splitlines())
