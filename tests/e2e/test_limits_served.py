"""Limits and numbers of the running product: one client cannot be many by changing sessions and headers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest_asyncio

from tests.e2e.raw_api import last_output
from tests.e2e.replica import Site, provided_by, site
from tests.fakes.provider import Provider, says

fresh = pytest_asyncio.fixture(loop_scope="session")

Asked = Callable[[str, list[str], str, str], Awaitable[str]]

AT_ONCE = 25
"""Below the length of the line, so that the minute's limit is what stops them."""


@fresh
async def limited(tmp_path: Path, scripted: Provider) -> AsyncGenerator[Site]:
    scripted.answer = lambda asked: says("Yes.")
    async with site(tmp_path / "replica", **provided_by(scripted.base_url), METRICS="1") as running:
        yield running


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Asked]:
    """Asks under any session and with any made-up header; gives the answer."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        config = (await client.get("/config")).raise_for_status().json()
        numbers = {fn["api_name"]: fn["id"] for fn in config["dependencies"]}

        async def asked(event: str, data: list[str], session: str, claimed: str) -> str:
            headers = {"X-Forwarded-For": claimed, "X-Real-IP": claimed, "Forwarded": f"for={claimed}"}
            body = {"fn_index": numbers[event], "data": data, "session_hash": session}
            (await client.post("/gradio_api/queue/join", json=body, headers=headers)).raise_for_status()
            lines: list[str] = []
            async with client.stream("GET", "/gradio_api/queue/data", params={"session_hash": session}) as stream:
                async for line in stream.aiter_lines():
                    lines.append(line)
                    if "process_completed" in line:
                        break
            return last_output("\n".join(lines))

        yield asked


async def test_200_messages_of_one_client_under_changing_sessions_and_headers_get_30_answers(
    limited: Site, scripted: Provider
) -> None:
    async with opened(limited.url) as asked, httpx.AsyncClient(base_url=limited.url) as client:
        answers: list[str] = []
        for start in range(0, 200, AT_ONCE):
            batch = (
                asked("chat", [f"message {n}"], f"session{n}", f"198.51.100.{n}") for n in range(start, start + AT_ONCE)
            )
            answers += await asyncio.gather(*batch)
        told = (await client.get("/metrics")).text
    assert answers.count("Yes.") == 30
    assert all("Many messages come from your network" in answer for answer in answers if answer != "Yes.")
    assert len(scripted.requests) == 30
    assert 'carboncopy_refusals_total{kind="pace_address"} 170.0' in told
    assert 'carboncopy_turns_total{stop="answered"} 30.0' in told
    assert "127.0.0.1" not in told.replace(scripted.base_url.removeprefix("http://").removesuffix("/v1"), "")
    assert "message 1" not in told


async def test_the_pages_own_events_are_counted_as_well(limited: Site, scripted: Provider) -> None:
    async with opened(limited.url) as asked:
        told = [
            json.loads(await asked("ask", [f"message {n}", "A" * 32], f"page{n}", f"198.51.100.{n}")) for n in range(11)
        ]
    assert ["refused" in piece for piece in told] == [False] * 10 + [True]
    assert "Please wait" in told[-1]["refused"]


async def test_the_numbers_are_not_there_unless_they_are_wanted(tmp_path: Path) -> None:
    async with site(tmp_path / "replica") as running, httpx.AsyncClient(base_url=running.url) as client:
        assert (await client.get("/metrics")).status_code == 404


async def test_behind_a_proxy_visitors_do_not_share_a_figure(tmp_path: Path, scripted: Provider) -> None:
    settings = provided_by(scripted.base_url) | {"TRUSTED_PROXIES": "1", "MESSAGES_PER_MINUTE": "1"}
    async with site(tmp_path / "replica", **settings) as running, opened(running.url) as asked:
        answers = [
            await asked("chat", ["Hi"], f"session{visitor}{n}", f"9.9.9.{n}, 198.51.100.{visitor}")
            for visitor in range(2)
            for n in range(4)
        ]
    assert [answer == "Hello." for answer in answers] == [True, True, True, False] * 2
