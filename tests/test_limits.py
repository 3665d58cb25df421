"""Limits: how often, how many at once, from which address. Each stops at the stated figure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.events import Event, TurnFinished
from agent.limits import MINUTE_S, Gate, Pace, client_address
from agent.loop import Replica
from agent.model import OpenAIModel
from agent.reception import OTHER_TAB, Opened, Reception, Refused
from alerts.outbox import Outbox
from store.store import Store
from tests.fakes.counts import Counts
from tests.fakes.provider import Answer, Provider, delta, says
from tools.registry import toolkit


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


Opening = Callable[..., Reception]


@pytest.fixture
def opened(model: OpenAIModel, store: Store, counts: Counts) -> Opening:
    def build(gate: Gate | None = None, **others: Any) -> Reception:
        replica = Replica(model, toolkit(Outbox(store, [])), "You are Ada.")
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
    later = datetime.now(UTC) + timedelta(hours=1)
    assert len(await store.claim_due_alerts(100, later)) == 1
