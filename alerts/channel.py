"""What a channel to the owner is, and how it fails."""

from __future__ import annotations

from typing import Protocol


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


class Channel(Protocol):
    """A way to the owner."""

    @property
    def name(self) -> str: ...

    async def send(self, text: str) -> None:
        """Delivers the whole text.

        Raises:
            AlertError: it was not taken, or nobody knows.
        """
        ...
