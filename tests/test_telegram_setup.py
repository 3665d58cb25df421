"""`python -m alerts.telegram`: finds the chat, sends a test message, says what is wrong."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.settings import load_settings
from alerts.telegram import main
from tests.fakes.telegram import FakeTelegram


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
    api.mailbox.set_hook({"url": "https://elsewhere.example/hook"})
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
