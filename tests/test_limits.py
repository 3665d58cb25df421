"""Limits: how often, how many at once, from which address, and how much a day. Each stops at the stated figure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.calls import Metered
from agent.events import Event, TextDelta, TurnFinished
from agent.fitting import Fitting
from agent.knowledge import Passage
from agent.limits import MINUTE_S, Allowance, Ceiling, Gate, Pace, client_address
from agent.loop import Replica
from agent.model import OpenAIModel, open_provider
from agent.offline import NOTICE_RESTING, OfflineModel
from agent.reception import OTHER_TAB, Opened, Reception, Refused
from alerts.outbox import Outbox
from app import tell_of_ceiling
from store.store import Store
from tests.fakes.provider import Answer, Provider, delta, says
from tools.registry import toolkit


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Counts:
    """What is counted along."""

    def __init__(self) -> None:
        self.refusals: list[str] = []
        self.stops: list[str] = []

    def refused(self, kind: str) -> None:
        self.refusals.append(kind)

    def finished(self, stop: str, duration_s: float) -> None:
        self.stops.append(stop)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    store = Store.open(f"sqlite:///{tmp_path / 'a.db'}")
    yield store
    await store.close()


@pytest.fixture
async def model(provider: Provider) -> AsyncGenerator[OpenAIModel]:
    model = open_provider("scripted", None, provider.base_url, max_output_tokens=100, timeout_s=5)
    yield model
    await model.close()


@pytest.fixture
def counts() -> Counts:
    return Counts()


Opening = Callable[..., Reception]


@pytest.fixture
def opened(model: OpenAIModel, store: Store, counts: Counts) -> Opening:
    def build(gate: Gate | None = None, **others: Any) -> Reception:
        replica = others.pop("replica", None) or Replica(model, toolkit(Outbox(store, [])), "You are Ada.")
        settings: dict[str, Any] = {"max_replies": 3, "max_message_chars": 500, **others}
        return Reception(replica, store, gate=gate, watch=counts, **settings)

    return build


async def said(reception: Reception, conversation_id: str, message: str = "Hello", address: str = "") -> str:
    """The answer, or the sentence of the refusal."""
    last = None
    try:
        async for event in reception.answer(conversation_id, message, address):
            last = event
    except Refused as refusal:
        return str(refusal)
    assert isinstance(last, TurnFinished)
    return last.turn.text


async def events_of(events: AsyncGenerator[Opened | Event]) -> list[Opened | Event]:
    return [event async for event in events]


# --- How often ---


async def test_a_conversation_stops_at_its_figure_and_goes_on_after_a_minute(opened: Opening, counts: Counts) -> None:
    clock = Clock()
    reception = opened(Gate(10, clock=clock))
    answers = [await said(reception, "c1", address="203.0.113.5") for _ in range(12)]
    assert answers[:10] == ["Hello."] * 10
    assert set(answers[10:]) == {"You are quicker than I am. Please wait 60 seconds, then write again."}
    assert counts.refusals == ["pace_conversation"] * 2
    clock.now += MINUTE_S - 1
    assert await said(reception, "c1") == "You are quicker than I am. Please wait 1 seconds, then write again."
    clock.now += 1
    assert await said(reception, "c1") == "Hello."


async def test_200_messages_of_one_client_under_changing_sessions_and_headers_get_30_answers(
    opened: Opening, provider: Provider, counts: Counts
) -> None:
    reception = opened(Gate(10))
    answers = [
        await said(reception, f"session {n}", address=client_address("198.51.100.7", [f"10.0.{n}.1, 8.8.8.{n}"], 0))
        for n in range(200)
    ]
    assert answers.count("Hello.") == 30
    assert all("Many messages come from your network" in answer for answer in answers if answer != "Hello.")
    assert len(provider.requests) == 30
    assert counts.refusals == ["pace_address"] * 170
    assert await said(reception, "somebody else", address="198.51.100.8") == "Hello."


async def test_behind_a_proxy_each_visitor_has_their_own_figure(opened: Opening) -> None:
    reception = opened(Gate(1))
    for visitor in range(5):
        address = client_address("10.0.0.1", [f"1.2.3.4, 203.0.113.{visitor}"], 1)
        answers = [await said(reception, f"{visitor} {n}", address=address) for n in range(4)]
        assert [answer == "Hello." for answer in answers] == [True, True, True, False]


async def test_what_is_refused_for_another_reason_is_not_counted(opened: Opening) -> None:
    reception = opened(Gate(1))
    for message in ("", "x" * 501):
        with pytest.raises(Refused):
            await events_of(reception.answer("c1", message))
    assert await said(reception, "c1") == "Hello."


async def test_a_retry_counts_as_a_message(opened: Opening) -> None:
    reception = opened(Gate(2))
    await said(reception, "c1")
    assert isinstance((await events_of(reception.retry("c1")))[0], Opened)
    with pytest.raises(Refused) as refused:
        await events_of(reception.retry("c1"))
    assert refused.value.kind == "pace_conversation"


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 40)), max_size=60))
def test_no_minute_holds_more_than_the_figure(steps: list[tuple[int, float]]) -> None:
    clock = Clock()
    pace = Pace(3, clock)
    let_in: dict[str, list[float]] = {}
    for key, pause in steps:
        clock.now += pause
        times = let_in.setdefault(str(key), [])
        if not pace.wait_s(str(key)):
            pace.count(str(key))
            times.append(clock.now)
        else:
            assert len([t for t in times if t > clock.now - MINUTE_S]) == 3
        assert len([t for t in times if t > clock.now - MINUTE_S]) <= 3


def test_keys_are_forgotten_after_a_minute() -> None:
    clock = Clock()
    pace = Pace(3, clock)
    for n in range(1000):
        pace.count(f"session {n}")
        clock.now += 0.125
    assert len(pace) == 480
    clock.now += MINUTE_S
    pace.count("last")
    assert len(pace) == 1


# --- How many at once ---


async def test_the_line_is_bounded_for_all_and_for_one_address(
    opened: Opening, provider: Provider, counts: Counts
) -> None:
    go = asyncio.Event()
    provider.answer = lambda asked: Answer([delta(content="Yes."), delta(finish="stop")], hold=go)
    reception = opened(Gate(1000, max_waiting=4, max_waiting_of_one=2), max_replies=1)
    first = reception.answer("first", "Hello", "a")
    await anext(first)
    waiting = [asyncio.create_task(said(reception, f"c{n}", address="a")) for n in range(2)]
    await asyncio.sleep(0)
    assert "from your network are waiting" in await said(reception, "c3", address="a")
    waiting += [asyncio.create_task(said(reception, f"d{n}", address="b")) for n in range(2)]
    await asyncio.sleep(0)
    assert reception.waiting == 4
    assert "Many visitors are waiting" in await said(reception, "e", address="c")
    assert counts.refusals == ["line_full_address", "line_full"]
    waiting[0].cancel()
    await asyncio.gather(waiting[0], return_exceptions=True)
    assert reception.waiting == 3
    go.set()
    await events_of(first)
    assert await asyncio.gather(*waiting[1:]) == ["Yes."] * 3
    assert (reception.waiting, reception.running) == (0, 0)


async def test_who_is_being_answered_does_not_wait(opened: Opening, provider: Provider) -> None:
    provider.answer = lambda asked: Answer([delta(content="Hm")], hold=asyncio.Event())
    reception = opened(Gate(1000, max_waiting=1))
    talks = [reception.answer(f"c{n}", "Hi", "a") for n in range(3)]
    for talk in talks:
        assert isinstance(await anext(talk), Opened)
    assert (reception.running, reception.waiting) == (3, 0)
    for talk in talks:
        await talk.aclose()
    assert reception.running == 0


async def test_a_third_tab_costs_nothing_of_the_minute(opened: Opening, counts: Counts) -> None:
    reception = opened(Gate(3))
    first = reception.answer("c1", "Hello")
    await anext(first)
    second = asyncio.create_task(said(reception, "c1"))
    await asyncio.sleep(0)
    assert await said(reception, "c1") == OTHER_TAB
    await events_of(first)
    assert await second == "Hello."
    assert await said(reception, "c1") == "Hello."
    assert counts.refusals == ["other_tab"]


# --- From which address ---


@pytest.mark.parametrize(
    ("peer", "forwarded", "proxies", "client"),
    [
        ("203.0.113.5", [], 0, "203.0.113.5"),
        ("203.0.113.5", ["9.9.9.9"], 0, "203.0.113.5"),
        ("10.0.0.1", ["9.9.9.9, 203.0.113.5"], 1, "203.0.113.5"),
        ("10.0.0.1", ["9.9.9.9", "203.0.113.5"], 1, "203.0.113.5"),
        ("10.0.0.1", ["9.9.9.9, 203.0.113.5, 10.0.0.2"], 2, "203.0.113.5"),
        ("10.0.0.1", ["203.0.113.5"], 2, "10.0.0.1"),
        ("10.0.0.1", [], 1, "10.0.0.1"),
        ("10.0.0.1", ["9.9.9.9, unknown"], 1, "10.0.0.1"),
        ("10.0.0.1", ["9.9.9.9,"], 1, "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.5:4711"], 1, "203.0.113.5"),
        ("10.0.0.1", ["[2001:db8:1:2:3::4]:4711"], 1, "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", [], 0, "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::9", [], 0, "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.5", [], 0, "203.0.113.5"),
        ("fe80::1%eth0", [], 0, "fe80::/64"),
        ("testclient", [], 0, "testclient"),
        ("", ["203.0.113.5"], 0, ""),
    ],
)
def test_the_client_is_who_our_own_proxies_saw(peer: str, forwarded: list[str], proxies: int, client: str) -> None:
    assert client_address(peer, forwarded, proxies) == client


@given(st.lists(st.text(), max_size=4), st.integers(0, 3))
def test_what_a_client_puts_before_the_proxies_entries_changes_nothing(made_up: list[str], proxies: int) -> None:
    ours = ["203.0.113.5", "10.0.0.3", "10.0.0.2"][:proxies]
    assert client_address("10.0.0.1", [*made_up, *ours], proxies) == (ours or ["10.0.0.1"])[0]


# --- How much a day ---

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Notes:
    """Finds the same passage for one question."""

    def answering(self, question: str) -> tuple[Passage, ...]:
        return (Passage("faq.md", "Engine", "It weaves algebra."),) if "Engine" in question else ()


def under_a_ceiling(
    opened: Opening,
    model: OpenAIModel,
    store: Store,
    limit: int,
    on_spent: Callable[[date], Awaitable[object]],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Reception:
    allowance = Allowance(limit, store.tokens_since, now)
    metered = Metered(model, "127.0.0.1", None, lambda call: allowance.spend(call.tokens))
    replica = Replica(metered, toolkit(Outbox(store, [])), "You are Ada.")
    fitting = Fitting(replica, 1500, 100, can_write=True)
    resting = OfflineModel("Ada", "", Notes(), NOTICE_RESTING)
    return opened(replica=replica, ceiling=Ceiling(allowance, resting, on_spent), fitting=fitting)


async def alerts_of(store: Store) -> list[str]:
    return [alert.text for alert in await store.claim_due_alerts(100, datetime.now(UTC) + timedelta(hours=1))]


async def test_at_the_days_ceiling_no_provider_is_asked_and_addresses_are_still_taken(
    opened: Opening, model: OpenAIModel, store: Store, provider: Provider, counts: Counts
) -> None:
    # A scripted answer takes 15 tokens: four of them reach 60.
    reception = under_a_ceiling(opened, model, store, 60, tell_of_ceiling(store))
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
    opened: Opening, model: OpenAIModel, store: Store, provider: Provider
) -> None:
    before = under_a_ceiling(opened, model, store, 15, tell_of_ceiling(store))
    await said(before, "c1")
    await said(before, "c1", "What does the Engine do?")
    after = under_a_ceiling(opened, model, store, 15, tell_of_ceiling(store))
    assert "It weaves algebra." in await said(after, "c2", "What does the Engine do?")
    assert len(provider.requests) == 1
    assert len(await alerts_of(store)) == 1


async def test_a_new_day_begins_at_midnight_utc(
    opened: Opening, model: OpenAIModel, store: Store, provider: Provider
) -> None:
    days: list[date] = []

    async def tell(day: date) -> None:
        days.append(day)

    now = datetime.now(UTC)
    reception = under_a_ceiling(opened, model, store, 15, tell, lambda: now)
    for _ in range(3):
        await said(reception, "c1")
    now += timedelta(days=1)
    assert await said(reception, "c2") == "Hello."
    await said(reception, "c2")
    assert len(provider.requests) == 2
    assert days == [now.date() - timedelta(days=1), now.date()]


async def test_at_the_ceiling_no_summary_is_paid_for(
    opened: Opening, model: OpenAIModel, store: Store, provider: Provider
) -> None:
    reception = under_a_ceiling(opened, model, store, 15, tell_of_ceiling(store))
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


async def test_who_stops_each_reply_pays_for_it_all_the_same(
    opened: Opening, model: OpenAIModel, store: Store, provider: Provider
) -> None:
    async def tell(day: date) -> None:
        pass

    provider.answer = lambda asked: Answer([delta(content="Once upon")], hold=asyncio.Event())
    reception = under_a_ceiling(opened, model, store, 2000, tell)
    for _ in range(50):
        talk = reception.answer("c1", "A story " + "please " * 50)
        async for event in talk:
            if isinstance(event, TextDelta):
                break
        await talk.aclose()
    assert 1 <= len(provider.requests) < 20


# --- The same again ---


async def test_the_same_contact_again_is_one_alert(opened: Opening, store: Store, provider: Provider) -> None:
    reception = opened()
    arguments = json.dumps({"email": "jane@example.org", "notes": "A job"})
    call = {"index": 0, "id": "c0", "type": "function", "function": {"name": "gather_user_details"}}
    call["function"] = {"name": "gather_user_details", "arguments": arguments}
    for _ in range(5):
        provider.script += [Answer([delta(tool_calls=[call]), delta(finish="tool_calls")]), says("Passed on.")]
        assert await said(reception, "c1", "I am jane@example.org") == "Passed on."
    assert len(await store.contacts()) == 1
    assert len(await alerts_of(store)) == 1
