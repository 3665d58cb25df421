"""The line in which messages wait: fair to every address, forgetful of who left, and hard to end."""

from __future__ import annotations

import asyncio
import logging
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from gradio.data_classes import PredictBodyInternal
from starlette.requests import Request

from agent.limits import FULL_OF_ONE
from agent.loop import Replica
from agent.model import OpenAIModel
from agent.persona import Profile
from agent.reception import Reception
from agent.toolkit import Toolkit
from pages.line import MAX_UNREAD, UNREAD_S, Line
from pages.page import chat_page
from store.store import Store


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def is_open() -> bool:
    return False


@pytest.fixture
async def blocks(model: OpenAIModel, store: Store) -> Any:
    reception = Reception(Replica(model, Toolkit(), "x"), store, max_replies=3, max_message_chars=50)
    profile = Profile("Jo", "", ())
    return chat_page(
        reception,
        profile,
        max_replies=3,
        max_message_chars=50,
        on_feedback=store.set_feedback,
        newest=store.news,
        is_closed=is_open,
    ).blocks


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def line(blocks: Any, clock: Clock) -> Line:
    """A line in which all wait: nobody answers."""
    return Line(blocks, 3, 1, max_of_one=3, clock=clock)


async def joins(line: Line, session: str, address: str = "198.51.100.1") -> str:
    """Gives the event's id, or why there is none."""
    headers = [(b"x-forwarded-for", b"made up, " + address.encode())]
    scope: dict[str, Any] = {"type": "http", "headers": headers, "client": ("10.0.0.1", 5)}
    body = PredictBodyInternal(data=["Hi"], fn_index=0, session_hash=session)
    _, told, _ = await line.push(body, Request(scope), None)
    return str(told)


def order(line: Line) -> list[str]:
    return [event.session_hash for event in line.event_queue_per_concurrency_id["chat"].queue]


async def test_one_address_cannot_fill_the_line(line: Line) -> None:
    events = [await joins(line, f"s{number}") for number in range(3)]
    assert await joins(line, "s3") == FULL_OF_ONE
    assert await joins(line, "other", "198.51.100.2") != FULL_OF_ONE
    await line.remove_from_queue(events[0])
    assert await joins(line, "s3") != FULL_OF_ONE
    await line.clean_events(session_hash="s1")
    assert await joins(line, "s4") != FULL_OF_ONE
    assert await joins(line, "s5") == FULL_OF_ONE
    assert sorted(order(line)) == ["other", "s2", "s3", "s4"]


async def test_those_that_are_answered_count_as_well(line: Line) -> None:
    line.active_jobs = [None, None]
    for number in range(3):
        await joins(line, f"s{number}")
    events, _, _ = line.get_events() or pytest.fail("nobody waits")
    line.active_jobs[0] = events
    assert await joins(line, "s3") == FULL_OF_ONE
    line.active_jobs[0] = None
    assert await joins(line, "s3") != FULL_OF_ONE


async def test_who_comes_new_stands_before_a_flood(line: Line) -> None:
    for number in range(3):
        await joins(line, f"flood{number}")
    await joins(line, "a", "198.51.100.2")
    await joins(line, "b", "198.51.100.3")
    await joins(line, "b2", "198.51.100.3")
    assert order(line) == ["flood0", "a", "b", "flood1", "b2", "flood2"]


async def test_a_flood_that_is_being_answered_gives_way_as_well(line: Line) -> None:
    for number in range(3):
        await joins(line, f"flood{number}")
    events, _, _ = line.get_events() or pytest.fail("nobody waits")
    line.active_jobs = [events]
    await joins(line, "a", "198.51.100.2")
    assert order(line) == ["a", "flood1", "flood2"]
    places = [line.pending_messages_per_session[name].get_nowait().rank for name in ("a",)]
    assert places[-1] <= 2


async def test_sessions_that_left_are_forgotten(line: Line) -> None:
    for number in range(500):
        await joins(line, f"s{number}", f"198.51.{number % 200}.{number % 250}")
        await line.clean_events(session_hash=f"s{number}")
    assert len(line.pending_messages_per_session) <= 1
    assert len(line.pending_event_ids_session) <= 1
    assert len(line.event_ids_to_events) == 0


async def test_answers_that_nobody_fetches_are_kept_for_a_minute_and_a_few_of_each_address(
    line: Line, clock: Clock
) -> None:
    async def ends_unread(session: str, address: str) -> None:
        await line.remove_from_queue(await joins(line, session, address))

    await ends_unread("honest", "198.51.100.2")
    for number in range(100):
        await ends_unread(f"s{number}", "198.51.100.1")
    assert line.knows("honest")
    await ends_unread("neighbour", "198.51.100.3")
    assert [number for number in range(100) if line.knows(f"s{number}")] == [97, 98, 99]
    clock.now = UNREAD_S + 1
    await ends_unread("later", "198.51.100.3")
    assert not line.knows("honest")
    assert line.session_of("f" * 32) == "f" * 32


async def test_who_waits_is_not_forgotten_however_many_others_come(line: Line, clock: Clock) -> None:
    event = await joins(line, "honest", "198.51.100.2")
    clock.now = 10 * UNREAD_S
    for number in range(2100):
        await joins(line, f"s{number}", f"2001:db8:{number:x}::1")
        await line.clean_events(session_hash=f"s{number}")
    assert line.knows("honest")
    assert line.session_of(event) == "honest"


async def test_an_answer_ends_when_nobody_fetches_it(line: Line) -> None:
    event = line.event_ids_to_events[await joins(line, "s")]
    for _ in range(MAX_UNREAD + 5):
        line.send_message(event, SimpleNamespace())
    assert not event.alive
    assert line.pending_messages_per_session["s"].qsize() == MAX_UNREAD


async def test_a_message_to_a_lost_session_does_not_end_the_line(line: Line) -> None:
    event = line.event_ids_to_events[await joins(line, "s")]
    del line.pending_messages_per_session["s"]
    del line.pending_messages_per_session["s"]
    line.send_message(event, SimpleNamespace())
    assert not event.alive
    assert not line.knows("s")


class Heard(logging.Handler):
    """Sets an event when something is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.event = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.event.set()


async def test_a_line_that_failed_goes_on(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard()
    logging.getLogger("pages.line").addHandler(heard)
    failing: Any = None
    line.event_queue_per_concurrency_id["broken"] = failing
    running = asyncio.create_task(line.start_processing())
    await asyncio.wait_for(heard.event.wait(), 5)
    logging.getLogger("pages.line").removeHandler(heard)
    assert "The line of messages failed (AttributeError)" in caplog.text
    del line.event_queue_per_concurrency_id["broken"]
    assert await line.status() == "ok"
    assert not running.done()
    line.close()
    await asyncio.wait_for(running, 5)
    assert "restart" in await line.status()


async def test_the_line_goes_round_the_addresses(blocks: Any) -> None:
    for arrivals in product(range(3), repeat=5):
        line = Line(blocks, 3, 1, max_of_one=99)
        turns = [arrivals[:index].count(who) for index, who in enumerate(arrivals)]
        for number, who in enumerate(arrivals):
            await joins(line, f"s{number}", f"198.51.100.{who}")
        assert order(line) == [f"s{number}" for number in sorted(range(5), key=lambda n: (turns[n], n))]
