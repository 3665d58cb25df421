"""What the tests of alerts share: a contact, a running worker, and what a failure must not tell."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta

import pytest

from alerts.channel import AlertError, Channel
from alerts.outbox import Outbox
from store.records import Contact, Question
from store.store import Store
from tests.fakes.telegram import Status

JANE = Contact("talk", "jane@example.org", "jane@example.org", "to talk about a job in Turin", "Jane Doe")
DOWN = Status(500, {"ok": False, "error_code": 500, "description": "Internal Server Error"})
PAGES = (Status(404, "<html>Nothing here</html>"), Status(302, "", {"Location": "https://example.org/login"}))
"""What something else than Telegram answers, for a while."""
QUICK = (1.0, 0.3)
"""Time-outs for faults that have to run into one."""
LATER = timedelta(days=1)


@asynccontextmanager
async def running(outbox: Outbox) -> AsyncGenerator[Outbox]:
    """With its worker; at the end what is in flight has been marked."""
    worker = asyncio.create_task(outbox.run())
    await asyncio.sleep(0)  # it has begun
    try:
        yield outbox
    finally:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker


class Clock:
    """The real one, put forward: alerts are stored by the real one, and must not come from the future."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


async def deliver(outbox: Outbox) -> float:
    """All that may go out now. Returns how long nothing is to be done, in seconds."""
    for _ in range(1000):
        if (wait_s := await outbox.deliver_next()) > 0:
            return wait_s
    raise AssertionError("there is no end to what it delivers")


def at_once(_attempts: int) -> float:
    return 0.01


def no_gap(_chat_id: str) -> float:
    """For tests that have no time for Telegram's pace."""
    return 0


def never(_attempts: int) -> float:
    return 1_000_000


def ask(number: int) -> Question:
    return Question("talk", f"What is {number}?")


@contextmanager
def logged(words: str) -> Generator[asyncio.Event]:
    """Set when the outbox has logged these words."""
    seen = asyncio.Event()

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if words in record.getMessage():
                seen.set()

    watch, logger = Watch(), logging.getLogger("alerts")
    logger.addHandler(watch)
    try:
        yield seen
    finally:
        logger.removeHandler(watch)


async def within(seen: asyncio.Event) -> None:
    async with asyncio.timeout(10):
        await seen.wait()


async def failure(channel: Channel, text: str = "Hello") -> AlertError:
    with pytest.raises(AlertError) as caught:
        await channel.send(text)
    return caught.value


def assert_hidden(secret: str, error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the error, nor anything that hangs on it, nor the log holds the secret."""
    assert secret not in "".join(traceback.format_exception(error)) + repr(error) + caplog.text
    for inner in (error.__context__, error.__cause__):
        if inner is not None:
            assert_hidden(secret, inner, caplog)


def text_of(reference: str) -> str:
    return f"An alert, {reference}"


async def due(store: Store) -> list[str]:
    """Texts of all alerts that wait, whenever they are due."""
    return [alert.text for alert in await store.claim_due_alerts(100, datetime.now(UTC) + LATER, "somebody")]
