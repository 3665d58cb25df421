"""Many small events as few batches: the first one at once, the others at an even pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeVar

Item = TypeVar("Item")


async def in_batches(source: AsyncGenerator[Item], interval_s: float) -> AsyncGenerator[list[Item]]:
    """Passes on what a source yields, at most one list every `interval_s` seconds.

    A task of its own reads the source, so that nothing waits while there is nothing to send. However
    this generator ends, the source is closed before it is left.

    Args:
        source: read to its end, in its own task.
        interval_s: pause between two lists, in seconds. The last list does not wait for it.

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
    try:
        while items or not reading.done():
            await arrived.wait()
            arrived.clear()
            if items:
                batch = items.copy()
                items.clear()
                yield batch
                # Not a sleep: the end of the source ends the pause.
                await asyncio.wait({reading}, timeout=interval_s)
        await reading
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
