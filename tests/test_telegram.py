"""Telegram against a strict server: what arrives, what the owner is told, and that no secret leaks."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest

from alerts.telegram import Telegram
from tests.alert_house import QUICK, assert_hidden, failure, no_gap
from tests.fakes.telegram import Drip, FakeTelegram, FakeWebhook, Fault, Hangup, Silence, Status


@pytest.fixture
def telegram(api: FakeTelegram) -> Iterator[Telegram]:
    with closing(Telegram(api.token, api.chat_id, api.url, gap_s=no_gap, timeout_s=QUICK)) as telegram:
        yield telegram


# What arrives


async def test_a_message_arrives_as_it_is_without_parse_mode_and_preview(api: FakeTelegram, telegram: Telegram) -> None:
    text = "<b>*Jane* & _Co_</b> https://example.org [x](y) \U0001f600"
    await telegram.send(text)
    (message,) = await api.messages_arrive(1)
    assert message.text == text
    assert message.payload == {
        "chat_id": api.chat_id,
        "text": text,
        "link_preview_options": {"is_disabled": True},
    }


async def test_a_text_that_is_too_long_arrives_whole(api: FakeTelegram, telegram: Telegram) -> None:
    text = "New contact: Jane\n" + "\U0001f600" * 5000 + "\n" * 9000 + "the end"
    await telegram.send(text)
    assert "".join(message.text for message in api.messages).replace("\n", "") == text.replace("\n", "")
    assert api.messages[0].text.startswith("New contact: Jane\n")


async def test_the_event_loop_goes_on_while_a_message_is_sent(api: FakeTelegram, telegram: Telegram) -> None:
    silence = Silence()
    api.fail_next(silence)
    sending = asyncio.create_task(telegram.send("Hello"))
    await api.requests_arrive(1)
    assert not sending.done()
    silence.over.set()
    await sending
    assert [message.text for message in api.messages] == ["Hello"]


async def test_a_group_that_moved_is_followed(api: FakeTelegram, telegram: Telegram) -> None:
    api.moved[api.chat_id] = "-100777"
    api.chats.add("-100777")
    await telegram.send("one")
    await telegram.send("two")
    assert [(message.chat_id, message.text) for message in api.messages] == [("-100777", "one"), ("-100777", "two")]
    assert len(api.requests) == 3


async def test_a_group_that_moves_in_a_circle_is_left(api: FakeTelegram, telegram: Telegram) -> None:
    api.moved |= {api.chat_id: "-100777", "-100777": api.chat_id}
    assert "set TELEGRAM_CHAT_ID" in (await failure(telegram)).reason
    assert len(api.requests) == 2


async def test_a_connection_that_telegram_closed_meanwhile_is_opened_again(
    api: FakeTelegram, telegram: Telegram
) -> None:
    api.fail_next(Status(200, {"ok": True, "result": {}}, {"Connection": "close"}))
    await telegram.send("one")
    await telegram.send("two")
    assert [message.text for message in api.messages] == ["two"]


# What the owner is told


def refusal(code: int, description: str = "", **parameters: Any) -> Status:
    return Status(code, {"ok": False, "error_code": code, "description": description, "parameters": parameters})


@pytest.mark.parametrize(
    ("fault", "words", "permanent", "retry_after_s"),
    [
        (refusal(400, "Bad Request: chat not found"), "press Start, and check TELEGRAM_CHAT_ID", True, None),
        (refusal(400, "Bad Request: TOPIC_CLOSED"), r"\(400: Bad Request: TOPIC_CLOSED\)", False, None),
        (refusal(401, "Unauthorized"), "check TELEGRAM_BOT_TOKEN", True, None),
        (refusal(403, "Forbidden: bot was blocked by the user"), "unblock", True, None),
        (refusal(403, "Forbidden: bot can't initiate conversation with a user"), "press Start", True, None),
        (refusal(404, "Not Found"), "TELEGRAM_BOT_TOKEN and TELEGRAM_API_URL", True, None),
        (refusal(409, "Conflict"), "another program", True, None),
        (refusal(429, "Too Many Requests: retry after 7", retry_after=7), "a pause", False, 7),
        (refusal(429, "Too Many Requests", retry_after="soon"), "a pause", False, None),
        (Status(429, "slow down", {"Retry-After": "12"}), "a pause", False, 12),
        (Status(429, "slow down", {"Retry-After": "Wed, 21 Oct 2030 07:28:00 GMT"}), "a pause", False, None),
        (refusal(500, "Internal Server Error"), r"fault of its own \(500\)", False, None),
        (Status(502, "<html>Bad Gateway</html>"), r"fault of its own \(502\)", False, None),
        (Status(200, {"ok": False, "error_code": 401}), "check TELEGRAM_BOT_TOKEN", True, None),
        (Status(200, "<html>Log in to this Wi-Fi</html>"), r"not Telegram \(200\): check TELEGRAM_API", False, None),
        (Status(200, ""), "not Telegram", False, None),
        (Status(200, "[" * 100_000), "not Telegram", False, None),
        (Status(200, [1, 2]), "not Telegram", False, None),
        (Status(404, "<html>Nothing here</html>"), "not Telegram", False, None),
        (Status(403, "Forbidden by the proxy"), "not Telegram", False, None),
        (Status(400, {"ok": False, "error_code": {}, "parameters": []}), "refused the message", False, None),
        (Status(200, "x" * 2_000_000), "no end", False, None),
        (Hangup(), r"cannot reach Telegram \(the connection broke off\)", False, None),
        (Hangup(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"), r"\(the connection broke off\)", False, None),
        (Hangup(b"This is no HTTP\r\n\r\n"), r"\(the connection broke off\)", False, None),
        (Silence(), r"cannot reach Telegram \(it did not answer in time\)", False, None),
        (Drip(), r"cannot reach Telegram \(it did not answer in time\)", False, None),
    ],
)  # fmt: skip
async def test_every_refusal_says_what_to_do_and_leaks_no_token(
    api: FakeTelegram,
    telegram: Telegram,
    caplog: pytest.LogCaptureFixture,
    fault: Fault,
    words: str,
    permanent: bool,
    retry_after_s: float | None,
) -> None:
    caplog.set_level(logging.DEBUG)
    api.fail_next(fault)
    error = await failure(telegram)
    assert (error.permanent, error.retry_after_s) == (permanent, retry_after_s)
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(error.reason)
    assert_hidden(api.token, error, caplog)


async def test_an_owner_who_blocked_the_bot_or_never_started_it_is_told(api: FakeTelegram, telegram: Telegram) -> None:
    api.blocked.add(api.chat_id)
    assert "unblock" in (await failure(telegram)).reason
    api.chats.clear()
    assert "does not find the chat" in (await failure(telegram)).reason


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("123456789:AAF-another_token_of_another_bot", "refused the token"),
        ("no token at all", "such a bot"),
        ("bot/../secret?#", "such a bot"),
    ],
)
async def test_a_wrong_token_is_said_and_not_shown(
    api: FakeTelegram, caplog: pytest.LogCaptureFixture, token: str, words: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with closing(Telegram(token, api.chat_id, api.url)) as telegram:
        error = await failure(telegram)
    assert words in error.reason
    assert_hidden(token, error, caplog)
    assert_hidden(quote(token, safe=":"), error, caplog)


async def test_a_redirect_is_not_followed(api: FakeTelegram, telegram: Telegram, hook: FakeWebhook) -> None:
    api.fail_next(Status(307, "", {"Location": hook.address}))
    error = await failure(telegram)
    assert not error.permanent
    assert "TELEGRAM_API_URL leads elsewhere" in error.reason
    assert hook.requests == []


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.parametrize(
    ("root", "why"),
    [
        ("http://127.0.0.1:{port}", "the connection was refused"),
        ("http://telegram.invalid", "its name is not known here"),
        ("http://a..b", "its address is not one"),
        ("http://[oops", "its address is not one"),
    ],
)
async def test_a_host_that_cannot_be_reached_is_said_with_what_to_do(
    caplog: pytest.LogCaptureFixture, root: str, why: str
) -> None:
    caplog.set_level(logging.DEBUG)
    token = "123456789:AAF-secret"
    with closing(Telegram(token, "4242", root.format(port=free_port()))) as telegram:
        error = await failure(telegram)
    assert error.reason == (
        f"this host cannot reach Telegram ({why}): set TELEGRAM_API_URL to a relay, or ALERT_WEBHOOK_URL"
    )
    assert not error.permanent
    assert_hidden(token, error, caplog)


async def test_a_server_that_speaks_no_tls_is_said(api: FakeTelegram) -> None:
    with closing(Telegram(api.token, "4242", api.url.replace("http", "https"))) as telegram:
        assert "certificate is not trusted" in (await failure(telegram)).reason


async def test_the_token_is_hidden_in_the_log_at_debug_and_in_warnings(
    api: FakeTelegram, telegram: Telegram, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await telegram.send("Hello")
    api.fail_next(Hangup(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\na header without a colon\r\n\r\n{}"))
    await failure(telegram)
    assert "/bot…/sendMessage" in caplog.text
    assert [record.name for record in caplog.records if record.levelno == logging.WARNING] == ["urllib3.connection"]
    assert api.token not in caplog.text


async def test_a_relay_that_repeats_the_token_does_not_bring_it_to_the_owner(
    api: FakeTelegram, telegram: Telegram
) -> None:
    api.fail_next(refusal(400, f"no route to /bot{api.token}/sendMessage"))
    assert "no route to /bot…/sendMessage" in (await failure(telegram)).reason
