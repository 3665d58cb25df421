"""Many at once: one cap over page and API, a line that keeps its order, tabs that take turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from gradio_client import Client  # pyright: ignore[reportMissingTypeStubs]
from gradio_client.utils import Status  # pyright: ignore[reportMissingTypeStubs]
from playwright.async_api import Page, expect

from tests.e2e.conftest import Opens, fresh, lasting
from tests.e2e.programs import eventually
from tests.e2e.replica import ROOMY, Site, provided_by, site
from tests.fakes.provider import Answer, Provider, says, serving


@lasting
async def lasting_provider() -> AsyncGenerator[Provider]:
    async with serving() as provider:
        yield provider


@lasting
async def crowded(lasting_provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site]:
    """A replica whose provider counts how many it answers at once, and can be held in the middle of an answer."""
    folder = tmp_path_factory.mktemp("crowded") / "replica"
    async with site(folder, **provided_by(lasting_provider.base_url), **ROOMY) as running:
        yield running


class Held:
    """A provider that answers `To: <question>`, whole but for the end, which it holds until it is let go."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.go = asyncio.Event()
        provider.answer = self._answer
        provider.requests.clear()
        provider.most = 0

    def _answer(self, request: dict[str, Any]) -> Answer:
        answer = says(f"To: {request['messages'][-1]['content']}")
        answer.hold = self.go
        return answer

    async def answers_at_once(self, number: int) -> None:
        async def look() -> bool | None:
            return self.provider.now == number or None

        await eventually(look, 20, lambda: f"{self.provider.now} answers are under way, not {number}")


@fresh
async def held(lasting_provider: Provider) -> AsyncGenerator[Held]:
    held = Held(lasting_provider)
    yield held
    held.go.set()
    assert lasting_provider.refused == []


async def caller(site: Site) -> Any:
    """A session of the API, through Gradio's own client."""
    return await asyncio.to_thread(Client, site.url, verbose=False)


async def asks(client: Any, question: str) -> Any:
    return await asyncio.to_thread(client.submit, question, api_name="/chat")


async def test_twelve_callers_share_three_places(crowded: Site, held: Held, visitors_of: Opens) -> None:
    async with visitors_of(crowded) as visitors:
        people = [await visitors.one() for _ in range(6)]
        clients = [await caller(crowded) for _ in range(6)]
        for number, person in enumerate(people):
            await person.say(f"page {number}")
        jobs = [await asks(client, f"api {number}") for number, client in enumerate(clients)]

        async def waiting() -> int:
            in_line = [await person.notice.filter(has_text="in line").count() for person in people]
            return sum(in_line) + sum(job.status().code is Status.IN_QUEUE for job in jobs)

        async def look() -> bool | None:
            return await waiting() == 9 or None

        await held.answers_at_once(3)
        await eventually(look, 20, lambda: f"not nine are in line:\n{crowded.log[-2000:]}")
        assert held.provider.most == 3
        held.go.set()
        heard = [await person.hears() for person in people]
        heard += await asyncio.gather(*(asyncio.to_thread(job.result, 60) for job in jobs))
    assert heard == [f"To: page {n}" for n in range(6)] + [f"To: api {n}" for n in range(6)]
    assert held.provider.most == 3
    assert len(held.provider.requests) == 12


async def test_who_waits_sees_their_place_and_moves_up(crowded: Site, held: Held, visitors_of: Opens) -> None:
    async with visitors_of(crowded) as visitors:
        people = [await visitors.one() for _ in range(5)]
        for number, person in enumerate(people):
            await person.say(f"question {number}")
            await held.answers_at_once(min(number + 1, 3))
        await expect(people[3].notice).to_contain_text("You are next in line")
        await expect(people[4].notice).to_contain_text("You are second in line")
        await people[0].button("Stop").click()
        await expect(people[4].notice).to_contain_text("You are next in line")
        await held.answers_at_once(3)
        held.go.set()
        assert [await person.hears() for person in people[1:]] == [f"To: question {n}" for n in range(1, 5)]


async def test_two_tabs_of_one_conversation_take_turns(crowded: Site, held: Held, visitors_of: Opens) -> None:
    async with visitors_of(crowded) as visitors:
        context = await visitors.context()
        first = await visitors.tab(context)
        held.go.set()
        await first.ask("a beginning")
        held.go.clear()
        second = await visitors.tab(context)
        await expect(second.questions).to_have_text(["a beginning"])
        await first.say("from the first tab")
        await held.answers_at_once(1)
        await second.say("from the second tab")
        await crowded_settles(second.page, held)
        held.go.set()
        assert await first.hears() == "To: from the first tab"
        assert await second.hears() == "To: from the second tab"
        said = [m["content"] for m in held.provider.requests[-1]["messages"] if m["role"] == "user"]
        assert said == ["a beginning", "from the first tab", "from the second tab"]
        await second.page.reload()
        await expect(second.questions).to_have_text(said)


async def crowded_settles(page: Page, held: Held) -> None:
    """The second tab's message has arrived at the server, and its answer has not begun."""
    await expect(page.locator("[data-testid=bot]").last).to_have_attribute("aria-busy", "true")
    await page.evaluate("fetch('healthz')")
    assert held.provider.now == 1


async def test_one_session_of_the_api_is_one_conversation(crowded: Site, held: Held) -> None:
    held.go.set()
    client = await caller(crowded)
    job = await asks(client, "the first")
    assert await asyncio.to_thread(job.result, 30) == "To: the first"
    so_far = job.outputs()
    assert so_far[-1] == "To: the first"
    assert all(so_far[-1].startswith(text) for text in so_far)
    await asyncio.to_thread((await asks(client, "the second")).result, 30)
    assert [m["content"] for m in held.provider.requests[-1]["messages"][1:]] == [
        "the first", "To: the first", "the second",
    ]  # fmt: skip
    stranger = await caller(crowded)
    await asyncio.to_thread((await asks(stranger, "somebody else")).result, 30)
    assert [m["content"] for m in held.provider.requests[-1]["messages"][1:]] == ["somebody else"]


async def test_who_leaves_the_line_is_not_answered(crowded: Site, held: Held, visitors_of: Opens) -> None:
    async with visitors_of(crowded) as visitors:
        people = [await visitors.one() for _ in range(6)]
        for number, person in enumerate(people):
            await person.say(f"question {number}")
            await held.answers_at_once(min(number + 1, 3))
        await expect(people[5].notice).to_contain_text("You are third in line")
        await people[3].button("Stop").click()
        await people[4].page.close()
        await people[0].button("Stop").click()
        await expect(people[5].reply).to_have_text("To: question 5")
        await people[3].settled()
        await expect(people[3].box).to_have_value("question 3")
        held.go.set()
        assert await people[5].hears() == "To: question 5"
        asked = [request["messages"][-1]["content"] for request in held.provider.requests]
        assert asked == [f"question {n}" for n in (0, 1, 2, 5)]


async def test_what_was_asked_in_a_tab_that_closed_is_kept(crowded: Site, held: Held, visitors_of: Opens) -> None:
    async with visitors_of(crowded) as visitors:
        context = await visitors.context()
        first = await visitors.tab(context)
        held.go.set()
        await first.ask("a beginning")
        held.go.clear()
        await first.say("and off I go")
        await expect(first.reply).to_have_text("To: and off I go")
        await first.page.close()
        held.go.set()
        await held.answers_at_once(0)
        again = await visitors.tab(context)
        await expect(again.questions).to_have_text(["a beginning", "and off I go"])
        await expect(again.reply).to_have_text("To: and off I go")
