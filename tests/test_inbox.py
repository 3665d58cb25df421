"""The inbox against the strict fake: fetched by one of several, done once, and nobody but the owner heard."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from alerts.inbox import LEASE, REFUSALS, Inbox
from alerts.outbox import Outbox
from alerts.telegram import Telegram
from store.records import Question
from store.store import Store
from tests.alert_house import DOWN, PAGES, no_gap, running
from tests.fakes.phone import Phone
from tests.fakes.telegram import FakeTelegram, Hangup, Status
from tests.inbox_house import inbox_of, listening, nobody, until

UNAUTHORIZED = Status(401, {"ok": False, "error_code": 401, "description": "Unauthorized"})


@pytest.fixture
def owner(api: FakeTelegram) -> Phone:
    return Phone(api)


async def test_the_whole_way_from_a_question_to_the_answer(
    api: FakeTelegram, store: Store, telegram: Telegram, owner: Phone
) -> None:
    outbox = Outbox(store, [telegram])
    async with running(outbox), listening(inbox_of(api, store, heard=lambda: outbox.unblock("Telegram"))):
        await outbox.question(Question("talk", "Where did you grow up?"), [])
        (alert,) = await api.messages_arrive(1)
        reply = owner.replies(alert.message_id, "In Turin.")
        _, confirmed = await api.messages_arrive(2)
    (answer,) = await store.answers()
    assert (answer.question, answer.text) == ("Where did you grow up?", "In Turin.")
    assert confirmed.text.startswith(f"Kept as {answer.reference}.")
    assert confirmed.payload["reply_parameters"]["message_id"] == reply


async def test_what_is_done_is_confirmed_and_done_once(api: FakeTelegram, store: Store, owner: Phone) -> None:
    async with listening(inbox_of(api, store)):
        owner.writes("/pause")
        owner.writes("/help")
        await api.is_read()
    assert (await store.alert_counts())["pending"] == 2


async def test_an_update_whose_confirmation_was_lost_is_not_done_again(
    api: FakeTelegram, store: Store, owner: Phone
) -> None:
    owner.writes("/help")
    async with listening(inbox_of(api, store)) as first:
        await api.is_read()
    del first
    api.mailbox.first_id -= 1
    owner.writes("/help")  # the same number again
    async with listening(inbox_of(api, store)):
        await api.is_read()
    assert (await store.alert_counts())["pending"] == 1


async def test_a_new_bot_is_heard_though_its_numbers_are_lower(api: FakeTelegram, store: Store, owner: Phone) -> None:
    owner.writes("/help")
    async with listening(inbox_of(api, store)):
        await api.is_read()
    with FakeTelegram("987654321:AAF-fake_token_of_a_second_bot_12345") as second:
        second.mailbox.first_id = 7
        Phone(second).writes("/pause")
        async with listening(inbox_of(second, store)):
            await second.is_read()
    assert await store.state("paused") is not None


async def test_strangers_are_not_heard(
    api: FakeTelegram, store: Store, owner: Phone, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = Phone(api, "666")
    async with listening(inbox_of(api, store)):
        for number in range(5):
            stranger.writes(f"/pause hunter{number}")
        owner.writes("/help")
        await api.is_read()
    assert (await store.alert_counts())["pending"] == 1
    assert await store.state("paused") is None
    assert "hunter" not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("alerts"))
    told = [record.getMessage() for record in caplog.records if "ignored so far" in record.getMessage()]
    assert [line.rpartition(" ")[2] for line in told] == ["1", "2", "4"]


async def test_a_group_that_got_a_new_number_is_still_heard(store: Store) -> None:
    with FakeTelegram(chat_id="-100") as api:
        group = Phone(api, kind="group", person=7)
        async with listening(inbox_of(api, store)):
            group.upgrades_the_group("-100200")
            group.writes("/pause")
            await api.is_read()
        assert await store.state("paused") is not None
        group.writes("/resume")
        async with listening(inbox_of(api, store)) as inbox:
            await api.is_read()
            assert inbox.status() == "ok"
        assert await store.state("paused") is None


async def test_a_channel_is_known_by_its_name(api: FakeTelegram, store: Store) -> None:
    inbox = Inbox(store, api.token, "@My_Alerts", api.url, heard=nobody)
    posted = {"message_id": 5, "chat": {"id": -1005, "type": "channel", "username": "my_alerts"}, "text": "/pause"}
    assert await inbox.take({"update_id": 1, "channel_post": posted})
    assert await store.state("paused") is not None


async def test_a_reply_in_a_group_that_is_set_by_its_name_is_understood(store: Store) -> None:
    with FakeTelegram(chat_id="@My_Group") as api:
        api.names["@My_Group"] = "-1005"
        group = Phone(api, "-1005", "supergroup", name="my_group")
        with closing(Telegram(api.token, api.chat_id, api.url, store, gap_s=no_gap)) as telegram:
            outbox = Outbox(store, [telegram])
            async with running(outbox), listening(inbox_of(api, store)):
                await outbox.question(Question("talk", "Where did you grow up?"), [])
                (alert,) = await api.messages_arrive(1)
                group.replies(alert.message_id, "In Turin.")
                await api.is_read()
    assert [answer.text for answer in await store.answers()] == ["In Turin."]


# One of several


@pytest.mark.both_databases
async def test_one_fetches_and_the_other_takes_over(api: FakeTelegram, store: Store, owner: Phone, url: str) -> None:
    other_store = Store.open(url)
    first, second = inbox_of(api, store), inbox_of(api, other_store)
    try:
        async with listening(second):
            async with listening(first):
                owner.writes("/help")
                await api.is_read()
                await api.is_polled()
                assert (first.status(), second.status()) == ("ok", "ok")
            owner.writes("/help")
            await api.is_read()
            assert second.status() == "ok"
    finally:
        await other_store.close()
    assert (await store.alert_counts())["pending"] == 2


class Watched(Store):
    """Tells when somebody has asked for a lease."""

    def __init__(self, store: Store) -> None:
        super().__init__(store._db)  # pyright: ignore[reportPrivateUsage]
        self.asked = asyncio.Semaphore(0)

    async def take_lease(self, name: str, holder: str, for_s: float) -> bool:
        taken = await super().take_lease(name, holder, for_s)
        self.asked.release()
        return taken


async def test_while_another_process_fetches_nothing_is_asked(api: FakeTelegram, store: Store) -> None:
    await store.take_lease(LEASE, "another process", 60)
    watched = Watched(store)
    async with listening(inbox_of(api, watched)) as inbox:
        for _ in range(3):
            await watched.asked.acquire()
        assert inbox.status() == "ok"
    assert [line for line in api.requests if line.endswith("getUpdates")] == []
    assert not await store.take_lease(LEASE, "a third one", 60)


# When it ends


async def test_the_end_does_not_wait_for_a_poll(api: FakeTelegram, store: Store) -> None:
    worker = asyncio.create_task(inbox_of(api, store).run())
    await api.is_polled()
    began = time.monotonic()
    worker.cancel()
    with suppress(asyncio.CancelledError):
        await worker
    assert time.monotonic() - began < 1
    assert await store.take_lease(LEASE, "the next one", 60)


# Faults


@pytest.mark.parametrize(
    "fault", [DOWN, Hangup(), Status(200, "no JSON at all"), Status(200, {"ok": True, "result": 7})]
)
async def test_after_a_fault_it_goes_on(api: FakeTelegram, store: Store, owner: Phone, fault: Status | Hangup) -> None:
    owner.writes("/help")
    api.fail_always(fault, "getUpdates")
    async with listening(inbox_of(api, store)) as inbox:
        await api.requests_arrive(6)
        api.fail_always(None, "getUpdates")
        await api.is_read()
        await api.is_polled()
        assert inbox.status() == "ok"


async def test_who_takes_the_messages_away_is_said(api: FakeTelegram, store: Store) -> None:
    api.fail_always(Status(409, {"ok": False, "error_code": 409, "description": "Conflict"}), "getUpdates")
    async with listening(inbox_of(api, store)) as inbox:
        await api.requests_arrive(8)
        assert "another program reads this bot's messages" in inbox.status()
        api.fail_always(None, "getUpdates")
        await api.is_polled()


async def test_a_webhook_that_another_program_sets_is_named(api: FakeTelegram, store: Store) -> None:
    async with listening(inbox_of(api, store)) as inbox:
        await api.is_polled()
        api.mailbox.set_hook({"url": "https://elsewhere.example/hook"})
        await until(lambda: "its webhook is at elsewhere.example" in inbox.status())


async def test_a_refused_token_is_soon_tried_only_once_an_hour(
    api: FakeTelegram, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    api.fail_always(UNAUTHORIZED)
    async with listening(inbox_of(api, store)) as inbox:
        await until(lambda: "Next try in 3600 s" in caplog.text)
        assert len(api.requests) == REFUSALS
        assert "TELEGRAM_BOT_TOKEN" in inbox.status()


@pytest.mark.parametrize("page", PAGES)
async def test_a_relay_that_shows_a_page_for_a_while_is_asked_again(
    api: FakeTelegram, store: Store, owner: Phone, caplog: pytest.LogCaptureFixture, page: Status
) -> None:
    api.fail_next(*[page] * 10)
    async with listening(inbox_of(api, store)):
        owner.writes("/pause")
        await api.is_read()
    assert await store.state("paused") is not None
    assert "check TELEGRAM_API_URL" in caplog.text or "TELEGRAM_API_URL leads elsewhere" in caplog.text
    assert "Next try in 3600 s" not in caplog.text


async def test_a_pause_that_telegram_asks_for_is_kept(
    api: FakeTelegram, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    api.fail_next(Status(429, {"ok": False, "error_code": 429, "parameters": {"retry_after": 30}}))
    async with listening(inbox_of(api, store)) as inbox:
        await until(lambda: "Telegram asks for a pause" in inbox.status())
    assert "Telegram asks for a pause. Next try in 30 s." in caplog.text


async def test_what_cannot_be_stored_comes_again(api: FakeTelegram, store: Store, owner: Phone, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "folder" / "replica.sqlite3"
    async with listening(inbox_of(api, store)) as inbox:
        await api.is_polled()
        file.rename(tmp_path / "elsewhere")
        owner.writes("/pause")
        await until(lambda: "the inbox cannot use the store" in inbox.status())
        assert len(api.mailbox.unread) == 1
        (tmp_path / "elsewhere").rename(file)
        await api.is_read()
    assert await store.state("paused") is not None


async def test_a_relay_that_does_not_wait_is_not_asked_without_end(api: FakeTelegram, store: Store) -> None:
    api.fail_always(Status(200, {"ok": True, "result": []}), "getUpdates")
    async with listening(inbox_of(api, store)):
        await api.requests_arrive(5)
        began = time.monotonic()
        await api.requests_arrive(6)
    assert [line.rpartition("/")[2] for line in api.requests[4:]] == ["getUpdates", "getUpdates"]
    assert time.monotonic() - began > 0.8
