"""One address floods, leaves, or asks for too much: everybody else is served as before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest_asyncio
from playwright.async_api import Browser, expect

from agent.limits import FULL_OF_ONE, MAX_WAITING_OF_ONE
from pages.talk import CROWDED
from pages.visitors import MOST_OF_ONE
from tests.e2e.browser import Complaints, Visitors
from tests.e2e.programs import eventually
from tests.e2e.raw_api import last_output, raw_api
from tests.e2e.replica import ROOMY, Site, provided_by, site
from tests.fakes.provider import Answer, Provider, says

fresh = pytest_asyncio.fixture(loop_scope="session")

QUICKLY_S = 8.0
"""Beside other work on a busy machine. An answer that is held takes for ever."""

FLOOD = {"X-Forwarded-For": "198.51.100.1"}
HONEST = {"X-Forwarded-For": "198.51.100.2"}


@fresh
async def proxied(tmp_path: Path, scripted: Provider) -> AsyncGenerator[Site]:
    """A replica behind a proxy, so that one machine can be many addresses."""
    settings = provided_by(scripted.base_url) | ROOMY | {"TRUSTED_PROXIES": "1"}
    async with site(tmp_path / "replica", **settings) as running:
        yield running


async def join(client: httpx.AsyncClient, number: int, session: str, data: list[str]) -> httpx.Response:
    body = {"fn_index": number, "data": data, "session_hash": session}
    return await client.post("/gradio_api/queue/join", json=body)


async def under_way(provider: Provider, number: int) -> None:
    async def look() -> bool | None:
        return provider.now == number or None

    await eventually(look, 20, lambda: f"{provider.now} answers are under way, not {number}")


async def test_a_flood_of_slow_replies_holds_up_only_its_own_address(proxied: Site, scripted: Provider) -> None:
    """Each slow reply ends when the test lets it: the other address needs to wait for one of them, not for all."""
    slow = [asyncio.Event() for _ in range(MAX_WAITING_OF_ONE)]

    def answer(request: dict[str, object]) -> Answer:
        asked = json.dumps(request["messages"])
        held = says("Slowly.")
        held.hold = slow[len(scripted.requests) - 1] if "flood" in asked else None
        return held

    scripted.answer = answer
    async with (
        httpx.AsyncClient(base_url=proxied.url, headers=FLOOD, timeout=60) as flood,
        raw_api(proxied.url, headers=HONEST) as honest,
    ):
        number = honest.functions["chat"]
        joins = [await join(flood, number, f"flood{n}", [f"flood {n}"]) for n in range(60)]
        assert [answer.status_code for answer in joins] == [200] * MAX_WAITING_OF_ONE + [503] * 35
        assert joins[-1].json() == {"detail": FULL_OF_ONE}
        await under_way(scripted, 3)
        asking = asyncio.create_task(honest.said("Good morning"))
        waiting = proxied.url + "/gradio_api/queue/status"

        async def look() -> bool | None:
            return (await flood.get(waiting)).json()["queue_size"] == MAX_WAITING_OF_ONE - 2 or None

        await eventually(look, 10, lambda: "the honest visitor is not in line")
        slow[0].set()
        assert await asyncio.wait_for(asking, QUICKLY_S) == "Slowly."
        asked = [request["messages"][-1]["content"] for request in scripted.requests]
        assert asked.index("Good morning") == 3
        assert (await join(flood, number, "again", ["flood"])).status_code == 200, "a place was free again"
        for event in slow:
            event.set()


async def test_closed_tabs_give_their_places_back_while_the_provider_is_silent(
    proxied: Site, scripted: Provider
) -> None:
    never = asyncio.Event()
    scripted.script = [
        Answer([], hold=never),
        Answer(says("Some words").chunks[:1], hold=never),
        Answer([], hold=never),
    ]
    async with httpx.AsyncClient(base_url=proxied.url, timeout=60) as client, raw_api(proxied.url) as fourth:
        streams: list[httpx.Response] = []
        for number, name in enumerate(("ask", "chat", "ask")):
            await join(client, fourth.functions[name], f"tab{number}", ["Hello?", ""][: 2 if name == "ask" else 1])
            request = client.build_request("GET", "/gradio_api/queue/data", params={"session_hash": f"tab{number}"})
            streams.append(await client.send(request, stream=True))
        await under_way(scripted, 3)
        asking = asyncio.create_task(fourth.said("Anybody there?"))
        for stream in streams:
            await stream.aclose()
        assert await asyncio.wait_for(asking, QUICKLY_S) == "Hello."
        await under_way(scripted, 0)
        never.set()


async def test_a_silence_changes_nothing_that_is_read(proxied: Site, scripted: Provider) -> None:
    go = asyncio.Event()
    scripted.script = [Answer(says("Some words", finish=None).chunks, hold=go, raw=says_end())]
    async with raw_api(proxied.url) as api:
        asking = asyncio.create_task(api.post("chat", ["Hello?"]))
        await under_way(scripted, 1)
        with_silences = asyncio.get_running_loop().call_later(5, go.set)
        events = await asking
        with_silences.cancel()
    assert last_output(events) == "Some words"
    assert events.count("process_generating") >= 3


def says_end() -> str:
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in says("").chunks[1:])


async def test_a_flood_of_loads_holds_up_no_reply(proxied: Site, scripted: Provider) -> None:
    conversation = "L" * 32
    slow_to_render = "|a|b|\n|-|-|\n" + "|1|2|\n" * 500
    scripted.answer = lambda request: says(slow_to_render)
    async with (
        httpx.AsyncClient(base_url=proxied.url, headers=FLOOD, timeout=60) as flood,
        raw_api(proxied.url, headers=HONEST) as honest,
    ):
        for _ in range(20):
            await honest.post("ask", ["More, please", conversation])
        scripted.answer = None
        load = {"fn_index": honest.functions["load"], "data": [conversation]}
        loads = [flood.post("/gradio_api/run/predict", json=load) for _ in range(40)]
        loading = asyncio.gather(*loads)
        assert await asyncio.wait_for(honest.said("And I?"), QUICKLY_S) == "Hello."
        told = [json.loads(answer.json()["data"][0]) for answer in await loading]
    shown = [piece for piece in told if "history" in piece]
    assert MOST_OF_ONE <= len(shown) < 40
    assert all(piece["refused"] == CROWDED for piece in told if piece not in shown)
    assert shown[0]["history"][-1]["question"] == "More, please"


async def test_hundreds_of_sessions_that_come_and_go_leave_those_that_wait_in_line(
    proxied: Site, scripted: Provider
) -> None:
    go = asyncio.Event()

    def answer(request: dict[str, object]) -> Answer:
        held = says("Here you are.")
        held.hold = go
        return held

    scripted.answer = answer
    async with raw_api(proxied.url, headers=HONEST) as honest, raw_api(proxied.url, headers=FLOOD) as flood:
        waiting = [asyncio.create_task(honest.post("chat", [f"{n}"], session_hash=f"honest{n}")) for n in range(5)]
        await under_way(scripted, 3)
        client, number = flood.client, flood.functions["load"]
        for start in range(0, 300, 20):
            await asyncio.gather(*(join(client, number, f"e{start + n}", ["x"]) for n in range(20)))
        go.set()
        assert [last_output(events) for events in await asyncio.gather(*waiting)] == ["Here you are."] * 5
        assert (await client.get("/healthz")).json()["line"] == "ok"
        assert await honest.said("And now?") == "Here you are."


async def test_a_visitor_whose_network_floods_keeps_their_words(
    proxied: Site, scripted: Provider, browser: Browser
) -> None:
    go = asyncio.Event()
    scripted.answer = lambda request: Answer(says("Here you are.").chunks, hold=go)
    complaints = Complaints(proxied.url)
    visitors = Visitors(browser, proxied.url, complaints)
    visitor = await visitors.one()
    async with raw_api(proxied.url) as api:
        for n in range(MAX_WAITING_OF_ONE):
            await join(api.client, api.functions["chat"], f"flood{n}", ["x"])
        await visitor.box.fill("Who are you?")
        await visitor.box.press("Enter")
        await expect(visitor.notice).to_contain_text("Many messages are waiting for me")
        await expect(visitor.box).to_have_value("Who are you?")
        await expect(visitor.questions).to_have_count(0)
        go.set()
        await eventually(lambda: queue_is_empty(api.client), 20, lambda: "the flood is not over")
        await visitor.box.press("Enter")
        assert await visitor.hears() == "Here you are."
    await visitors.leave()
    assert [text for text in complaints.found if "503" not in text] == []


async def queue_is_empty(client: httpx.AsyncClient) -> bool | None:
    return (await client.get("/gradio_api/queue/status")).json()["queue_size"] == 0 or None
