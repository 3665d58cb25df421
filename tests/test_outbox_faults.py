"""The outbox when a channel fails, when there is none, and what its status says."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.channel import Channel
from alerts.outbox import NO_CHANNEL, Outbox
from alerts.pace import back_off_s
from alerts.telegram import Telegram
from alerts.webhook import Webhook
from store.records import Sent
from store.store import Store
from tests.alert_house import DOWN, JANE, ask, logged, never, running, within
from tests.fakes.telegram import FakeTelegram, FakeWebhook, Status

# Back-off


@given(attempts=st.integers(1, 10_000))
def test_the_back_off_grows_to_ten_minutes(attempts: int) -> None:
    whole = min(600, 2**attempts)
    assert whole / 2 <= back_off_s(attempts) <= whole


def test_the_back_off_is_never_the_same_for_all() -> None:
    assert len({back_off_s(5) for _ in range(20)}) > 1


async def seconds_to_next_try(store: Store) -> float:
    due = await store.next_alert_due()
    assert due is not None
    return (due - datetime.now(UTC)).total_seconds()


@pytest.mark.parametrize(("asked", "granted"), [(0, 1), (100, 100), (86_400, 3600)])
async def test_a_channel_gets_the_pause_that_it_asks_for_up_to_an_hour(
    store: Store, api: FakeTelegram, telegram: Telegram, asked: int, granted: int
) -> None:
    api.fail_always(Status(429, {"ok": False, "error_code": 429, "parameters": {"retry_after": asked}}))
    async with running(Outbox(store, [telegram])) as outbox:
        await outbox.contact(JANE, [])
        await api.requests_arrive(1)
    assert granted - 1 < await seconds_to_next_try(store) <= granted


async def test_a_channel_in_its_pause_is_left_alone_and_the_second_one_asked(
    store: Store, api: FakeTelegram, telegram: Telegram, hook: FakeWebhook, webhook: Webhook
) -> None:
    api.fail_next(Status(429, {"ok": False, "error_code": 429, "parameters": {"retry_after": 100}}))
    async with running(Outbox(store, [telegram, webhook])) as outbox:
        await outbox.question(ask(1), [])
        await outbox.question(ask(2), [])
        await hook.messages_arrive(2)
        assert outbox.status() == "Telegram asks for a pause"
    assert len(api.requests) == 1


# No channel


async def test_without_a_channel_an_alert_is_logged_once_and_goes_out_when_there_is_one(
    store: Store, api: FakeTelegram, telegram: Telegram, caplog: pytest.LogCaptureFixture
) -> None:
    with logged("Jane Doe") as seen:
        async with running(Outbox(store, [])) as outbox:
            await outbox.contact(JANE, ["Visitor: Hello"])
            await within(seen)
            assert outbox.status() == NO_CHANNEL
    with logged("What is 1?") as seen:
        async with running(Outbox(store, [])) as outbox:
            await outbox.question(ask(1), [])
            await within(seen)
    first, second = [record.getMessage() for record in caplog.records if record.name == "alerts.delivery"]
    assert "New contact: Jane Doe · jane@example.org · Wants: to talk about a job in Turin" in first
    assert "What is 1?" in second
    assert "\n" not in first + second
    assert (await store.alert_counts())["kept"] == 2
    async with running(Outbox(store, [telegram])):
        await api.messages_arrive(2)
    assert (await store.alert_counts())["sent"] == 2


# What /healthz says


async def test_the_status_says_what_is_wrong_and_that_it_is_mended(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    api.fail_next(DOWN)
    outbox = Outbox(store, [telegram], back_off=never)
    assert outbox.status() == "the worker that delivers alerts does not run"
    async with running(outbox):
        await outbox.contact(JANE, [])
        await api.requests_arrive(1)
    assert outbox.status() == "the worker that delivers alerts does not run"
    async with running(outbox):
        assert outbox.status() == "Telegram has a fault of its own (500)"
        await outbox.question(ask(1), [])
        await api.messages_arrive(2)
    async with running(outbox):
        assert outbox.status() == "ok"


class Broken:
    """A channel with a fault of its own."""

    name = "pigeon"
    fingerprint = "of the pigeon"

    async def send(self, text: str, reply_to: int | None = None) -> Sent:
        raise ValueError("https://example.org/secret-address")

    def close(self) -> None:
        """Nothing is open."""


async def test_a_channel_that_breaks_neither_ends_the_worker_nor_tells_its_secret(
    store: Store, hook: FakeWebhook, webhook: Webhook, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    channels: list[Channel] = [Broken(), webhook]
    async with running(Outbox(store, channels)) as outbox:
        await outbox.question(ask(1), [])
        await hook.messages_arrive(1)
        await outbox.question(ask(2), [])
        await hook.messages_arrive(2)
        assert outbox.status() == "pigeon failed in an unknown way (ValueError)"
    assert "secret-address" not in caplog.text


async def test_the_worker_outlives_a_fault_of_the_store(
    store: Store, url: str, api: FakeTelegram, telegram: Telegram
) -> None:
    await Outbox(store, [telegram]).question(ask(1), [])
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database, logged("cannot use the store") as seen:
        database.execute("ALTER TABLE alerts RENAME TO away")
        async with running(Outbox(store, [telegram])) as outbox:
            await within(seen)
            assert outbox.status() == "the outbox cannot use the store"
            database.execute("ALTER TABLE away RENAME TO alerts")
            await outbox.question(ask(2), [])
            await api.messages_arrive(2)
    assert (await store.alert_counts())["sent"] == 2


class Asked(Store):
    """Tells when a worker begins to look into it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store._db)  # pyright: ignore[reportPrivateUsage]
        self.looks = asyncio.Semaphore(0)

    async def keep_time(self) -> None:
        self.looks.release()
        await super().keep_time()


async def test_an_outage_of_the_store_is_logged_once_with_its_traceback_and_its_end(
    store: Store, url: str, telegram: Telegram, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Asked(store)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database, logged("can use the store") as again:
        database.execute("ALTER TABLE alerts RENAME TO away")
        async with running(Outbox(asked, [telegram])) as outbox:
            for _ in range(4):
                await within_looks(asked)
                outbox.wake()
            database.execute("ALTER TABLE away RENAME TO alerts")
            outbox.wake()
            await within(again)
            assert outbox.status() == "ok"
    told = [record for record in caplog.records if "cannot use the store" in record.getMessage()]
    assert [bool(record.exc_info) for record in told] == [True]


async def within_looks(asked: Asked) -> None:
    async with asyncio.timeout(10):
        await asked.looks.acquire()
