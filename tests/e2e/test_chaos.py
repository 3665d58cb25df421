"""Everything that llmock can break, while twenty visitors write at once: every turn ends in a sentence."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest

from tests.e2e import peers
from tests.e2e.breakage import (
    ANSWER,
    ANSWERS,
    BROKEN,
    CALLS_ONLY,
    NO_WORD,
    PASSING,
    SILENT,
    TIMEOUT_S,
    TOO_LONG,
    VISITORS,
    is_answer,
    is_apology,
    is_beginning,
    rounds,
)
from tests.e2e.conftest import fresh, lasting
from tests.e2e.crowd import Somebody, all_ask, door
from tests.e2e.peers import Llmock
from tests.e2e.programs import eventually
from tests.e2e.replica import ROOMY, Site, provided_by, site

AT_ONCE = 10


@lasting
async def shaky(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Llmock]:
    """A provider of these tests' own, quicker than the others' since nobody watches its words grow."""
    async with peers.llmock(tmp_path_factory.mktemp("shaky"), "--stream-chunk-delay-ms", "5") as running:
        yield running


@lasting
async def stormy(shaky: Llmock, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site]:
    """A replica that has little patience, through all the rounds. Its end looks for tracebacks in its log."""
    folder = tmp_path_factory.mktemp("stormy") / "replica"
    settings = {
        "REPLY_TIMEOUT_S": str(TIMEOUT_S),
        "MAX_CONCURRENT_REPLIES": str(AT_ONCE),
        "METRICS": "1",
        "DAILY_TOKENS": "0",
    }
    async with site(folder, **provided_by(shaky.base_url), **ROOMY, **settings) as running:
        yield running


@lasting
async def people(stormy: Site) -> AsyncGenerator[list[Somebody]]:
    """The same visitors through all the rounds: what broke stays in their conversations."""
    async with door(stormy.url) as let_in:
        yield let_in(VISITORS)


@fresh
async def weather(stormy: Site, people: list[Somebody], shaky: Llmock) -> AsyncGenerator[Llmock]:
    """The provider, whose behaviours the test sets. When they are over, all has to be as before."""
    await shaky.reset()
    yield shaky
    assert len(await shaky.requests()) >= VISITORS
    await shaky.behaves()
    await shaky.does(ANSWERS)
    assert [(ending.state, ending.text) for ending in await all_ask(people[:2], "And now?")] == [("done", ANSWER)] * 2
    assert await health(stormy) == "ok"
    assert await number(stormy, "replies_running") == 0
    await shaky.refuses_nothing()


async def health(site: Site) -> str:
    """What the replica says of its model."""
    async with httpx.AsyncClient(base_url=site.url) as client:
        answer = await client.get("/healthz")
    assert answer.status_code == 200
    assert [secret for secret in site.secrets if secret in answer.text] == []
    return answer.json()["model"]


async def number(site: Site, name: str) -> float:
    async with httpx.AsyncClient(base_url=site.url) as client:
        text = (await client.get("/metrics")).raise_for_status().text
    [value] = re.findall(rf"^carboncopy_{name} (\S+)$", text, re.MULTILINE)
    return float(value)


@pytest.mark.parametrize("behaviours", rounds(NO_WORD, TOO_LONG, SILENT, CALLS_ONLY))
async def test_without_a_word_from_the_provider_everybody_gets_a_sentence_and_a_reference(
    weather: Llmock, stormy: Site, people: list[Somebody], behaviours: list[dict[str, Any]]
) -> None:
    await weather.does(*behaviours, ANSWERS)
    endings = await all_ask(people, "Is anybody there?")
    assert [ending for ending in endings if not is_apology(ending) or ending.unfit] == []
    references = {ending.text[-9:-1] for ending in endings}
    assert len(references) == VISITORS
    assert [reference for reference in references if f"[{reference}]" not in stormy.log] == []
    assert "the last reply failed" in await health(stormy)


@pytest.mark.parametrize("behaviours", rounds(BROKEN))
async def test_what_came_before_a_break_stands(
    weather: Llmock, people: list[Somebody], behaviours: list[dict[str, Any]]
) -> None:
    await weather.does(*behaviours, ANSWERS)
    endings = await all_ask(people, "What does the engine do?")
    assert [ending for ending in endings if not is_beginning(ending) or ending.unfit] == []


@pytest.mark.parametrize("behaviours", rounds(PASSING))
async def test_what_passes_by_is_not_noticed(
    weather: Llmock, people: list[Somebody], behaviours: list[dict[str, Any]]
) -> None:
    await weather.does(*behaviours, ANSWERS)
    endings = await all_ask(people, "What does the engine do?")
    assert [ending for ending in endings if not is_answer(ending) or ending.unfit] == []


async def test_no_place_is_lost(weather: Llmock, stormy: Site, people: list[Somebody]) -> None:
    """After all of it, as many replies run at once as at the start."""
    await weather.does({"type": "slow_first_token", "seconds": 1, "times": VISITORS}, ANSWERS)

    async def all_run() -> bool | None:
        return await number(stormy, "replies_running") == AT_ONCE or None

    asking = asyncio.create_task(all_ask(people, "How many at once?"))
    await eventually(all_run, 10, lambda: f"not {AT_ONCE} replies run at once:\n{stormy.log[-3000:]}")
    assert [ending for ending in await asking if not is_answer(ending)] == []
