"""The ways to the owner's phone: which of them may be tried now, and what is wrong with the others."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from alerts.channel import AlertError, Channel
from alerts.wire import as_object
from store.store import Store

log = logging.getLogger(__name__)

MAX_PAUSE_S = 3600.0
"""The longest pause that a channel gets when it asks for one, in seconds."""
BLOCK = timedelta(days=1)
"""How long a channel that the owner has to mend is left alone, while its settings stay as they are."""


@dataclass(frozen=True, slots=True)
class Block:
    """Why and until when a channel is left alone, as the store keeps it."""

    fingerprint: str
    """Of the settings that do not work."""
    until: str
    reason: str

    @property
    def end(self) -> datetime:
        return datetime.fromisoformat(self.until)

    @property
    def words(self) -> str:
        return f"{self.reason}. It is not tried again before its settings change, or {self.end:%Y-%m-%d %H:%M} UTC"


class Ways:
    """Owns what is known of the channels. What only the owner can mend is kept in the store, over restarts."""

    def __init__(self, store: Store, channels: Sequence[Channel], now: Callable[[], datetime]) -> None:
        self.channels = tuple(channels)
        self._store = store
        self._now = now
        self._problems: dict[str, str] = {}
        """Why a channel did not work the last time."""
        self._pauses: dict[str, float] = {}
        """When a channel that asked for a pause may be tried again, on the monotonic clock."""
        self._blocks: dict[str, Block] = {}

    async def open(self) -> list[Channel]:
        """The channels that may be tried now, in their order."""
        for channel in self.channels:
            block = await self._block(channel)
            if block is None:
                self._blocks.pop(channel.name, None)
            elif self._blocks.get(channel.name) != block:
                self._blocks[channel.name] = block
                log.warning("%s. Alerts are kept.", block.words)
        return [one for one in self.channels if one.name not in self._blocks and self._pause_s(one) <= 0]

    def closed_s(self) -> float:
        """How long all are closed, in seconds."""
        return min(
            (self._block_s(one) if one.name in self._blocks else self._pause_s(one) for one in self.channels), default=0
        )

    async def failed(self, channel: Channel, failure: AlertError) -> None:
        if failure.permanent:
            block = Block(channel.fingerprint, (self._now() + BLOCK).astimezone(UTC).isoformat(), failure.reason)
            await self._store.set_state(_key(channel.name), json.dumps(asdict(block)))
            self._problems.pop(channel.name, None)
            return
        self._problems[channel.name] = failure.reason
        if failure.retry_after_s is not None:
            self._pauses[channel.name] = time.monotonic() + min(MAX_PAUSE_S, failure.retry_after_s)

    def worked(self, channel: Channel) -> bool:
        """Forgets what was wrong. True: something was."""
        return self._problems.pop(channel.name, None) is not None

    async def unblock(self, name: str) -> bool:
        """The owner has mended this channel; a pause that it asked for stays. False: there was nothing to mend."""
        if await self._store.state(_key(name)) is None:
            return False
        await self._store.set_state(_key(name), None)
        return True

    def problems(self) -> list[str]:
        """What is wrong, in plain words."""
        return [block.words for block in self._blocks.values()] + list(self._problems.values())

    def _pause_s(self, channel: Channel) -> float:
        return self._pauses.get(channel.name, 0) - time.monotonic()

    def _block_s(self, channel: Channel) -> float:
        return (self._blocks[channel.name].end - self._now()).total_seconds()

    async def _block(self, channel: Channel) -> Block | None:
        block = _block_from(await self._store.state(_key(channel.name)))
        if block is None or block.fingerprint != channel.fingerprint or block.end <= self._now():
            return None
        return block


def _key(name: str) -> str:
    return f"blocked:{name}"


def _block_from(text: str | None) -> Block | None:
    try:
        block = Block(**as_object(json.loads(text or "{}")))
        return block if block.end.tzinfo else None
    except (ValueError, TypeError):
        return None
