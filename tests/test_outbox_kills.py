"""Two hundred contacts, a Telegram that is down, then limiting, then up, and a process that is killed ten times."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store.store import Store
from tests.e2e.programs import free_port
from tests.fakes.telegram import FakeTelegram, Fault, Hangup, Status
from tests.outbox_program import ended, program

CONTACTS = 200
LEASE_S = 1.0
AT_ONCE = 45
"""So many a life gets at most: one that is killed while it stores them leaves some to the next."""
LOST_ANSWERS = 5
SEED = 20301

DOWN = Status(503, {"ok": False, "error_code": 503, "description": "Service Unavailable"})
LIMITING = Status(429, {"ok": False, "error_code": 429, "parameters": {"retry_after": 1}})
CLOSED = "closed"

LIVES: tuple[Fault | str | None, ...] = (CLOSED, CLOSED, CLOSED, DOWN, DOWN, LIMITING, LIMITING, None, None, None)
"""How Telegram is in each life that a kill ends."""


class SlowTelegram(FakeTelegram):
    """Takes its time, so that kills meet sends under way."""

    def answer(self, path: str, payload: dict[str, Any]) -> Status:
        self.closing.wait(0.01)
        status = super().answer(path, payload)
        self.closing.wait(0.01)
        return status


def one_life(process: subprocess.Popen[str], emails: list[str], seconds: float) -> list[str]:
    """Hands in these addresses, kills the process after that time, and returns those that it has acknowledged."""
    assert process.stdin
    assert process.stdout
    process.stdin.write("".join(f"{email}\n" for email in emails))
    process.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.kill()
    return process.stdout.read().split()


def last_life(process: subprocess.Popen[str], emails: list[str]) -> list[str]:
    """Hands in the rest, and waits for all of it to be acknowledged."""
    assert process.stdin
    assert process.stdout
    process.stdin.write("".join(f"{email}\n" for email in emails))
    process.stdin.flush()
    return [process.stdout.readline().strip() for _ in emails]


async def everybody_arrived(api: FakeTelegram) -> None:
    while len(told(api)) < CONTACTS:
        await api.messages_arrive(len(api.messages) + 1)


def told(api: FakeTelegram) -> Counter[str]:
    """How often each address arrived at the phone."""
    return Counter(re.findall(r"^New contact: (\S+)$", "\n".join(one.text for one in api.messages), re.MULTILINE))


async def test_ten_kills_lose_no_contact_and_repeat_only_what_they_cut_off(
    url: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    began, chance = time.monotonic(), random.Random(SEED)
    waiting = [f"visitor{number}@example.org" for number in range(CONTACTS)]
    acknowledged: list[str] = []
    with SlowTelegram() as api, (tmp_path / "log").open("w+") as log:
        nowhere = f"http://127.0.0.1:{free_port()}"
        for mood in LIVES:
            api.fail_always(mood if isinstance(mood, Status) else None)
            with program(url, api, nowhere if mood == CLOSED else api.url, LEASE_S, log) as process:
                seen = one_life(process, waiting[:AT_ONCE], chance.uniform(0.02, 0.6))
            acknowledged += seen
            waiting = [email for email in waiting if email not in seen]
        before = len(api.messages)
        api.fail_next(*[Hangup(), None] * LOST_ANSWERS)
        with program(url, api, api.url, LEASE_S, log) as process:
            acknowledged += last_life(process, waiting)
            await everybody_arrived(api)
            assert ended(process) == 0
    store = Store.open(url)
    contacts = [contact.email for contact in await store.contacts()]
    states = await store.alert_counts()
    await store.close()
    arrived = told(api)
    repeats = sum(arrived.values()) - CONTACTS
    figures = f"{repeats} repeats of {CONTACTS}, {len(LIVES)} kills, {LOST_ANSWERS} lost answers"
    record_property("figures", figures)
    sys.stdout.write(f"{figures}; {before} messages before the last life; {time.monotonic() - began:.0f} s\n")
    assert set(acknowledged) <= set(contacts)
    assert len(contacts) == len(set(contacts)) == CONTACTS
    assert set(arrived) == set(contacts)
    assert states == {"pending": 0, "failed": 0, "kept": 0, "sent": CONTACTS}
    assert LOST_ANSWERS <= repeats <= len(LIVES) + LOST_ANSWERS
