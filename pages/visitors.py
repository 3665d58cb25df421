"""Whom a request is counted for, and how many of one visitor's are served at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.requests import HTTPConnection

from agent.limits import client_address

MOST_OF_ONE = 8
"""Pages of one address that may load their history at once."""


class Crowded(Exception):
    """Too many of one address wait already."""


class Desk:
    """Serves one after another, so that what costs the processor leaves most of it to replies.

    Args:
        of_one: how many of one address may be there at once.
    """

    def __init__(self, of_one: int = MOST_OF_ONE) -> None:
        self._of_one = of_one
        self._there: Counter[str] = Counter()
        self._turn = asyncio.Semaphore()

    @asynccontextmanager
    async def place(self, address: str) -> AsyncGenerator[None]:
        """A place, when it is one's turn.

        Raises:
            Crowded: too many of this address are there.
        """
        if self._there[address] >= self._of_one:
            raise Crowded
        self._there[address] += 1
        try:
            async with self._turn:
                yield
        finally:
            self._there[address] -= 1
            if not self._there[address]:
                del self._there[address]


def address_of(request: HTTPConnection, trusted_proxies: int) -> str:
    """The client's address; see `client_address`."""
    peer = request.client.host if request.client else ""
    return client_address(peer, request.headers.getlist("x-forwarded-for"), trusted_proxies)
