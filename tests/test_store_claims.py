"""Claims on alerts, and leases: what one process has, no other one gets, until it is known to be dead."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from store.alert_queue import LEASE
from store.database import open_engine
from store.records import Alert, Contact, Question, Sent
from store.store import Store
from store.tables import alerts
from tests.alert_house import LATER, text_of
from tests.databases import run_sql

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).parents[1]
ALERTS = 500
MOMENT = timedelta(seconds=1)

DRAIN = """
import asyncio, json, sys
from datetime import UTC, datetime
from store.records import Sent
from store.store import Store

async def main(url, holder, at_once):
    store = Store.open(url)
    print("ready", flush=True)
    sys.stdin.readline()
    first = True
    while claimed := [alert.id for alert in await store.claim_due_alerts(at_once, datetime.now(UTC), holder)]:
        print(json.dumps(claimed), flush=True)
        if first or holder == "dies":
            sys.stdin.readline()
        first = False
        await store.mark_sent(claimed, datetime.now(UTC), holder, Sent("1", (claimed[0],)))
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def start(url: str, holder: str, at_once: int = 5) -> subprocess.Popen[str]:
    """Another process, which delivers alerts once it is told to go on."""
    job = subprocess.Popen(
        [sys.executable, "-c", DRAIN, url, holder, str(at_once)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert said(job) == "ready"
    return job


def said(job: subprocess.Popen[str]) -> str:
    assert job.stdout is not None
    return job.stdout.readline().strip()


def go_on(job: subprocess.Popen[str]) -> None:
    assert job.stdin is not None
    job.stdin.write("go\n")
    job.stdin.flush()


def claimed_by(job: subprocess.Popen[str]) -> list[int]:
    out, _ = job.communicate(timeout=60)
    assert job.returncode == 0
    return [alert_id for line in out.splitlines() for alert_id in json.loads(line)]


def add_many(url: str, count: int) -> None:
    now = datetime.now(UTC)
    engine = open_engine(url)
    with engine.begin() as connection:
        rows: list[dict[str, Any]] = [
            {"kind": "question", "reference": f"Q-{n}", "text": f"{n}", "state": "pending", "due": now, "created": now}
            for n in range(count)
        ]
        connection.execute(insert(alerts), rows)
    engine.dispose()


async def ask(store: Store, count: int) -> None:
    for number in range(count):
        await store.add_question(Question(f"talk {number}", "Why?"), text_of)


def ids(claimed: list[Alert]) -> list[int]:
    return [alert.id for alert in claimed]


# Processes


async def test_two_processes_share_the_alerts_and_none_goes_out_twice(store: Store, url: str) -> None:
    add_many(url, ALERTS)
    jobs = [start(url, holder) for holder in ("a", "b")]
    for job in jobs:
        go_on(job)
    firsts: list[list[int]] = [json.loads(await asyncio.to_thread(said, job)) for job in jobs]
    for job in jobs:  # both hold some by now, however slow one of them is
        go_on(job)
    shares = [await asyncio.to_thread(claimed_by, job) for job in jobs]
    assert all(firsts)
    assert sorted(chain(*firsts, *shares)) == list(range(1, ALERTS + 1))
    assert (await store.alert_counts())["sent"] == ALERTS
    assert len(run_sql(url, "SELECT * FROM alert_messages")) == ALERTS


async def test_what_a_killed_process_had_claimed_is_free_after_its_lease(store: Store, url: str) -> None:
    add_many(url, 20)
    dying = start(url, "dies")
    go_on(dying)
    lost: list[int] = json.loads(said(dying))
    dying.kill()
    dying.communicate()
    now = datetime.now(UTC)
    await store.release_alerts(now)
    assert set(ids(await store.claim_due_alerts(20, now, "alive"))) == set(range(1, 21)) - set(lost)
    later = now + LEASE
    assert [(one.id, one.attempts) for one in await store.claim_due_alerts(20, later, "other") if one.id in lost] == [
        (alert_id, 2) for alert_id in lost
    ]


# Claims


async def test_a_claim_is_nobody_elses_until_its_lease_is_over(store: Store) -> None:
    await ask(store, 1)
    now = datetime.now(UTC)
    (alert,) = await store.claim_due_alerts(1, now, "a")
    assert await store.next_alert_due() == now + LEASE
    assert await store.claim_due_alerts(1, now + LEASE - MOMENT, "b") == []
    await store.extend_claims([alert.id], now + LEASE - MOMENT, "a")
    assert await store.claim_due_alerts(1, now + LEASE, "b") == []
    assert len(await store.claim_due_alerts(1, now + 2 * LEASE, "b")) == 1


async def test_who_lost_a_claim_changes_nothing_of_it(store: Store) -> None:
    await ask(store, 1)
    now = datetime.now(UTC)
    claimed = ids(await store.claim_due_alerts(1, now, "slow"))
    assert ids(await store.claim_due_alerts(1, now + LEASE, "quick")) == claimed
    await store.mark_failed(claimed, now, "away", "slow")
    await store.mark_sent(claimed, now, "slow")
    await store.extend_claims(claimed, now + LATER, "slow")
    assert await store.alert_counts() == {"pending": 1, "failed": 0, "kept": 0, "sent": 0}
    assert await store.next_alert_due() == now + 2 * LEASE
    await store.mark_sent(claimed, now, "quick")
    await store.mark_failed(claimed, now, "away", "quick")
    await store.mark_kept(claimed[0])
    assert (await store.alert_counts())["sent"] == 1


async def test_what_went_out_is_known_even_if_the_claim_was_lost(store: Store) -> None:
    await ask(store, 1)
    now = datetime.now(UTC)
    claimed = ids(await store.claim_due_alerts(1, now, "slow"))
    await store.claim_due_alerts(1, now + LEASE, "quick")
    await store.mark_sent(claimed, now, "slow", Sent("7", (1,)))
    await store.mark_sent(claimed, now, "quick", Sent("7", (2, 3, 3)))
    targets = [await store.target_of("7", message_id) for message_id in (1, 2, 3)]
    assert targets[0] == targets[1] == targets[2] != []


async def test_release_leaves_a_live_claim_alone(store: Store) -> None:
    await ask(store, 2)
    now = datetime.now(UTC)
    failed, _claimed = ids(await store.claim_due_alerts(2, now, "a"))
    await store.mark_failed([failed], now + LATER, "away", "a")
    await store.release_alerts(now)
    assert ids(await store.claim_due_alerts(5, now, "b")) == [failed]


async def test_a_failed_alert_is_no_longer_claimed(store: Store) -> None:
    await ask(store, 1)
    now = datetime.now(UTC)
    claimed = ids(await store.claim_due_alerts(1, now, "a"))
    await store.mark_failed(claimed, now, "away", "a")
    assert ids(await store.claim_due_alerts(1, now, "b")) == claimed


async def test_a_reply_to_the_owner_goes_first_and_alone_and_then_contacts(store: Store) -> None:
    await ask(store, 1)
    await store.add_contact(Contact("talk", "a@example.org", "a@example.org", ""), text_of, text_of)
    for update in (1, 2):
        await store.handle_update(update, lambda _, update=update: f"reply {update}", reply_to=40 + update)
    now = datetime.now(UTC)
    turns = [await store.claim_due_alerts(9, now, "a") for _ in range(4)]
    assert [[alert.kind for alert in turn] for turn in turns] == [["reply"], ["reply"], ["contact", "question"], []]
    assert [(turn[0].text, turn[0].reply_to) for turn in turns[:2]] == [("reply 1", 41), ("reply 2", 42)]


async def test_while_nothing_else_may_go_out_a_reply_may(store: Store) -> None:
    await ask(store, 1)
    now = datetime.now(UTC) + MOMENT
    assert await store.claim_due_alerts(0, now, "a") == []
    await store.handle_update(1, lambda _: "reply")
    (reply,) = await store.claim_due_alerts(0, now, "a")
    assert reply.kind == "reply"
    await store.mark_sent([reply.id], now, "a")
    assert await store.alerts_sent_since(now - LATER) == (0, None)


async def test_what_the_bot_replied_is_not_kept_once_it_has_gone_out(store: Store, url: str) -> None:
    await store.handle_update(1, lambda _: "jane@example.org, john@example.org")
    claimed = ids(await store.claim_due_alerts(1, datetime.now(UTC), "a"))
    await store.mark_sent(claimed, datetime.now(UTC), "a")
    assert run_sql(url, "SELECT text FROM alerts") == [("",)]


# Leases


async def test_a_lease_is_one_holders_until_it_is_over_or_dropped(store: Store) -> None:
    assert await store.take_lease("poller", "a", 60)
    assert await store.take_lease("other", "b", 60)
    assert not await store.take_lease("poller", "b", 60)
    assert await store.take_lease("poller", "a", 0)
    assert await store.take_lease("poller", "b", 60)
    await store.drop_lease("poller", "a")
    assert not await store.take_lease("poller", "a", 60)
    await store.drop_lease("poller", "b")
    assert await store.take_lease("poller", "a", 60)


@pytest.mark.parametrize("taken", [False, True])
async def test_of_many_who_want_a_lease_at_once_one_gets_it(store: Store, url: str, taken: bool) -> None:
    if taken:
        await store.take_lease("poller", "dead", 0)
    other = Store.open(url)
    both = [(one, f"holder {number}") for number, one in enumerate((store, other) * 5)]
    got = await asyncio.gather(*[one.take_lease("poller", holder, 60) for one, holder in both])
    await other.close()
    assert got.count(True) == 1
