"""Telegram and the webhook against strict servers: what arrives, what the owner is told, and that no secret leaks."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.settings import load_settings
from alerts.channel import AlertError
from alerts.telegram import Telegram, main
from alerts.text import split_for_telegram
from alerts.webhook import Webhook
from tests.fakes.telegram import Drip, FakeTelegram, FakeWebhook, Fault, Hangup, Silence, Status

QUICK = (1.0, 0.3)
"""Time-outs for faults that have to run into one."""


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
    with closing(Telegram(api.token, api.chat_id, api.url, timeout_s=QUICK)) as telegram:
        yield telegram


@pytest.fixture
def webhook(hook: FakeWebhook) -> Iterator[Webhook]:
    with closing(Webhook(hook.address, timeout_s=QUICK)) as webhook:
        yield webhook


def failure(push: Callable[[str], None], text: str = "Hello") -> AlertError:
    with pytest.raises(AlertError) as caught:
        push(text)
    return caught.value


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


# Splitting

bits = ["a", " ", "\n", "é", "\U0001f600", "word ", "a line\n"]
texts = st.lists(st.sampled_from(bits), max_size=100).map("".join)


@given(text=texts | st.text(), limit=st.integers(2, 40))
def test_pieces_join_to_the_text_and_none_is_empty_or_too_long(text: str, limit: int) -> None:
    pieces = split_for_telegram(text, limit)
    assert "".join(pieces) == text
    assert all(0 < len(piece.encode("utf-16-le", "surrogatepass")) // 2 <= limit for piece in pieces)


@given(text=texts, limit=st.integers(2, 40))
def test_a_piece_is_blank_only_where_blanks_fill_it(text: str, limit: int) -> None:
    for piece in split_for_telegram(text, limit)[:-1]:
        assert piece.strip() or units(piece) >= limit - 1


def test_pieces_end_with_a_line_where_they_can() -> None:
    text = "".join(f"line {number:04}\n" for number in range(1000))
    pieces = split_for_telegram(text)
    assert len(pieces) == 3
    assert all(piece.endswith("\n") for piece in pieces)


def test_a_long_line_is_cut_between_words() -> None:
    assert split_for_telegram("one two three four", 10) == ["one two ", "three four"]


def test_a_limit_too_small_for_a_character_is_refused() -> None:
    with pytest.raises(ValueError, match="not 1"):
        split_for_telegram("text", 1)


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


def test_a_text_that_is_too_long_arrives_whole(api: FakeTelegram, telegram: Telegram) -> None:
    text = "New contact: Jane\n" + "\U0001f600" * 5000 + "\n" * 9000 + "the end"
    telegram.push(text)
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


def test_a_group_that_moved_is_followed(api: FakeTelegram, telegram: Telegram) -> None:
    api.moved[api.chat_id] = "-100777"
    api.chats.add("-100777")
    telegram.push("one")
    telegram.push("two")
    assert [(message.chat_id, message.text) for message in api.messages] == [("-100777", "one"), ("-100777", "two")]
    assert len(api.requests) == 3


def test_a_group_that_moves_in_a_circle_is_left(api: FakeTelegram, telegram: Telegram) -> None:
    api.moved |= {api.chat_id: "-100777", "-100777": api.chat_id}
    assert "set TELEGRAM_CHAT_ID" in failure(telegram.push).reason
    assert len(api.requests) == 2


def test_a_connection_that_telegram_closed_meanwhile_is_opened_again(api: FakeTelegram, telegram: Telegram) -> None:
    api.fail_next(Status(200, {"ok": True, "result": {}}, {"Connection": "close"}))
    telegram.push("one")
    telegram.push("two")
    assert [message.text for message in api.messages] == ["two"]


# What the owner is told


def refusal(code: int, description: str = "", **parameters: Any) -> Status:
    return Status(code, {"ok": False, "error_code": code, "description": description, "parameters": parameters})


@pytest.mark.parametrize(
    ("fault", "words", "permanent", "retry_after_s"),
    [
        (refusal(400, "Bad Request: chat not found"), "press Start, and check TELEGRAM_CHAT_ID", True, None),
        (refusal(400, "Bad Request: TOPIC_CLOSED"), r"\(400: Bad Request: TOPIC_CLOSED\)", True, None),
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
        (Status(200, "<html>Log in to this Wi-Fi</html>"), r"not Telegram \(200\): check TELEGRAM_API_URL", True, None),
        (Status(200, ""), "not Telegram", True, None),
        (Status(200, "[" * 100_000), "not Telegram", True, None),
        (Status(200, [1, 2]), "not Telegram", True, None),
        (Status(403, "Forbidden by the proxy"), "not Telegram", True, None),
        (Status(400, {"ok": False, "error_code": {}, "parameters": []}), "refused the message", True, None),
        (Status(200, "x" * 2_000_000), "no end", False, None),
        (Hangup(), r"cannot reach Telegram \(the connection broke off\)", False, None),
        (Hangup(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"), r"\(the connection broke off\)", False, None),
        (Hangup(b"This is no HTTP\r\n\r\n"), r"\(the connection broke off\)", False, None),
        (Silence(), r"cannot reach Telegram \(it did not answer in time\)", False, None),
        (Drip(), r"cannot reach Telegram \(it did not answer in time\)", False, None),
    ],
)  # fmt: skip
def test_every_refusal_says_what_to_do_and_leaks_no_token(
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
    error = failure(telegram.push)
    assert (error.permanent, error.retry_after_s) == (permanent, retry_after_s)
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(error.reason)
    assert_hidden(api.token, error, caplog)


def assert_hidden(secret: str, error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the error, nor anything that hangs on it, nor the log holds the secret."""
    assert secret not in "".join(traceback.format_exception(error)) + repr(error) + caplog.text
    for inner in (error.__context__, error.__cause__):
        if inner is not None:
            assert_hidden(secret, inner, caplog)


def test_an_owner_who_blocked_the_bot_or_never_started_it_is_told(api: FakeTelegram, telegram: Telegram) -> None:
    api.blocked.add(api.chat_id)
    assert "unblock" in failure(telegram.push).reason
    api.chats.clear()
    assert "does not find the chat" in failure(telegram.push).reason


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("123456789:AAF-another_token_of_another_bot", "refused the token"),
        ("no token at all", "such a bot"),
        ("bot/../secret?#", "such a bot"),
    ],
)
def test_a_wrong_token_is_said_and_not_shown(
    api: FakeTelegram, caplog: pytest.LogCaptureFixture, token: str, words: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with closing(Telegram(token, api.chat_id, api.url)) as telegram:
        error = failure(telegram.push)
    assert words in error.reason
    assert_hidden(token, error, caplog)
    assert_hidden(quote(token, safe=":"), error, caplog)


def test_a_redirect_is_not_followed(api: FakeTelegram, telegram: Telegram, hook: FakeWebhook) -> None:
    api.fail_next(Status(307, "", {"Location": hook.address}))
    error = failure(telegram.push)
    assert error.permanent
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
def test_a_host_that_cannot_be_reached_is_said_with_what_to_do(
    caplog: pytest.LogCaptureFixture, root: str, why: str
) -> None:
    caplog.set_level(logging.DEBUG)
    token = "123456789:AAF-secret"
    with closing(Telegram(token, "4242", root.format(port=free_port()))) as telegram:
        error = failure(telegram.push)
    assert error.reason == (
        f"this host cannot reach Telegram ({why}): set TELEGRAM_API_URL to a relay, or ALERT_WEBHOOK_URL"
    )
    assert not error.permanent
    assert_hidden(token, error, caplog)


def test_a_server_that_speaks_no_tls_is_said(api: FakeTelegram) -> None:
    with closing(Telegram(api.token, "4242", api.url.replace("http", "https"))) as telegram:
        assert "certificate is not trusted" in failure(telegram.push).reason


def test_the_token_is_hidden_in_the_log_at_debug_and_in_warnings(
    api: FakeTelegram, telegram: Telegram, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    telegram.push("Hello")
    api.fail_next(Hangup(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\na header without a colon\r\n\r\n{}"))
    failure(telegram.push)
    assert "/bot…/sendMessage" in caplog.text
    assert [record.name for record in caplog.records if record.levelno == logging.WARNING] == ["urllib3.connection"]
    assert api.token not in caplog.text


def test_a_relay_that_repeats_the_token_does_not_bring_it_to_the_owner(api: FakeTelegram, telegram: Telegram) -> None:
    api.fail_next(refusal(400, f"no route to /bot{api.token}/sendMessage"))
    assert "no route to /bot…/sendMessage" in failure(telegram.push).reason


# python -m alerts.telegram


def run(api: FakeTelegram, *argv: str, **variables: str) -> tuple[int, list[str]]:
    environment = {"TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_API_URL": api.url} | variables
    out = io.StringIO()
    code = main(argv, load_settings({name: value for name, value in environment.items() if value}), out)
    assert api.token not in out.getvalue()
    return code, out.getvalue().splitlines()


def test_the_helper_finds_everybody_who_wrote(api: FakeTelegram) -> None:
    api.update(poll={"id": "1"})
    api.press_start("123456789", first_name="Ada", last_name="Lovelace\nX")
    api.update(my_chat_member={"chat": {"id": -1005, "type": "channel", "title": "Alerts"}})
    code, lines = run(api)
    assert code == 0
    assert lines[:2] == [
        "The token works: it belongs to @fake_replica_bot.",
        "Open https://t.me/fake_replica_bot and press Start. I wait up to 60 seconds.",
    ]
    assert lines[2].startswith("Ada Lovelace X wrote to the bot.")
    assert [line for line in lines if "=" in line] == ["TELEGRAM_CHAT_ID=123456789", "TELEGRAM_CHAT_ID=-1005"]
    assert run(api)[1] == lines


async def test_the_helper_waits_for_start(api: FakeTelegram) -> None:
    api.update(poll={"id": "1"})
    running = asyncio.create_task(asyncio.to_thread(run, api))
    await api.requests_arrive(3)
    api.press_start("77", first_name="Ada")
    code, lines = await running
    assert (code, lines[-1]) == (0, "TELEGRAM_CHAT_ID=77")


def test_the_helper_gives_up_in_time(api: FakeTelegram) -> None:
    code, lines = run(api, "--wait", "0.1")
    assert (code, lines[-1]) == (
        1,
        "Nobody wrote to the bot within 0.1 seconds: press Start there, then run this again.",
    )


def test_the_helper_sends_a_test_message(api: FakeTelegram) -> None:
    code, lines = run(api, TELEGRAM_CHAT_ID=api.chat_id)
    assert (code, lines[-1]) == (0, "The test message arrived in chat 4242: look at your phone.")
    assert [message.text for message in api.messages] == ["Your replica can reach you here. This was a test."]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"TELEGRAM_BOT_TOKEN": ""}, "TELEGRAM_BOT_TOKEN is not set"),
        ({"TELEGRAM_BOT_TOKEN": "123456789:AAF-another_token_of_another_bot"}, "Telegram refused the token"),
        ({"TELEGRAM_API_URL": "http://telegram.invalid"}, "This host cannot reach Telegram"),
        ({"TELEGRAM_CHAT_ID": "999"}, "Telegram does not find the chat"),
    ],
)
def test_the_helper_says_a_failure_in_one_line(api: FakeTelegram, variables: dict[str, str], words: str) -> None:
    code, lines = run(api, **variables)
    assert code == 1
    assert lines[-1].startswith(words)
    assert all("Traceback" not in line for line in lines)


def test_the_helper_says_that_a_webhook_is_in_the_way(api: FakeTelegram) -> None:
    api.has_webhook = True
    code, lines = run(api)
    assert (code, len(lines)) == (1, 3)
    assert "the bot has a webhook" in lines[-1]


@pytest.mark.parametrize(("chat_id", "code"), [("4242", 0), ("999", 1), ("not a number", 1)])
def test_the_helper_runs_as_a_program(api: FakeTelegram, tmp_path: Path, chat_id: str, code: int) -> None:
    """From a folder whose .env has the token."""
    (tmp_path / ".env").write_text(f"TELEGRAM_BOT_TOKEN={api.token}\nTELEGRAM_API_URL={api.url}\n")
    root = str(Path(__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-m", "alerts.telegram"],
        env={**os.environ, "PYTHONPATH": root, "TELEGRAM_CHAT_ID": chat_id},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (code, "")
    assert api.token not in done.stdout
    assert ("arrived" in done.stdout) is (code == 0)


# The webhook


async def test_the_webhook_gets_text_and_content(hook: FakeWebhook, webhook: Webhook) -> None:
    await webhook.send("New contact: Jane\nC-7KQ2M")
    (message,) = await hook.messages_arrive(1)
    assert message.payload == {"text": "New contact: Jane\nC-7KQ2M", "content": "New contact: Jane\nC-7KQ2M"}


def test_the_webhook_gets_long_text_in_pieces(hook: FakeWebhook, webhook: Webhook) -> None:
    text = "line of a long text\n" * 400
    webhook.push(text)
    assert "".join(message.text for message in hook.messages) == text


@pytest.mark.parametrize(
    ("fault", "words", "permanent", "retry_after_s"),
    [
        (Status(404, "no_service"), "(404): check ALERT_WEBHOOK_URL", True, None),
        (Status(302, "", {"Location": "/"}), "(302): check ALERT_WEBHOOK_URL", True, None),
        (Status(429, {"message": "rate limited", "retry_after": 0.5}), "a pause", False, 0.5),
        (Status(429, "", {"Retry-After": "3"}), "a pause", False, 3),
        (Status(503, "", {"Retry-After": "30"}), "fault of its own (503)", False, 30),
        (Hangup(), "cannot reach the webhook (the connection broke off)", False, None),
        (Silence(), "(it did not answer in time)", False, None),
    ],
)
def test_the_webhook_says_what_to_do_and_hides_its_address(
    hook: FakeWebhook,
    webhook: Webhook,
    caplog: pytest.LogCaptureFixture,
    fault: Fault,
    words: str,
    permanent: bool,
    retry_after_s: float | None,
) -> None:
    caplog.set_level(logging.DEBUG)
    hook.fail_next(fault)
    error = failure(webhook.push)
    assert words in error.reason
    assert (error.permanent, error.retry_after_s) == (permanent, retry_after_s)
    assert_hidden(hook.path, error, caplog)


@pytest.mark.parametrize("address", ["https://hooks.invalid/secret?key=secret", "no address, but a secret", "http://"])
def test_a_webhook_that_cannot_be_reached_hides_its_address(caplog: pytest.LogCaptureFixture, address: str) -> None:
    caplog.set_level(logging.DEBUG)
    with closing(Webhook(address)) as webhook:
        error = failure(webhook.push)
    assert "cannot reach the webhook" in error.reason
    assert_hidden("secret", error, caplog)
