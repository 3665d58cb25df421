"""The outbox: nothing is lost, nobody waits, and the owner can read it on a lock screen."""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from datetime import UTC, datetime
from itertools import count as count_from
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alerts.channel import Channel
from alerts.outbox import MANY, NO_CHANNEL, Outbox, back_off_s
from alerts.telegram import Telegram
from alerts.text import contact_text, question_text
from alerts.webhook import Webhook
from store.records import Contact, Question
from store.store import Store
from tests.fakes.telegram import FakeTelegram, FakeWebhook, Fault, Hangup, Silence, Status

JANE = Contact("talk", "jane@example.org", "jane@example.org", "to talk about a job in Turin", "Jane Doe")
DOWN = Status(500, {"ok": False, "error_code": 500, "description": "Internal Server Error"})


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/replica.sqlite3"


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = Store.open(url)
    yield store
    await store.close()


@pytest.fixture
def api() -> Iterator[FakeTelegram]:
    with FakeTelegram() as api:
        yield api


@pytest.fixture
def hook() -> Iterator[FakeWebhook]:
    with FakeWebhook() as hook:
        yield hook


@pytest.fixture
def telegram(api: FakeTelegram) -> Iterator[Telegram]:
    with closing(Telegram(api.token, api.chat_id, api.url)) as telegram:
        yield telegram


@pytest.fixture
def webhook(hook: FakeWebhook) -> Iterator[Webhook]:
    with closing(Webhook(hook.address)) as webhook:
        yield webhook


@asynccontextmanager
async def running(outbox: Outbox) -> AsyncGenerator[Outbox]:
    """With its worker; at the end what is in flight has been marked."""
    worker = asyncio.create_task(outbox.run())
    await asyncio.sleep(0)  # it has begun
    try:
        yield outbox
    finally:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker


def at_once(_attempts: int) -> float:
    return 0.01


def never(_attempts: int) -> float:
    return 1_000_000


def ask(number: int) -> Question:
    return Question("talk", f"What is {number}?")


# What the owner reads


def test_the_first_lines_say_what_who_and_where() -> None:
    text = contact_text(JANE, ["Visitor: Hello", "Replica: Good day"], "C-7KQ2M")
    assert text.splitlines() == [
        "New contact: Jane Doe",
        "jane@example.org",
        "Wants: to talk about a job in Turin",
        "> Visitor: Hello",
        "> Replica: Good day",
        "C-7KQ2M",
    ]


def test_without_a_name_the_address_says_who() -> None:
    text = contact_text(Contact("talk", "jane@example.org", "jane@example.org", " "), [], "C-7KQ2M")
    assert text == "New contact: jane@example.org\nC-7KQ2M"


def test_an_international_and_a_disposable_address_are_marked() -> None:
    contact = Contact("talk", "jane@bücher.example", "jane@xn--bcher-kva.example", "a job", "Jane", disposable=True)
    assert contact_text(contact, [], "C-1").splitlines()[1] == (
        "jane@bücher.example · jane@xn--bcher-kva.example · disposable address"
    )


def test_a_question_comes_first_and_only_three_lines_of_the_talk_with_it() -> None:
    text = question_text(Question("talk", "Do you ski?"), ["one", "two", "", "four", "five"], "Q-1")
    assert text.splitlines() == ["I could not answer: Do you ski?", "> four", "> five", "Q-1"]


def test_a_visitor_cannot_forge_lines_or_turn_the_writing_round() -> None:
    contact = Contact("talk", "jane@example.org", "jane@example.org", "a job\x1b[2J\r\nC-FAKE1", "Jane\u202e\nDoe\x00")
    assert contact_text(contact, ["a\nb\u2028c"], "C-7KQ2M").splitlines() == [
        "New contact: Jane Doe",
        "jane@example.org",
        "Wants: a job [2J C-FAKE1",
        "> a b c",
        "C-7KQ2M",
    ]


# Delivery


async def test_a_contact_rings_at_the_phone(store: Store, api: FakeTelegram, telegram: Telegram) -> None:
    async with running(Outbox(store, [telegram])) as outbox:
        assert await outbox.contact(JANE, ["Visitor: Hello"])
        (message,) = await api.messages_arrive(1)
        assert re.fullmatch(
            r"New contact: Jane Doe\njane@example.org\nWants: .* Turin\n> Visitor: Hello\nC-\w{5}", message.text
        )
        assert outbox.status() == "ok"
    assert (await store.alert_counts())["sent"] == 1


async def test_contact_question_and_trouble_each_ring_once(store: Store, api: FakeTelegram, telegram: Telegram) -> None:
    async with running(Outbox(store, [telegram])) as outbox:
        for fresh in (True, False):
            assert await outbox.contact(JANE, []) is fresh
            assert await outbox.question(ask(1), []) is fresh
            assert await outbox.trouble("provider", "the model's key\nwas refused") is fresh
        messages = await api.messages_arrive(3)
    assert [message.text.splitlines()[0] for message in messages] == [
        "New contact: Jane Doe",
        "I could not answer: What is 1?",
        "Trouble: the model's key was refused",
    ]
    assert len(api.requests) == 3


async def test_nobody_waits_for_a_delivery(store: Store, api: FakeTelegram, telegram: Telegram) -> None:
    silence = Silence()
    api.fail_always(silence)
    async with running(Outbox(store, [telegram])) as outbox:
        for number in range(3):
            await outbox.question(ask(number), [])
        await api.requests_arrive(1)
        assert api.messages == []
        silence.over.set()
        assert len(await api.messages_arrive(3)) == 3


async def test_what_a_worker_left_is_delivered_after_a_restart(url: str, api: FakeTelegram, telegram: Telegram) -> None:
    before = Store.open(url)
    for number in range(2):
        await Outbox(before, [telegram]).question(ask(number), [])
    assert len(await before.claim_due_alerts(1, datetime.now(UTC))) == 1  # and then the process died
    await before.close()
    after = Store.open(url)
    async with running(Outbox(after, [telegram])):
        assert [one.text.splitlines()[0] for one in await api.messages_arrive(2)] == [
            "I could not answer: What is 0?",
            "I could not answer: What is 1?",
        ]
    assert (await after.alert_counts())["sent"] == 2
    await after.close()


async def test_a_delivery_in_flight_is_finished_and_marked_at_the_end(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    silence = Silence()
    api.fail_next(silence)
    outbox = Outbox(store, [telegram])
    worker = asyncio.create_task(outbox.run())
    await outbox.question(ask(1), [])
    await outbox.question(ask(2), [])
    await api.requests_arrive(1)
    worker.cancel()
    silence.over.set()
    with pytest.raises(asyncio.CancelledError):
        await worker
    assert await store.alert_counts() == {"pending": 1, "failed": 0, "kept": 0, "sent": 1}
    async with running(Outbox(store, [telegram])):
        await api.messages_arrive(2)
    assert [one.text.splitlines()[0][-2] for one in api.messages] == ["1", "2"]


async def test_a_failed_delivery_is_tried_again(store: Store, api: FakeTelegram, telegram: Telegram) -> None:
    tries: list[int] = []

    def back_off(attempts: int) -> float:
        tries.append(attempts)
        return 0.01

    api.fail_next(DOWN, DOWN, DOWN)
    async with running(Outbox(store, [telegram], back_off=back_off)) as outbox:
        await outbox.contact(JANE, [])
        await api.messages_arrive(1)
    assert (len(api.requests), len(api.messages), tries) == (4, 1, [1, 2, 3])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20)
@given(faults=st.lists(st.sampled_from([None, DOWN, Hangup()]), max_size=8), alerts=st.integers(1, 4))
async def test_whatever_happens_on_the_way_every_alert_arrives(
    tmp_path: Path, faults: list[Fault | None], alerts: int
) -> None:
    """Once each, and once more only where the server took one without saying so."""
    store = Store.open(f"sqlite:///{tmp_path}/{uuid4().hex}.sqlite3")
    outcomes = [*faults, *[None] * alerts]
    requests = next(count for count in count_from(0) if outcomes[:count].count(None) == alerts)
    with FakeTelegram() as api, closing(Telegram(api.token, api.chat_id, api.url)) as telegram:
        api.fail_next(*faults)
        async with running(Outbox(store, [telegram], back_off=at_once)) as outbox:
            for number in range(alerts):
                await outbox.question(ask(number), [])
            await api.requests_arrive(requests)
        assert {one.text.splitlines()[0] for one in api.messages} == {
            f"I could not answer: What is {number}?" for number in range(alerts)
        }
        hangups = sum(isinstance(fault, Hangup) for fault in outcomes[:requests])
        assert (len(api.requests), len(api.messages)) == (requests, alerts + hangups)
        assert (await store.alert_counts())["sent"] == alerts
    await store.close()


async def test_once_a_channel_works_again_all_that_failed_goes_out(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    api.fail_always(DOWN)
    async with running(Outbox(store, [telegram], back_off=never)) as outbox:
        for number in range(3):
            await outbox.question(ask(number), [])
        await api.requests_arrive(3)
    assert (await store.alert_counts())["failed"] == 3
    async with running(outbox):
        api.fail_always(None)
        await outbox.contact(JANE, [])
        assert len(await api.messages_arrive(4)) == 4


async def test_the_second_channel_takes_what_the_first_does_not(
    store: Store, api: FakeTelegram, telegram: Telegram, hook: FakeWebhook, webhook: Webhook
) -> None:
    api.fail_next(DOWN)
    async with running(Outbox(store, [telegram, webhook], back_off=never)) as outbox:
        await outbox.contact(JANE, [])
        await hook.messages_arrive(1)
        await outbox.question(ask(1), [])
        await api.messages_arrive(1)
    assert (len(api.messages), len(hook.messages)) == (1, 1)
    assert (await store.alert_counts())["sent"] == 2


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


async def test_what_only_the_owner_can_mend_waits_longest(store: Store, api: FakeTelegram, telegram: Telegram) -> None:
    tries: list[int] = []

    def back_off(attempts: int) -> float:
        tries.append(attempts)
        return 500

    api.chats.clear()
    async with running(Outbox(store, [telegram], back_off=back_off)) as outbox:
        await outbox.contact(JANE, [])
        await api.requests_arrive(1)
    assert tries == [MANY]
    assert 490 < await seconds_to_next_try(store) <= 500


# No channel


@contextmanager
def logged(words: str) -> Generator[asyncio.Event]:
    """Set when the outbox has logged these words."""
    seen = asyncio.Event()

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if words in record.getMessage():
                seen.set()

    watch, logger = Watch(), logging.getLogger("alerts.outbox")
    logger.addHandler(watch)
    try:
        yield seen
    finally:
        logger.removeHandler(watch)


async def test_without_a_channel_an_alert_is_logged_once_and_goes_out_when_there_is_one(
    store: Store, api: FakeTelegram, telegram: Telegram, caplog: pytest.LogCaptureFixture
) -> None:
    with logged("Jane Doe") as seen:
        async with running(Outbox(store, [])) as outbox:
            assert await outbox.contact(JANE, ["Visitor: Hello"])
            await within(seen)
            assert outbox.status() == NO_CHANNEL
    with logged("What is 1?") as seen:
        async with running(Outbox(store, [])) as outbox:
            await outbox.question(ask(1), [])
            await within(seen)
    first, second = [record.getMessage() for record in caplog.records if record.name == "alerts.outbox"]
    assert "New contact: Jane Doe · jane@example.org · Wants: to talk about a job in Turin" in first
    assert "What is 1?" in second
    assert "\n" not in first + second
    assert (await store.alert_counts())["kept"] == 2
    async with running(Outbox(store, [telegram])):
        await api.messages_arrive(2)
    assert (await store.alert_counts())["sent"] == 2


async def within(seen: asyncio.Event) -> None:
    async with asyncio.timeout(10):
        await seen.wait()


# What /healthz says


async def test_the_status_says_what_is_wrong_and_that_it_is_mended(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    api.chats.clear()
    outbox = Outbox(store, [telegram], back_off=never)
    assert outbox.status() == "the worker that delivers alerts does not run"
    async with running(outbox):
        await outbox.contact(JANE, [])
        await api.requests_arrive(1)
    assert outbox.status() == "the worker that delivers alerts does not run"
    async with running(outbox):
        assert "press Start, and check TELEGRAM_CHAT_ID" in outbox.status()
        assert api.token not in outbox.status()
        api.chats.add(api.chat_id)
        await outbox.question(ask(1), [])
        await api.messages_arrive(2)
    async with running(outbox):
        assert outbox.status() == "ok"


class Broken:
    """A channel with a fault of its own."""

    name = "pigeon"

    async def send(self, text: str) -> None:
        raise ValueError("https://example.org/secret-address")


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
