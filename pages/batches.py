"""Many small events as few batches: the first two at once, the others at an even pace, an empty one in a silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

Item = TypeVar("Item")


async def in_batches(
    source: AsyncGenerator[Item], interval_s: float, silence_s: float | None = None
) -> AsyncGenerator[list[Item]]:
    """Passes on what a source yields, at most one list every `interval_s` seconds.

    There is no pause before the second list: the first one of a reply only says that the message is taken, and
    the first words need not wait for that.

    A task of its own reads the source, so that nothing waits while there is nothing to send. However
    this generator ends, the source is closed before it is left.

    Args:
        source: read to its end, in its own task.
        interval_s: pause between two lists, in seconds. The last list does not wait for it.
        silence_s: after so many seconds without anything comes an empty list; None: none ever comes.

    Raises:
        Whatever the source raises, after all that it yielded before was passed on.
    """
    items: list[Item] = []
    arrived = asyncio.Event()

    async def read() -> None:
        try:
            async with aclosing(source):
                async for item in source:
                    items.append(item)
                    arrived.set()
        finally:
            arrived.set()

    reading = asyncio.create_task(read())
    pause_s = 0.0
    try:
        while items or not reading.done():
            try:
                await asyncio.wait_for(arrived.wait(), silence_s)
            except TimeoutError:
                yield []
                continue
            arrived.clear()
            if items:
                batch = items.copy()
                items.clear()
                yield batch
                # Not a sleep: the end of the source ends the pause.
                await asyncio.wait({reading}, timeout=pause_s)
                pause_s = interval_s
        await reading
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
