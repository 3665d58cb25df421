"""Who may write now: how often, how many at once, from which address, and how much a day costs at most."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime

from agent.model import ChatModel

MINUTE_S = 60.0
ADDRESS_SHARE = 3
"""One address may write so many times as often as one conversation: a family or a firm has one address."""

MAX_WAITING = 100
"""Messages that may wait for a reply at once, for all."""
MAX_WAITING_OF_ONE = 25
"""From one address, so that nobody fills the line for everybody else."""

IPV6_SITE = 64
"""Bits of an IPv6 address that tell who it is: a site gets all the addresses below them."""

REREAD_S = 60.0
"""How old may be what is known of other machines' tokens, in seconds."""


class Pace:
    """How often each key was seen in the last minute. Keys not seen since are forgotten, so that memory stays small.

    Args:
        most: times a minute.
        clock: seconds that only grow.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()
        """The key that was seen last stands last."""

    def wait_s(self, key: str) -> float:
        """Seconds until `key` may be seen once more; 0: now."""
        seen = self._seen.get(key)
        if seen is None or len(seen) < self._most:
            return 0
        return max(0.0, seen[-self._most] + MINUTE_S - self._clock())

    def count(self, key: str) -> None:
        """`key` is seen now."""
        now = self._clock()
        self._forget(now)
        seen = self._seen.setdefault(key, deque())
        while seen and seen[0] + MINUTE_S <= now:
            seen.popleft()
        seen.append(now)
        self._seen.move_to_end(key)

    def _forget(self, now: float) -> None:
        while self._seen:
            key, seen = next(iter(self._seen.items()))
            if seen[-1] + MINUTE_S > now:
                return
            del self._seen[key]

    def __len__(self) -> int:
        return len(self._seen)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why somebody may not write now."""

    kind: str
    """Names the limit in the metrics."""
    sentence: str
    """What the visitor reads."""


class Gate:
    """Lets messages in: as often as a minute allows, and as many at once as the line holds.

    Args:
        messages_per_minute: of one conversation; three times as many of one client address.
        max_waiting: messages that wait at once.
        max_waiting_of_one: of these, from one address.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        messages_per_minute: int,
        *,
        max_waiting: int = MAX_WAITING,
        max_waiting_of_one: int = MAX_WAITING_OF_ONE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._of_conversation = Pace(messages_per_minute, clock)
        self._of_address = Pace(messages_per_minute * ADDRESS_SHARE, clock)
        self._max_waiting = max_waiting
        self._max_waiting_of_one = max_waiting_of_one
        self._waiting: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """Messages that wait for their turn."""
        return self._waiting.total()

    def admit(self, conversation_id: str, address: str) -> Refusal | None:
        """Why a message is not let in now; None: it is, and counts."""
        if self.waiting >= self._max_waiting:
            return Refusal("line_full", FULL)
        if address and self._waiting[address] >= self._max_waiting_of_one:
            return Refusal("line_full_address", FULL_OF_ONE)
        if wait_s := self._of_conversation.wait_s(conversation_id):
            return Refusal("pace_conversation", TOO_FAST.format(math.ceil(wait_s)))
        if address and (wait_s := self._of_address.wait_s(address)):
            return Refusal("pace_address", TOO_MANY.format(math.ceil(wait_s)))
        self._of_conversation.count(conversation_id)
        if address:
            self._of_address.count(address)
        return None

    @contextmanager
    def in_line(self, address: str) -> Generator[None]:
        """A place in the line."""
        self._waiting[address] += 1
        try:
            yield
        finally:
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]


class Allowance:
    """The tokens of a UTC day, for everybody together. What earlier runs and other machines used comes from the store.

    Args:
        limit: tokens a day; 0: no ceiling.
        spent_since: tokens in the store since a moment.
        now: the time, with its zone.
    """

    def __init__(
        self,
        limit: int,
        spent_since: Callable[[datetime], Awaitable[int]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._limit = limit
        self._spent_since = spent_since
        self._now = now
        self._day = date.min
        self._spent = 0
        self._read_at = -math.inf
        self._told = date.min

    def spend(self, tokens: int) -> None:
        self._turn_the_page()
        self._spent += max(0, tokens)

    async def is_spent(self) -> bool:
        """The day's tokens are used up. Replies under way when that happens are finished."""
        if not self._limit:
            return False
        self._turn_the_page()
        if time.monotonic() - self._read_at > REREAD_S:
            day = self._day
            stored = await self._spent_since(datetime(day.year, day.month, day.day, tzinfo=UTC))
            self._read_at = time.monotonic()
            if day == self._day:
                self._spent = max(self._spent, stored)
        return self._spent >= self._limit

    def once_a_day(self) -> date | None:
        """Today, when it is asked for the first time today."""
        self._turn_the_page()
        if self._told == self._day:
            return None
        self._told = self._day
        return self._day

    def _turn_the_page(self) -> None:
        if (today := self._now().astimezone(UTC).date()) != self._day:
            self._day, self._spent, self._read_at = today, 0, -math.inf


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What happens when the day's tokens are used up."""

    allowance: Allowance
    resting: ChatModel
    """Answers for the rest of the day, and costs nothing."""
    on_spent: Callable[[date], Awaitable[object]]
    """Told once a day."""


def client_address(peer: str, forwarded_for: Iterable[str], trusted_proxies: int) -> str:
    """Who a request is counted for.

    Args:
        peer: the address at the other end of the connection.
        forwarded_for: the values of its `X-Forwarded-For` headers, in order.
        trusted_proxies: how many of the last entries our own proxies wrote. The one that stands first among these
            is the client; what stands before it, the client made up. Where it is missing or no address, the peer
            counts.

    Returns:
        An IPv4 address, the /64 network of an IPv6 address, or whatever the peer is called.
    """
    entries = [entry.strip() for value in forwarded_for for entry in value.split(",")]
    if 0 < trusted_proxies <= len(entries) and (client := _site_of(entries[-trusted_proxies])):
        return client
    return _site_of(peer) or peer


def _site_of(written: str) -> str:
    """The address without its port, or the network that it stands for; empty when it is none."""
    host = written.strip()
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.ip_network((address, IPV6_SITE), strict=False))
    return str(address)


FULL = "Many visitors are waiting for me right now. Please try again in a minute."
FULL_OF_ONE = "Many messages from your network are waiting for me already. Please try again in a minute."
TOO_FAST = "You are quicker than I am. Please wait {} seconds, then write again."
TOO_MANY = "Many messages come from your network at once. Please wait {} seconds, then write again."
