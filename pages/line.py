"""Gradio's queue, made fair and lasting: nobody fills it for others, nobody ends it, and it forgets who has left."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import gradio as gr
from gradio.queueing import Event, Queue

from agent.limits import FULL_OF_ONE, MAX_WAITING, MAX_WAITING_OF_ONE
from pages.visitors import address_of

log = logging.getLogger(__name__)

UNREAD_S = 60.0
"""How long an answer that nobody fetches is kept, in seconds."""

MAX_UNREAD = 1000
"""Messages of one session that nobody fetches: at the next one, its browser counts as gone."""

MAX_SESSIONS = 1000
"""Sessions whose answers nobody fetches that are remembered, of all addresses."""

RESTART_S = 0.2
"""Pause before a queue that failed goes on, in seconds."""


@dataclass(slots=True)
class _Session:
    """A browser or caller that has asked for something."""

    address: str
    seen: float
    """When it last asked or was told something."""


class _Forgiving(dict[str, Any]):
    """A table of sessions. Gradio uses its own ones without looking, and fails where two streams of one session end."""

    def __init__(self, empty: Callable[[], Any]) -> None:
        super().__init__()
        self._empty = empty

    def __delitem__(self, name: str) -> None:
        self.pop(name, None)

    def __missing__(self, name: str) -> Any:
        return self._empty()


class Line(Queue):
    """Gradio's queue, in place of the one that `blocks.queue()` makes.

    Args:
        blocks: whose queue it is.
        max_replies: events of one kind at once, where the event does not say.
        trusted_proxies: how many `X-Forwarded-For` entries from the right to believe.
        max_waiting: events that may wait at once.
        max_of_one: events of one client address that may wait or be answered at once.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        blocks: gr.Blocks,
        max_replies: int,
        trusted_proxies: int,
        *,
        max_waiting: int = MAX_WAITING,
        max_of_one: int = MAX_WAITING_OF_ONE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            live_updates=True,
            concurrency_count=blocks.max_threads,
            update_intervals=1,
            max_size=max_waiting,
            blocks=blocks,
            default_concurrency_limit=max_replies,
        )
        self.pending_messages_per_session: Any = _Forgiving(asyncio.Queue)
        self.pending_event_ids_session: Any = _Forgiving(set)
        self.ANALYTICS_MAX_EVENTS = 1
        self._trusted_proxies = trusted_proxies
        self._max_of_one = max_of_one
        self._clock = clock
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._addresses: WeakKeyDictionary[Event, str] = WeakKeyDictionary()
        self._ended = False

    def knows(self, session: str) -> bool:
        """Something waits for this session, or will."""
        return session in self.pending_messages_per_session

    def session_of(self, event_id: str) -> str:
        """Who asked for an event; the event's own id for those that gave no name."""
        if event := self.event_ids_to_events.get(event_id):
            return event.session_hash
        return next((name for name, ids in self.pending_event_ids_session.items() if event_id in ids), event_id)

    async def status(self) -> str:
        """`ok`, or what is wrong in plain words."""
        return "messages are not answered, since their line has stopped; restart the app" if self._ended else "ok"

    async def push(self, body: Any, request: Any, username: str | None) -> Any:
        """Takes an event in, unless too many of its address are there. Its place is before those whose address has
        more in the line: so a flood waits behind everybody else."""
        address = address_of(request, self._trusted_proxies)
        theirs = Counter(self._address(event) for event in self._events())
        if theirs[address] >= self._max_of_one:
            return False, FULL_OF_ONE, "queue_full"
        result = await super().push(body, request, username)
        if result[0]:
            event = self.event_ids_to_events[str(result[1])]
            self._sessions[event.session_hash] = _Session(address, self._clock())
            self._sessions.move_to_end(event.session_hash)
            self._move_up(event)
            self._forget()
        return result

    def send_message(self, event: Event, event_message: Any) -> None:
        """Keeps a message for its session. For one that is not there any more, or fetches nothing, the answer ends:
        Gradio's own queue would fail at it, for everybody, or fill the memory."""
        if session := self._sessions.get(event.session_hash):
            session.seen = self._clock()
        mailbox = self.pending_messages_per_session.get(event.session_hash)
        if mailbox is None or mailbox.qsize() >= MAX_UNREAD:
            event.alive = False
        super().send_message(event, event_message)

    def compute_analytics_summary(self, records: Any) -> dict[str, Any]:
        """Nothing: Gradio would work out percentiles after each event, for a dashboard that is shut."""
        return {}

    async def start_processing(self) -> None:
        """Answers events until the queue is closed, and goes on after a fault: who is being answered then loses the
        answer, but whoever comes later has not to wait for a new start of the app."""
        try:
            while True:
                try:
                    await super().start_processing()
                    return
                except Exception as error:
                    log.error("The line of messages failed (%s) and goes on", type(error).__name__, exc_info=error)
                    self.stopped = False
                await asyncio.sleep(RESTART_S)
        finally:
            self._ended = True

    def _events(self) -> Iterator[Event]:
        """Those that wait, and those that are being answered."""
        for waiting in self.event_queue_per_concurrency_id.values():
            yield from waiting.queue
        for job in self.active_jobs:
            yield from job or ()

    def _address(self, event: Event) -> str:
        if (address := self._addresses.get(event)) is None:
            address = self._addresses[event] = address_of(event.request, self._trusted_proxies)
        return address

    def _move_up(self, new: Event) -> None:
        waiting = self.event_queue_per_concurrency_id[new.concurrency_id].queue
        running = (event for job in self.active_jobs for event in job or ())
        before = Counter(self._address(event) for event in running if event.concurrency_id == new.concurrency_id)
        rounds: list[int] = []
        for event in waiting:
            rounds.append(before[self._address(event)])
            before[self._address(event)] += 1
        place = next((index for index, round_ in enumerate(rounds) if round_ > rounds[-1]), len(waiting) - 1)
        if place < len(waiting) - 1:
            waiting.insert(place, waiting.pop())
            self.broadcast_estimations(new.concurrency_id, place)

    def _forget(self) -> None:
        """Lets go of sessions that have been told everything, and of those that do not listen: one address keeps no
        more of these than it may have in the line."""
        now = self._clock()
        answered_for = {event.session_hash for event in self._events()}
        kept: Counter[str] = Counter()
        total = 0
        for name in reversed(list(self._sessions)):
            session = self._sessions[name]
            if name in answered_for:
                continue
            unread = bool(self.pending_event_ids_session.get(name)) and session.seen + UNREAD_S > now
            if unread and kept[session.address] < self._max_of_one and total < MAX_SESSIONS:
                kept[session.address] += 1
                total += 1
                continue
            del self._sessions[name]
            self.pending_messages_per_session.pop(name, None)
            self.pending_event_ids_session.pop(name, None)
