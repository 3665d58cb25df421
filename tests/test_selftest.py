"""The self-test: each failure in words that say what to do, and nothing waits for it."""

from __future__ import annotations

import pytest

from agent.settings import load_settings
from alerts.inbox import Inbox, open_inbox
from alerts.selftest import token_hint
from store.store import Store
from tests.fakes.telegram import FakeTelegram, Status
from tests.inbox_house import inbox_of, listening, nobody, until

NOWHERE = "http://127.0.0.1:9"


async def test_all_is_well(api: FakeTelegram, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    async with listening(inbox_of(api, store)) as inbox:
        await api.is_polled()
        assert inbox.status() == "ok"
    assert "Telegram: @fake_replica_bot hears you" in caplog.messages
    assert {one["command"] for one in api.commands} == {
        "leads", "questions", "stats", "forget", "pause", "resume", "help",
    }  # fmt: skip


def test_before_it_runs_the_status_says_so(api: FakeTelegram, store: Store) -> None:
    assert inbox_of(api, store).status() == "the worker that hears the owner does not run"


async def test_a_host_that_blocks_telegram(api: FakeTelegram, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    inbox = Inbox(store, api.token, api.chat_id, "http://telegram.invalid", heard=nobody)
    async with listening(inbox):
        await until(lambda: "cannot reach Telegram" in inbox.status())
        assert "set TELEGRAM_API_URL to a relay, or ALERT_WEBHOOK_URL" in inbox.status()
    assert "What you write to the bot is not heard: this host cannot reach Telegram" in caplog.text
    assert api.token not in caplog.text


async def test_a_host_that_can_reach_telegram_again_is_heard(api: FakeTelegram, store: Store) -> None:
    api.fail_always(Status(502, "Bad Gateway"))
    async with listening(inbox_of(api, store)) as inbox:
        await until(lambda: "a fault of its own" in inbox.status())
        api.fail_always(None)
        await until(lambda: inbox.status() == "ok")
        await api.is_polled()


@pytest.mark.parametrize(
    ("chat_id", "details", "words"),
    [
        ("999", None, "press Start"),
        ("123456789", None, "TELEGRAM_CHAT_ID is the bot's own number"),
        ("555", {"username": "Another_Bot"}, "TELEGRAM_CHAT_ID is the number of a bot"),
    ],
)
async def test_a_wrong_chat(
    store: Store, chat_id: str, details: dict[str, str] | None, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with FakeTelegram(chat_id=chat_id) as api:
        if details is None:
            api.chats.clear()
        api.details[chat_id] = details or {}
        async with listening(inbox_of(api, store)) as inbox:
            await api.is_polled()
            assert words in inbox.status()
            assert f"Telegram: {inbox.status()}" in caplog.messages


async def test_what_was_mended_is_no_longer_said(api: FakeTelegram, store: Store) -> None:
    api.chats.clear()
    async with listening(inbox_of(api, store, test_again_s=0.02)) as inbox:
        await until(lambda: "press Start" in inbox.status())
        api.press_start(api.chat_id)
        await until(lambda: inbox.status() == "ok")


async def test_what_the_self_test_can_do_without_does_not_stop_it(api: FakeTelegram, store: Store) -> None:
    for method in ("getWebhookInfo", "getChat", "setMyCommands"):
        api.fail_always(Status(500, {"message": "not supported"}), method)
    async with listening(inbox_of(api, store)) as inbox:
        await api.is_polled()
        assert inbox.status() == "ok"


@pytest.mark.parametrize(
    "token",
    ["1234567", "1234567:abc", "bot123456789:AAF-fake_token_of_a_fake_bot_123456", "123456789:AAF token of a bot 1"],
)
def test_a_token_that_does_not_look_like_one_is_said(token: str) -> None:
    hint = token_hint(token)
    assert hint.startswith("TELEGRAM_BOT_TOKEN does not look like")
    assert token not in hint


def test_a_token_that_looks_like_one_is_not_spoken_of(api: FakeTelegram) -> None:
    assert token_hint(api.token) == ""


async def test_without_a_bot_or_a_chat_nobody_is_heard(
    api: FakeTelegram, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def opened(**variables: str) -> Inbox | None:
        return open_inbox(load_settings(variables), store, nobody)

    assert opened() is None
    assert opened(TELEGRAM_CHAT_ID="4242") is None
    assert opened(TELEGRAM_BOT_TOKEN="4242:short") is None
    assert "TELEGRAM_BOT_TOKEN does not look like a token" in caplog.text
    fetching = opened(TELEGRAM_BOT_TOKEN=api.token, TELEGRAM_CHAT_ID="4242")
    pushed = opened(TELEGRAM_BOT_TOKEN=api.token, TELEGRAM_CHAT_ID="4242", PUBLIC_URL="https://me.example")
    assert fetching is not None
    assert pushed is not None
    assert (fetching.is_pushed, pushed.is_pushed) == (False, True)
