"""Claims: who sends an alert, what happens when that one is slow, dies or cannot tell the store, and a clean end."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from alerts.outbox import Outbox
from alerts.pace import Pace
from alerts.telegram import Telegram
from store.store import Store
from tests.alert_house import JANE, QUICK, Clock, ask, at_once, deliver, logged, no_gap, running, within
from tests.databases import run_sql
from tests.fakes.telegram import FakeTelegram, Hangup, Silence, Status

LEASE = timedelta(seconds=0.2)


async def lease_of_the_alert(url: str) -> datetime:
    ((lease,),) = await asyncio.to_thread(run_sql, url, "SELECT lease FROM alerts")
    return datetime.fromisoformat(lease).replace(tzinfo=UTC)


async def test_a_send_that_outlasts_its_lease_stays_its_senders(
    store: Store, url: str, api: FakeTelegram, telegram: Telegram
) -> None:
    silence = Silence()
    api.fail_next(silence)
    async with running(Outbox(store, [telegram], pace=Pace(lease=LEASE))) as outbox:
        await outbox.contact(JANE, [])
        await api.requests_arrive(1)
        first = await lease_of_the_alert(url)
        async with asyncio.timeout(10):
            while await lease_of_the_alert(url) < first + LEASE:
                pass
        assert datetime.now(UTC) > first
        with closing(Telegram(api.token, api.chat_id, api.url, gap_s=no_gap)) as other:
            assert await deliver(Outbox(store, [other])) > 0
        assert len(api.requests) == 1
        silence.over.set()
    assert (len(api.messages), (await store.alert_counts())["sent"]) == (1, 1)


async def test_a_start_takes_nothing_from_a_worker_that_lives(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    clock = Clock()
    outbox = Outbox(store, [telegram], now=clock)
    await outbox.question(ask(1), [])
    await outbox.question(ask(2), [])
    assert len(await store.claim_due_alerts(1, datetime.now(UTC), "another")) == 1
    await deliver(outbox)
    assert [message.text.splitlines()[0] for message in api.messages] == ["I could not answer: What is 2?"]
    clock.ahead = timedelta(seconds=61)
    await deliver(outbox)
    assert len(api.messages) == 2


async def test_what_another_worker_has_taken_over_is_not_marked(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    silence = Silence()
    api.fail_next(silence)
    async with running(Outbox(store, [telegram])) as outbox:
        await outbox.contact(JANE, [])
        await api.requests_arrive(1)
        later = datetime.now(UTC) + timedelta(seconds=61)
        assert len(await store.claim_due_alerts(1, later, "another")) == 1
        silence.over.set()
    assert (len(api.messages), (await store.alert_counts())["sent"]) == (1, 0)


class LateTelegram(FakeTelegram):
    """Takes the first message, and answers when nobody waits any more."""

    def answer(self, path: str, payload: dict[str, Any]) -> Status:
        status = super().answer(path, payload)
        if len(self.messages) == 1:
            self.closing.wait(QUICK[1] * 3)
        return status


async def test_only_a_send_whose_answer_came_too_late_is_repeated(store: Store) -> None:
    with (
        LateTelegram() as api,
        closing(Telegram(api.token, api.chat_id, api.url, gap_s=no_gap, timeout_s=QUICK)) as telegram,
    ):
        async with running(Outbox(store, [telegram], back_off=at_once)) as outbox:
            for number in range(3):
                await outbox.question(ask(number), [])
            await api.messages_arrive(4)
    assert sorted(message.text.splitlines()[0][-2] for message in api.messages) == ["0", "0", "1", "2"]


async def test_a_message_that_went_out_while_the_store_was_away_is_not_repeated(
    store: Store, url: str, api: FakeTelegram, telegram: Telegram
) -> None:
    silence, clock = Silence(), Clock()
    api.fail_next(silence)
    outbox = Outbox(store, [telegram], now=clock)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database, logged("cannot use the store") as seen:
        async with running(outbox):
            await outbox.contact(JANE, [])
            await api.requests_arrive(1)
            database.execute("ALTER TABLE alerts RENAME TO away")
            silence.over.set()
            await within(seen)
            database.execute("ALTER TABLE away RENAME TO alerts")
            clock.ahead = timedelta(seconds=61)  # the claim is over
            await outbox.question(ask(1), [])
            await api.messages_arrive(2)
    assert [message.text.splitlines()[0][:11] for message in api.messages] == ["New contact", "I could not"]
    assert (await store.alert_counts())["sent"] == 2


async def test_the_end_does_not_wait_for_ever_and_gives_the_alert_back(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    silence = Silence()
    api.fail_next(silence)
    outbox = Outbox(store, [telegram], pace=Pace(end_s=0.1))
    worker = asyncio.create_task(outbox.run())
    await outbox.contact(JANE, [])
    await api.requests_arrive(1)
    began = time.monotonic()
    worker.cancel()
    with logged("is not known to have arrived") as seen, suppress(asyncio.CancelledError):
        await worker
    assert seen.is_set()
    assert time.monotonic() - began < 5
    with closing(Telegram(api.token, api.chat_id, api.url, gap_s=no_gap)) as other:
        await deliver(Outbox(store, [other]))
    assert len(api.messages) == 1


async def test_the_rest_of_a_message_in_pieces_is_sent_when_it_is_tried_again(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    await store.add_trouble("long", "".join(f"line {number:05}\n" for number in range(1000)), timedelta(hours=1))
    api.fail_next(None, None, Hangup())
    async with running(Outbox(store, [telegram], back_off=at_once)):
        messages = await api.messages_arrive(4)
    # The third was taken, and nobody said so.
    assert [message.text[:10] for message in messages] == ["line 00000", "line 00372", "line 00744", "line 00744"]
    assert "".join(message.text for message in messages[:3]).count("line") == 1000
