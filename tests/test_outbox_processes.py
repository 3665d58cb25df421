"""Two processes on one database: every alert goes out, and none of them twice."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from store.clock import utc_now
from store.records import Question
from store.store import Store
from tests.fakes.telegram import FakeTelegram
from tests.outbox_program import ended, program

ALERTS = 500
LEASE_S = 60.0
AT_ONCE = 20
"""The fake's patience is for few messages, not for all of them."""


@pytest.mark.both_databases
async def test_of_two_processes_none_sends_what_the_other_one_does(
    url: str, store: Store, api: FakeTelegram, tmp_path: Path
) -> None:
    for number in range(ALERTS):
        question = Question(f"talk {number // 10}", f"What is {number}?")
        await store.add_question(question, lambda reference, number=number: f"Alert {number}\n{reference}")
    logs = [tmp_path / "first", tmp_path / "second"]
    with ExitStack() as stack:
        files = [stack.enter_context(log.open("w")) for log in logs]
        processes = [stack.enter_context(program(url, api, api.url, LEASE_S, file)) for file in files]
        for count in range(AT_ONCE, ALERTS + 1, AT_ONCE):
            await api.messages_arrive(count)
            await store.release_alerts(utc_now())  # as at a start: what somebody has claimed stays theirs
        assert [ended(process) for process in processes] == [0, 0]
    arrived = Counter(re.findall(r"^Alert (\d+)$", "\n".join(one.text for one in api.messages), re.MULTILINE))
    assert sorted(map(int, arrived)) == list(range(ALERTS))
    assert arrived.total() == ALERTS
    assert (await store.alert_counts())["sent"] == ALERTS
    shares = [log.read_text().count("went out by Telegram") for log in logs]
    assert sum(shares) == ALERTS
    assert min(shares) > ALERTS / 10
