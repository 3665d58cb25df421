"""A replica without page and model: takes contacts through the tool and delivers alerts, until it is ended or killed.

python -m tests.outbox_program DATABASE_URL TOKEN CHAT_ID API_URL [LEASE_S]

It says `ready`; then it reads addresses, one a line, and writes each back when the tool has answered `ok`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import IO

from agent.conversation import Conversation, ToolCall
from agent.toolkit import Toolkit, Visit
from alerts.outbox import Outbox
from alerts.pace import Pace
from alerts.telegram import Telegram
from store.store import Store
from tests.alert_house import at_once, no_gap
from tests.fakes.telegram import FakeTelegram
from tools.registry import toolkit

ROOT = Path(__file__).parents[1]


async def take(tools: Toolkit, email: str) -> None:
    """As the model would: in a conversation of its own for each address."""
    arguments = json.dumps({"email": email, "notes": "Wants to talk about a job."})
    visit = Visit(f"talk of {email}", Conversation(), f"Write to {email}")
    answer = await tools.call(ToolCall("call-1", "gather_user_details", arguments), visit)
    assert answer.content == "ok", answer.content
    sys.stdout.write(f"{email}\n")
    sys.stdout.flush()


async def live(database: str, token: str, chat_id: str, api_url: str, lease_s: str = "60") -> None:
    store = Store.open(database)
    telegram = Telegram(token, chat_id, api_url, store, gap_s=no_gap)
    pace = Pace(an_hour=10_000, lease=timedelta(seconds=float(lease_s)))
    outbox = Outbox(store, [telegram], back_off=at_once, pace=pace)
    delivering = asyncio.create_task(outbox.run())
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    tools = toolkit(outbox)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        await take(tools, line)
    await ended.wait()
    delivering.cancel()
    with suppress(asyncio.CancelledError):
        await delivering
    outbox.close()
    await store.close()


@contextmanager
def program(
    database: str, api: FakeTelegram, url: str, lease_s: float, log: IO[str]
) -> Generator[subprocess.Popen[str]]:
    """Such a process, once it is ready. At the end it is killed, if it still lives."""
    argv = [sys.executable, "-m", "tests.outbox_program", database, api.token, api.chat_id, url, str(lease_s)]
    with subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> int:
    """Ends it in order, and returns its exit code."""
    assert process.stdin
    process.stdin.close()
    process.terminate()
    return process.wait(15)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    asyncio.run(live(*sys.argv[1:]))
