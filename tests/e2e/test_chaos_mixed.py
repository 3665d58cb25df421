"""All of llmock's faults at once and at random, with a provider's real quotas; and a second provider that helps out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e import peers
from tests.e2e.breakage import ANSWERS, CALLS_ONLY, NO_WORD, SILENT, TOO_LONG, is_answer, is_apology, rounds
from tests.e2e.conftest import fresh, lasting
from tests.e2e.crowd import Ending, Somebody, all_ask, door
from tests.e2e.peers import Llmock
from tests.e2e.replica import ROOMY, Site, provided_by, site

FEW = 6

STORM = (
    *("--error-rate", "429=0.1", "--error-rate", "500=0.1", "--error-rate", "503=0.1", "--error-rate", "404=0.05"),
    *("--stream-fault", "disconnect=0.1", "--stream-fault", "truncate=0.1", "--stream-fault", "malformed=0.1"),
    *("--stream-fault", "stall=0.1", "--stream-stall-seconds", "3"),
    *("--latency-ms", "50", "--rpm", "60", "--tool-mode", "auto", "--stream-chunk-delay-ms", "5"),
)


async def test_with_all_of_it_at_random_every_turn_ends_in_words(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """llmock calls the tools here, too, with whatever arguments fit their schema."""
    async with peers.llmock(tmp_path_factory.mktemp("storm"), *STORM) as storm:
        settings = provided_by(storm.base_url) | ROOMY | {"REPLY_TIMEOUT_S": "2", "MAX_CONCURRENT_REPLIES": "10"}
        async with site(tmp_path / "replica", **settings) as stormy, door(stormy.url) as let_in:
            people = let_in(20)
            endings: list[Ending] = []
            for number in range(2):
                endings += await all_ask(people, f"What is the {number}th thing that you do?")
            async with httpx.AsyncClient(base_url=stormy.url) as client:
                assert (await client.get("/healthz")).status_code == 200
    assert len(endings) == 40
    assert [ending for ending in endings if ending.unfit or not ending.text] == []
    assert [e for e in endings if e.state not in ("done", "broken") and not is_apology(e)] == []
    assert {ending.state for ending in endings} >= {"done", "failed"}


@lasting
async def failing(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Llmock]:
    async with peers.llmock(tmp_path_factory.mktemp("failing"), "--stream-chunk-delay-ms", "5") as running:
        yield running


@lasting
async def doubled(
    failing: Llmock, llmock_process: Llmock, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Site]:
    """A replica with a second provider."""
    second = {
        "FALLBACK_BASE_URL": llmock_process.base_url,
        "FALLBACK_API_KEY": "sk-e2e-TheOtherKeyThatMustNotShow",
        "FALLBACK_MODEL": "second",
    }
    patience = {"REPLY_TIMEOUT_S": "5", "MAX_CONCURRENT_REPLIES": str(FEW), "DAILY_TOKENS": "0"}
    folder = tmp_path_factory.mktemp("doubled") / "replica"
    async with site(folder, **provided_by(failing.base_url), **second, **ROOMY, **patience) as running:
        yield running


@lasting
async def few(doubled: Site) -> AsyncGenerator[list[Somebody]]:
    async with door(doubled.url) as let_in:
        yield let_in(FEW)


@fresh
async def first(failing: Llmock) -> AsyncGenerator[Llmock]:
    await failing.reset()
    yield failing
    await failing.refuses_nothing()


@pytest.mark.parametrize("behaviours", rounds(NO_WORD, TOO_LONG, SILENT, CALLS_ONLY))
async def test_the_second_provider_answers_when_the_first_has_no_word(
    first: Llmock, llmock: Llmock, few: list[Somebody], behaviours: list[dict[str, Any]]
) -> None:
    await first.does(*behaviours, {"type": "reply", "text": "The first provider's words.", "times": None})
    await llmock.does(ANSWERS)
    endings = await all_ask(few, "Is anybody there?")
    assert [ending for ending in endings if not is_answer(ending) or ending.unfit] == []
    assert len(await llmock.requests()) >= FEW
    assert {request["model"] for request in await llmock.requests()} == {"second"}
