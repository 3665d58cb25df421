"""What only the owner can mend: the channel is left alone, nothing is lost, and the others go on."""

from __future__ import annotations

import logging
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from alerts.outbox import Outbox
from alerts.telegram import Telegram
from alerts.ways import BLOCK
from alerts.webhook import Webhook
from store.store import Store
from tests.alert_house import DOWN, JANE, PAGES, Clock, ask, at_once, deliver, no_gap, running
from tests.fakes.telegram import FakeTelegram, FakeWebhook, Fault, Status
from tests.inbox_house import until

REFUSED = Status(401, {"ok": False, "error_code": 401, "description": "Unauthorized"})
BLOCKED = Status(403, {"ok": False, "error_code": 403, "description": "Forbidden: bot was blocked by the user"})
UNKNOWN = Status(404, {"ok": False, "error_code": 404, "description": "Not Found"})
NO_CHAT = Status(400, {"ok": False, "error_code": 400, "description": "Bad Request: chat not found"})
MOMENT = timedelta(seconds=1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def said(caplog: pytest.LogCaptureFixture, words: str) -> int:
    return sum(words in one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (REFUSED, "Telegram refused the token: check TELEGRAM_BOT_TOKEN"),
        (BLOCKED, "open the bot in Telegram and press Start (or unblock it)"),
        (UNKNOWN, "Telegram does not know such a bot: check TELEGRAM_BOT_TOKEN and TELEGRAM_API_URL"),
        (NO_CHAT, "open the bot in Telegram, press Start, and check TELEGRAM_CHAT_ID"),
    ],
)
async def test_it_is_tried_once_said_once_and_kept(
    store: Store, api: FakeTelegram, telegram: Telegram, caplog: pytest.LogCaptureFixture, fault: Fault, words: str
) -> None:
    api.fail_always(fault)
    outbox = Outbox(store, [telegram], back_off=at_once)
    for number in range(5):
        await outbox.question(ask(number), [])
        assert await deliver(outbox) > 1
    assert len(api.requests) == 1
    assert said(caplog, words) == 1
    assert "It is not tried again before its settings change, or 2" in "; ".join(outbox.problems)
    assert api.token not in caplog.text
    counts = await store.alert_counts()
    assert counts["pending"] + counts["failed"] == 5


@pytest.mark.parametrize("page", PAGES)
async def test_what_is_not_telegrams_own_answer_is_tried_again_soon(
    store: Store, api: FakeTelegram, telegram: Telegram, page: Status
) -> None:
    api.fail_always(page)
    outbox = Outbox(store, [telegram], back_off=at_once)
    async with running(outbox):
        await outbox.contact(JANE, [])
        await api.requests_arrive(3)
        await until(lambda: outbox.status() != "ok")
        assert "not tried again" not in outbox.status()
        assert "TELEGRAM_API_URL" in outbox.status()
        api.fail_always(None)
        await api.messages_arrive(1)


async def test_a_restart_with_the_same_settings_does_not_try_it_but_says_why(
    store: Store, api: FakeTelegram, telegram: Telegram, caplog: pytest.LogCaptureFixture
) -> None:
    api.fail_next(REFUSED)
    before = Outbox(store, [telegram])
    await before.contact(JANE, [])
    await deliver(before)
    caplog.clear()
    after = Outbox(store, [telegram])
    assert await deliver(after) > 1
    assert (len(api.requests), api.messages) == (1, [])
    assert said(caplog, "check TELEGRAM_BOT_TOKEN") == 1
    assert "check TELEGRAM_BOT_TOKEN" in "; ".join(after.problems)


@pytest.mark.parametrize("changed", ["token", "chat", "address"])
async def test_it_is_tried_at_once_when_its_settings_change(
    store: Store, api: FakeTelegram, telegram: Telegram, changed: str
) -> None:
    api.fail_next(NO_CHAT)
    before = Outbox(store, [telegram])
    await before.contact(JANE, [])
    await deliver(before)
    token, chat_id, url = api.token, api.chat_id, api.url
    match changed:
        case "token":
            token = api.token = "987654321:AAF-a_new_token_of_a_fake_bot_12345"
        case "chat":
            chat_id = "77"
            api.chats.add(chat_id)
        case _:
            url = api.url.replace("127.0.0.1", "localhost")
    with closing(Telegram(token, chat_id, url)) as mended:
        after = Outbox(store, [mended])
        await deliver(after)
    assert len(api.messages) == 1
    assert after.problems == []


async def test_it_is_tried_once_more_after_a_day(
    store: Store, api: FakeTelegram, telegram: Telegram, clock: Clock
) -> None:
    api.fail_next(REFUSED, REFUSED)
    outbox = Outbox(store, [telegram], now=clock)
    await outbox.contact(JANE, [])
    for ahead, requests, messages in ((BLOCK - MOMENT, 1, 0), (BLOCK + MOMENT, 2, 0), (2 * BLOCK + 2 * MOMENT, 3, 1)):
        await deliver(outbox)
        clock.ahead = ahead
        await deliver(outbox)
        assert (len(api.requests), len(api.messages)) == (requests, messages)
    assert outbox.problems == []


async def test_the_owner_who_presses_start_gets_what_waited(
    store: Store, api: FakeTelegram, telegram: Telegram, clock: Clock
) -> None:
    api.blocked.add(api.chat_id)
    outbox = Outbox(store, [telegram], now=clock)
    for number in range(3):
        await outbox.question(ask(number), [])
        await deliver(outbox)
    api.blocked.clear()
    await outbox.unblock("Telegram")
    await deliver(outbox)
    assert len(api.messages) == 3
    assert outbox.problems == []
    assert await store.state("blocked:Telegram") is None


async def test_an_owner_who_writes_does_not_end_a_pause_that_telegram_asked_for(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    api.fail_next(Status(429, {"ok": False, "error_code": 429, "parameters": {"retry_after": 100}}))
    outbox = Outbox(store, [telegram])
    await outbox.contact(JANE, [])
    await deliver(outbox)
    await outbox.unblock("Telegram")
    assert await deliver(outbox) > 1
    assert len(api.requests) == 1


async def test_another_process_learns_that_it_is_mended(store: Store, api: FakeTelegram, telegram: Telegram) -> None:
    api.fail_next(BLOCKED)
    one, other = Outbox(store, [telegram]), Outbox(store, [telegram])
    await one.contact(JANE, [])
    await deliver(one)
    await deliver(other)
    assert other.problems != []
    await one.unblock("Telegram")
    await deliver(other)
    assert (len(api.messages), other.problems) == (1, [])


async def test_the_other_channel_goes_on_and_gets_what_the_first_one_refused(
    store: Store, api: FakeTelegram, telegram: Telegram, hook: FakeWebhook, webhook: Webhook, clock: Clock
) -> None:
    api.fail_always(REFUSED)
    outbox = Outbox(store, [telegram, webhook], now=clock, back_off=lambda _: 60)
    await outbox.contact(JANE, [])
    await deliver(outbox)
    hook.fail_next(DOWN)
    await outbox.question(ask(1), [])
    await deliver(outbox)
    assert (len(api.requests), len(hook.messages)) == (1, 1)
    clock.ahead = timedelta(seconds=61)
    await deliver(outbox)
    assert (len(api.requests), len(hook.messages)) == (1, 2)


async def test_a_webhook_that_is_gone_is_left_alone_too(store: Store, hook: FakeWebhook) -> None:
    with closing(Webhook(f"{hook.address}-of-old")) as webhook:
        outbox = Outbox(store, [webhook])
        for number in range(3):
            await outbox.question(ask(number), [])
            await deliver(outbox)
    assert len(hook.requests) == 1
    assert "check ALERT_WEBHOOK_URL" in "; ".join(outbox.problems)


async def test_a_message_that_is_refused_keeps_no_other_from_going_out(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    api.fail_next(Status(400, {"ok": False, "error_code": 400, "description": "Bad Request: TEXT_ODD"}))
    outbox = Outbox(store, [telegram], back_off=lambda _: 600)
    await outbox.question(ask(1), [])
    await outbox.question(ask(2), [])
    await deliver(outbox)
    # The way is free, so that the first one is tried once more with it.
    assert [message.text.splitlines()[0][-2] for message in api.messages] == ["2", "1"]


@pytest.mark.parametrize("kept", ["", "no JSON", "[]", "{}", '{"fingerprint": 1, "until": "x", "reason": 2}'])
async def test_what_cannot_be_read_blocks_nothing(
    store: Store, api: FakeTelegram, telegram: Telegram, kept: str
) -> None:
    await store.set_state("blocked:Telegram", kept)
    outbox = Outbox(store, [telegram])
    await outbox.contact(JANE, [])
    await deliver(outbox)
    assert len(api.messages) == 1


async def test_the_end_of_a_block_is_said_in_utc(store: Store, api: FakeTelegram, telegram: Telegram) -> None:
    api.fail_next(REFUSED)
    outbox = Outbox(store, [telegram], now=lambda: datetime(2030, 1, 1, 23, 30, tzinfo=UTC))
    await outbox.contact(JANE, [])
    await deliver(outbox)
    assert "or 2030-01-02 23:30 UTC" in outbox.problems[0]
    with closing(Telegram(api.token, "5", api.url, gap_s=no_gap)) as other:
        assert other.fingerprint != telegram.fingerprint
        assert api.token not in other.fingerprint
