"""A day's tokens: where they end, who is told, and what visitors get for the rest of the day."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta

import pytest

from agent.briefing import Briefing
from agent.calls import Metered
from agent.events import TextDelta, TurnFinished
from agent.fitting import Fitting
from agent.knowledge import Passage
from agent.limits import Allowance, Ceiling
from agent.loop import Replica
from agent.model import OpenAIModel
from agent.offline import NOTICE_RESTING, OfflineModel
from agent.reception import Reception
from agent.room import Room
from alerts.outbox import Outbox
from app import tell_of_ceiling
from store.store import Store
from tests.fakes.counts import Counts
from tests.fakes.provider import Answer, Provider, delta, says
from tools.registry import toolkit

Tell = Callable[[date], Awaitable[object]]
Opening = Callable[..., Reception]


@pytest.fixture
def opened(model: OpenAIModel, store: Store, counts: Counts) -> Opening:
    """Builds a reception under a ceiling of so many tokens, as a start of the program does."""

    def build(limit: int, tell: Tell, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Reception:
        allowance = Allowance(limit, store.tokens_since, now)
        metered = Metered(model, "127.0.0.1", None, lambda call: allowance.spend(call.tokens))
        replica = Replica(metered, toolkit(Outbox(store, [])), "You are Ada.")
        return Reception(
            replica,
            store,
            max_replies=3,
            max_message_chars=500,
            ceiling=Ceiling(allowance, OfflineModel("Ada", "", Notes(), NOTICE_RESTING), tell),
            briefing=Briefing(fitting=Fitting(Room(1500, 900), can_write=True)),
            watch=counts,
        )

    return build


async def said(reception: Reception, conversation_id: str, message: str = "Hello") -> str:
    last = None
    async for event in reception.answer(conversation_id, message):
        last = event
    assert isinstance(last, TurnFinished)
    return last.turn.text


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Notes:
    """Finds the same passage for one question."""

    async def answering(self, question: str) -> tuple[Passage, ...]:
        return (Passage("faq.md", "Engine", "It weaves algebra."),) if "Engine" in question else ()


async def alerts_of(store: Store) -> list[str]:
    return [alert.text for alert in await store.claim_due_alerts(100, datetime.now(UTC) + timedelta(hours=1))]


async def test_at_the_days_ceiling_no_provider_is_asked_and_addresses_are_still_taken(
    opened: Opening, store: Store, provider: Provider, counts: Counts
) -> None:
    # A scripted answer takes 15 tokens: four of them reach 60.
    reception = opened(60, tell_of_ceiling(Outbox(store, [])))
    provider.answer = lambda asked: says("Hello.")
    answers = [await said(reception, f"c{n}") for n in range(4)]
    assert answers == ["Hello."] * 4
    quoted = await said(reception, "c5", "What does the Engine do?")
    assert "It weaves algebra." in quoted
    assert "I have talked enough for today" in quoted
    assert "Leave your e-mail address here and I will pass it on." in quoted
    thanked = await said(reception, "c5", "I am Jane Doe, write to jane@example.org about a job")
    assert "I have passed your details on" in thanked
    assert "talked enough" not in thanked
    assert len(provider.requests) == 4
    assert [contact.email for contact in await store.contacts()] == ["jane@example.org"]
    assert counts.refusals == ["daily_tokens"] * 2
    assert len([text for text in await alerts_of(store) if "DAILY_TOKENS" in text]) == 1


async def test_a_restart_does_not_lift_the_ceiling_nor_ring_twice(
    opened: Opening, store: Store, provider: Provider
) -> None:
    before = opened(15, tell_of_ceiling(Outbox(store, [])))
    await said(before, "c1")
    await said(before, "c1", "What does the Engine do?")
    after = opened(15, tell_of_ceiling(Outbox(store, [])))
    assert "It weaves algebra." in await said(after, "c2", "What does the Engine do?")
    assert len(provider.requests) == 1
    assert len(await alerts_of(store)) == 1


async def test_a_new_day_begins_at_midnight_utc(opened: Opening, store: Store, provider: Provider) -> None:
    days: list[date] = []

    async def tell(day: date) -> None:
        days.append(day)

    now = datetime.now(UTC)
    reception = opened(15, tell, lambda: now)
    for _ in range(3):
        await said(reception, "c1")
    now += timedelta(days=1)
    assert await said(reception, "c2") == "Hello."
    await said(reception, "c2")
    assert len(provider.requests) == 2
    assert days == [now.date() - timedelta(days=1), now.date()]


async def test_at_the_ceiling_no_summary_is_paid_for(opened: Opening, store: Store, provider: Provider) -> None:
    reception = opened(15, tell_of_ceiling(Outbox(store, [])))
    for _ in range(8):
        await said(reception, "c1", "What does the Engine do? " + "please " * 60)
    assert len(provider.requests) == 1


async def test_without_a_ceiling_nothing_is_read() -> None:
    async def read(_: datetime) -> int:
        raise AssertionError

    allowance = Allowance(0, read)
    allowance.spend(10**9)
    assert not await allowance.is_spent()


async def test_tokens_of_other_machines_count_too() -> None:
    asked: list[datetime] = []

    async def read(since: datetime) -> int:
        asked.append(since)
        return 90

    allowance = Allowance(100, read, lambda: NOON)
    assert not await allowance.is_spent()
    allowance.spend(10)
    assert await allowance.is_spent()
    assert asked == [NOON.replace(hour=0)]


async def test_who_stops_each_reply_pays_for_it_all_the_same(opened: Opening, store: Store, provider: Provider) -> None:
    async def tell(day: date) -> None:
        pass

    provider.answer = lambda asked: Answer([delta(content="Once upon")], hold=asyncio.Event())
    reception = opened(2000, tell)
    for _ in range(50):
        talk = reception.answer("c1", "A story " + "please " * 50)
        async for event in talk:
            if isinstance(event, TextDelta):
                break
        await talk.aclose()
    assert 1 <= len(provider.requests) < 20
