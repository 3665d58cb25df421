"""What a channel to the owner is, and how it fails."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from store.records import Sent

P = TypeVar("P")
T = TypeVar("T")

HALVES = 100
"""So many messages of which only a part was taken are remembered."""


class AlertError(Exception):
    """A channel did not take an alert.

    Args:
        reason: plain words for the owner, with what to do about it. It never holds a token or an address.
        retry_after_s: how long the channel asks to be left alone, in seconds.
        permanent: waiting does not mend it; the owner has to.
    """

    def __init__(self, reason: str, retry_after_s: float | None = None, permanent: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.permanent = permanent
        self.partly = False
        """Pieces of the message were taken, and are not sent again with the same text."""


class Channel(Protocol):
    """A way to the owner."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """Another one when its settings are others."""
        ...

    async def send(self, text: str, reply_to: int | None = None) -> Sent:
        """Delivers the whole text. One call at a time.

        Args:
            text: of any length.
            reply_to: the message of the owner that it answers.

        Raises:
            AlertError: it was not taken, or nobody knows.
        """
        ...

    def close(self) -> None: ...


def fingerprint_of(*settings: str) -> str:
    return hashlib.sha256("\0".join(settings).encode("utf-8", "surrogatepass")).hexdigest()


class Halves(Generic[T]):
    """What was taken of messages in pieces that broke off, so that the next try goes on from there.

    It is forgotten with the process: after a restart the whole message is sent again.
    """

    def __init__(self) -> None:
        self._taken: dict[Hashable, list[T]] = {}

    async def send(self, key: Hashable, pieces: Sequence[P], send: Callable[[P], Awaitable[T]]) -> list[T]:
        """Sends the pieces that were not taken yet. Returns what `send` gave for each of them, old and new."""
        taken = self._taken.pop(key, [])
        try:
            for piece in pieces[len(taken) :]:
                taken.append(await send(piece))
        except BaseException as error:
            if taken:
                self._taken[key] = taken
                if isinstance(error, AlertError):
                    error.partly = True
            if len(self._taken) > HALVES:
                del self._taken[next(iter(self._taken))]
            raise
        return taken
