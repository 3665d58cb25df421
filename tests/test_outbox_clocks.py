"""Machines whose clocks differ share one PostgreSQL: its clock counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from alerts.outbox import Outbox
from alerts.telegram import Telegram
from store.store import Store
from tests.alert_house import JANE, ask, deliver, no_gap
from tests.fakes.telegram import FakeTelegram, Silence


@pytest.fixture
async def url(postgresql_url: str) -> str:
    return postgresql_url


@pytest.fixture
async def other(url: str, request: pytest.FixtureRequest) -> AsyncGenerator[Store]:
    """The store on a machine whose clock is wrong by so many seconds."""
    wrong = timedelta(seconds=request.param)
    store = Store.open(url, lambda: datetime.now(UTC) + wrong)
    yield store
    await store.close()


@pytest.mark.parametrize("other", [61], indirect=True)
async def test_a_clock_that_is_fast_does_not_end_the_claim_of_another_machine(
    store: Store, other: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    silence = Silence()
    api.fail_next(silence)
    outbox = Outbox(store, [telegram])
    await outbox.contact(JANE, [])
    sending = asyncio.create_task(outbox.deliver_next())
    await api.requests_arrive(1)
    with closing(Telegram(api.token, api.chat_id, api.url, gap_s=no_gap)) as second:
        await deliver(Outbox(other, [second]))
    silence.over.set()
    await sending
    assert len(api.messages) == 1


@pytest.mark.parametrize("other", [18_000], indirect=True)
async def test_an_alert_that_a_fast_machine_wrote_goes_out_at_once(
    store: Store, other: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    await deliver(Outbox(other, [telegram]))  # as its worker does at the start
    outbox = Outbox(store, [telegram])
    await deliver(outbox)
    await Outbox(other, []).question(ask(1), [])
    await deliver(outbox)
    assert len(api.messages) == 1


@pytest.mark.parametrize("other", [61], indirect=True)
async def test_a_clock_that_is_fast_does_not_end_the_lease_of_another_machine(store: Store, other: Store) -> None:
    assert await store.take_lease("inbox", "one", 60)
    assert not await other.take_lease("inbox", "another", 60)
