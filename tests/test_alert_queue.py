"""Alerts in the store: claimed once, tried again, never lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from store.records import Question, StoreError
from store.store import Store
from tests.alert_house import LATER, due, text_of

pytestmark = pytest.mark.both_databases


async def test_trouble_is_told_once_in_its_time(store: Store) -> None:
    hour = timedelta(hours=1)
    assert await store.add_trouble("provider", "It is down", hour)
    assert not await store.add_trouble("provider", "It is still down", hour)
    assert await store.add_trouble("disk", "It is full", hour)
    assert await store.add_trouble("provider", "Down again", timedelta(0))
    assert await due(store) == ["It is down", "It is full", "Down again"]


async def test_an_alert_is_claimed_once_and_oldest_first(store: Store) -> None:
    for index in range(3):
        await store.add_question(Question("talk", f"Question {index}"), lambda _, index=index: str(index))
    now = datetime.now(UTC)
    assert [alert.text for alert in await store.claim_due_alerts(2, now)] == ["0", "1"]
    assert [alert.text for alert in await store.claim_due_alerts(2, now)] == ["2"]
    assert await store.claim_due_alerts(2, now) == []


async def test_a_failed_alert_waits_for_its_time(store: Store) -> None:
    await store.add_question(Question("talk", "Why?"), text_of)
    now = datetime.now(UTC)
    (alert,) = await store.claim_due_alerts(1, now)
    soon = (now + timedelta(minutes=5)).astimezone(timezone(timedelta(hours=9)))
    await store.mark_failed([alert.id], soon, "Telegram is away")
    assert await store.next_alert_due() == soon
    assert await store.claim_due_alerts(1, soon - timedelta(seconds=1)) == []
    assert await store.alert_counts() == {"pending": 0, "failed": 1, "kept": 0, "sent": 0}
    assert len(await store.claim_due_alerts(1, soon)) == 1


async def test_a_sent_alert_is_never_handed_out_again(store: Store) -> None:
    await store.add_question(Question("talk", "Why?"), text_of)
    (alert,) = await store.claim_due_alerts(1, datetime.now(UTC))
    await store.mark_sent([alert.id], datetime.now(UTC))
    await store.release_alerts(datetime.now(UTC))
    assert await due(store) == []
    assert await store.next_alert_due() is None
    assert await store.alert_counts() == {"pending": 0, "failed": 0, "kept": 0, "sent": 1}


async def test_a_kept_alert_waits_until_it_is_released(store: Store) -> None:
    await store.add_question(Question("talk", "Why?"), text_of)
    (alert,) = await store.claim_due_alerts(1, datetime.now(UTC))
    await store.mark_kept(alert.id)
    assert await due(store) == []
    await store.release_alerts(datetime.now(UTC))
    assert len(await due(store)) == 1


async def test_release_makes_failed_alerts_due(store: Store) -> None:
    await store.add_question(Question("talk", "Why?"), text_of)
    now = datetime.now(UTC)
    (failed,) = await store.claim_due_alerts(2, now)
    await store.mark_failed([failed.id], now + LATER, "away")
    await store.release_alerts(now)
    assert len(await store.claim_due_alerts(5, now)) == 1


async def test_a_time_without_a_zone_is_refused(store: Store) -> None:
    with pytest.raises(StoreError):
        await store.claim_due_alerts(1, datetime(2030, 1, 1))
