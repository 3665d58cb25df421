"""The outbox: nothing is lost, nobody waits, and every alert arrives."""

from __future__ import annotations

import asyncio
import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count as count_from
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alerts.outbox import Outbox
from alerts.telegram import Telegram
from alerts.text import TALK_HINT
from alerts.webhook import Webhook
from store.store import Store
from tests.alert_house import DOWN, JANE, ask, at_once, never, no_gap, running
from tests.fakes.telegram import FakeTelegram, FakeWebhook, Fault, Hangup, Silence


async def test_a_contact_rings_at_the_phone(store: Store, api: FakeTelegram, telegram: Telegram) -> None:
    async with running(Outbox(store, [telegram])) as outbox:
        await outbox.contact(JANE, ["Visitor: Hello"])
        (message,) = await api.messages_arrive(1)
        assert re.fullmatch(
            rf"New contact: Jane Doe\njane@example.org\nWants: .* Turin\n> Visitor: Hello\n{TALK_HINT}\nC-\w{{5}}",
            message.text,
        )
        assert outbox.status() == "ok"
    assert (await store.alert_counts())["sent"] == 1


async def test_contact_question_and_trouble_each_ring_once(store: Store, api: FakeTelegram, telegram: Telegram) -> None:
    async with running(Outbox(store, [telegram])) as outbox:
        for fresh, kept in ((True, "new"), (False, "known")):
            assert await outbox.contact(JANE, []) == kept
            assert await outbox.question(ask(1), []) == kept
            assert await outbox.trouble("provider", "the model's key\nwas refused") is fresh
        messages = await api.messages_arrive(3)
    assert [message.text.splitlines()[0] for message in messages] == [
        "New contact: Jane Doe",
        "I could not answer: What is 1?",
        "Trouble: the model's key was refused",
    ]
    assert len(api.requests) == 3


async def test_nobody_waits_for_a_delivery(store: Store, api: FakeTelegram, telegram: Telegram) -> None:
    silence = Silence()
    api.fail_always(silence)
    async with running(Outbox(store, [telegram])) as outbox:
        for number in range(3):
            await outbox.question(ask(number), [])
        await api.requests_arrive(1)
        assert api.messages == []
        silence.over.set()
        assert len(await api.messages_arrive(3)) == 3


async def test_what_a_dead_worker_had_claimed_is_delivered_when_its_lease_is_over(
    url: str, api: FakeTelegram, telegram: Telegram
) -> None:
    before = Store.open(url)
    for number in range(2):
        await Outbox(before, [telegram]).question(ask(number), [])
    lease = timedelta(seconds=1)
    assert len(await before.claim_due_alerts(1, datetime.now(UTC), "dead", lease)) == 1  # and then the process died
    await before.close()
    after = Store.open(url)
    async with running(Outbox(after, [telegram])):
        assert [one.text.splitlines()[0] for one in await api.messages_arrive(2)] == [
            "I could not answer: What is 1?",
            "I could not answer: What is 0?",
        ]
    assert (await after.alert_counts())["sent"] == 2
    await after.close()


async def test_a_delivery_in_flight_is_finished_and_marked_at_the_end(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    silence = Silence()
    api.fail_next(silence)
    outbox = Outbox(store, [telegram])
    worker = asyncio.create_task(outbox.run())
    await outbox.question(ask(1), [])
    await outbox.question(ask(2), [])
    await api.requests_arrive(1)
    worker.cancel()
    silence.over.set()
    with pytest.raises(asyncio.CancelledError):
        await worker
    assert await store.alert_counts() == {"pending": 1, "failed": 0, "kept": 0, "sent": 1}
    async with running(Outbox(store, [telegram])):
        await api.messages_arrive(2)
    assert [one.text.splitlines()[0][-2] for one in api.messages] == ["1", "2"]


async def test_a_failed_delivery_is_tried_again(store: Store, api: FakeTelegram, telegram: Telegram) -> None:
    tries: list[int] = []

    def back_off(attempts: int) -> float:
        tries.append(attempts)
        return 0.01

    api.fail_next(DOWN, DOWN, DOWN)
    async with running(Outbox(store, [telegram], back_off=back_off)) as outbox:
        await outbox.contact(JANE, [])
        await api.messages_arrive(1)
    assert (len(api.requests), len(api.messages), tries) == (4, 1, [1, 2, 3])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20)
@given(faults=st.lists(st.sampled_from([None, DOWN, Hangup()]), max_size=8), alerts=st.integers(1, 4))
async def test_whatever_happens_on_the_way_every_alert_arrives(
    tmp_path: Path, faults: list[Fault | None], alerts: int
) -> None:
    """Once each, and once more only where the server took one without saying so."""
    store = Store.open(f"sqlite:///{tmp_path}/{uuid4().hex}.sqlite3")
    outcomes = [*faults, *[None] * alerts]
    requests = next(count for count in count_from(0) if outcomes[:count].count(None) == alerts)
    with FakeTelegram() as api, closing(Telegram(api.token, api.chat_id, api.url, gap_s=no_gap)) as telegram:
        api.fail_next(*faults)
        async with running(Outbox(store, [telegram], back_off=at_once)) as outbox:
            for number in range(alerts):
                await outbox.question(ask(number), [])
            await api.requests_arrive(requests)
        assert {one.text.splitlines()[0] for one in api.messages} == {
            f"I could not answer: What is {number}?" for number in range(alerts)
        }
        hangups = sum(isinstance(fault, Hangup) for fault in outcomes[:requests])
        assert (len(api.requests), len(api.messages)) == (requests, alerts + hangups)
        assert (await store.alert_counts())["sent"] == alerts
    await store.close()


async def test_once_a_channel_works_again_all_that_failed_goes_out(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    api.fail_always(DOWN)
    async with running(Outbox(store, [telegram], back_off=never)) as outbox:
        for number in range(3):
            await outbox.question(ask(number), [])
        await api.requests_arrive(3)
    assert (await store.alert_counts())["failed"] == 3
    async with running(outbox):
        api.fail_always(None)
        await outbox.contact(JANE, [])
        assert len(await api.messages_arrive(4)) == 4


async def test_the_second_channel_takes_what_the_first_does_not(
    store: Store, api: FakeTelegram, telegram: Telegram, hook: FakeWebhook, webhook: Webhook
) -> None:
    api.fail_next(DOWN)
    async with running(Outbox(store, [telegram, webhook], back_off=never)) as outbox:
        await outbox.contact(JANE, [])
        await hook.messages_arrive(1)
        await outbox.question(ask(1), [])
        await api.messages_arrive(1)
    assert (len(api.messages), len(hook.messages)) == (1, 1)
    assert (await store.alert_counts())["sent"] == 2
