"""Memory stays flat over five hundred turns, of many visitors and of one who never stops."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from tests.e2e.crowd import all_ask, door
from tests.e2e.replica import ROOMY, Site, provided_by, site
from tests.fakes.provider import Provider, says

log = logging.getLogger(__name__)

BATCH = 5
KB_PER_TURN = 14
"""Measured are 6 to 9, and they end: the database's cache of what it wrote (2 MB a connection) and who wrote within the
last minute. Each new session left 24 before Gradio was told to forget old ones."""


async def kilobytes_a_turn(running: Site, turns: Callable[[int], Awaitable[None]]) -> dict[int, float]:
    """How much memory each turn added, from the hundredth to the three hundredth and from there to the last.

    Args:
        running: whose memory it is.
        turns: has so many answered.
    """
    process = psutil.Process(running.program.pid)
    sizes: dict[int, int] = {}
    so_far = 0
    for stage in (100, 300, 500):
        await turns(stage - so_far)
        so_far, sizes[stage] = stage, process.memory_info().rss // 1024
    log.info("kB after so many turns: %s", sizes)
    return {300: (sizes[300] - sizes[100]) / 200, 500: (sizes[500] - sizes[300]) / 200}


@pytest.mark.timeout(400)
async def test_five_hundred_turns_leave_nothing_behind(tmp_path: Path, scripted: Provider) -> None:
    """In every batch one is the same visitor as ever, and four come for the first time."""
    scripted.answer = lambda asked: says("word " * 40)
    settings = provided_by(scripted.base_url) | ROOMY | {"DAILY_TOKENS": "0", "CONTEXT_TOKENS": "8000"}
    async with site(tmp_path / "replica", **settings) as running, door(running.url) as let_in:
        [regular] = let_in(1)

        async def turns(number: int) -> None:
            for _ in range(number // BATCH):
                people = [regular, *let_in(BATCH - 1)]
                endings = await all_ask(people, "What does the engine do? " * 8)
                assert [ending for ending in endings if ending.state != "done"] == []
                assert scripted.refused == []
                scripted.requests.clear()

        growth = await kilobytes_a_turn(running, turns)
    assert growth[500] < KB_PER_TURN, growth
