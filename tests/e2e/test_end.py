"""SIGTERM while a message is under way to a slow Telegram: the replica ends in order, and in time."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import httpx
import pytest

from alerts.outbox import PACE
from pages.serving import LAST_WORDS_S
from store.records import Question
from store.store import Store
from tests.e2e.programs import eventually
from tests.e2e.replica import Site, provided_by, site
from tests.fakes.telegram import FakeTelegram, Silence

PATIENCE_S = 4.0
"""Of a busy machine, until the interpreter has ended, in seconds."""


async def sends(api: FakeTelegram) -> None:
    def sending() -> bool:
        return any(line.endswith("/sendMessage") for line in api.requests)

    await asyncio.to_thread(api.wait_until, sending, "a message under way")


async def is_ending(site: Site) -> None:
    """It takes no more visitors."""
    async with httpx.AsyncClient(timeout=5) as client:

        async def look() -> bool | None:
            try:
                await client.get(f"{site.url}/healthz")
            except httpx.TransportError:
                return True
            return None

        await eventually(look, 5, lambda: "it still takes visitors")


@pytest.mark.parametrize("answers", [True, False])
async def test_a_send_under_way_is_finished_or_left_in_time(tmp_path: Path, answers: bool) -> None:
    folder, silence = tmp_path / "replica", Silence()
    database = f"sqlite:///{folder}/data/carboncopy.db"
    store = Store.open(database)
    await store.add_question(Question("talk", "Why?"), lambda reference: f"I could not answer: Why?\n{reference}")
    await store.close()
    with FakeTelegram() as api:
        api.fail_always(silence, "sendMessage")
        settings = {"TELEGRAM_API_URL": api.url, "TELEGRAM_BOT_TOKEN": api.token, "TELEGRAM_CHAT_ID": api.chat_id}
        async with site(folder, **settings, **provided_by(f"{api.url}/v1")) as running:
            await sends(api)
            began = time.monotonic()
            ending = asyncio.create_task(running.program.stop())
            if answers:
                await is_ending(running)
                silence.over.set()
            assert await ending == 0
            assert time.monotonic() - began < PACE.end_s + LAST_WORDS_S + PATIENCE_S
            left = "is not known to have arrived" in running.log
    store = Store.open(database)
    counts = await store.alert_counts()
    await store.close()
    assert (counts["sent"], counts["pending"], left) == ((1, 0, False) if answers else (0, 1, True))
