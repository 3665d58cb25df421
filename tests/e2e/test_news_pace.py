"""How often an open page asks for news, on a clock that the test turns."""

from __future__ import annotations

from itertools import pairwise

from playwright.async_api import BrowserContext, Route

from tests.e2e.browser import Visitor, Visitors
from tests.e2e.peers import Llmock

ASKED = """
window.asked = [];
const real = window.fetch;
window.fetch = (path, ...more) => {
  if (path === "news") window.asked.push(Date.now());
  return real(path, ...more);
};
"""
SHOW = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


async def arrives(visitors: Visitors) -> tuple[Visitor, BrowserContext]:
    context = await visitors.context()
    await context.add_init_script(ASKED)
    await context.clock.install()
    return await visitors.tab(context), context


async def gaps(visitor: Visitor, context: BrowserContext, seconds: int) -> list[float]:
    """Lets so much time pass. Gives the seconds between two questions meanwhile."""
    before: int = await visitor.page.evaluate("asked.length")
    for _ in range(seconds):
        await context.clock.run_for(1000)
    asked: list[int] = await visitor.page.evaluate(f"asked.slice({max(0, before - 1)})")
    return [(later - earlier) / 1000 for earlier, later in pairwise(asked)]


async def test_a_page_asks_every_few_seconds_and_seldom_after_a_while(visitors: Visitors, llmock: Llmock) -> None:
    visitor, context = await arrives(visitors)
    lively = await gaps(visitor, context, 25)
    assert len(lively) >= 3
    assert max(lively) < 7
    await context.clock.fast_forward(601_000)
    await gaps(visitor, context, 10)
    quiet = await gaps(visitor, context, 80)
    assert quiet
    assert min(quiet) > 26
    await llmock.says("Yes.")
    await visitor.ask("Are you there?")
    assert max((await gaps(visitor, context, 15))[1:]) < 7


async def test_a_page_that_nobody_looks_at_does_not_ask(visitors: Visitors) -> None:
    visitor, context = await arrives(visitors)
    await gaps(visitor, context, 10)
    await visitor.page.evaluate(SHOW, True)
    await gaps(visitor, context, 6)  # what was under way ends
    assert await gaps(visitor, context, 60) == []
    before: int = await visitor.page.evaluate("asked.length")
    await visitor.page.evaluate(SHOW, False)
    assert await visitor.page.evaluate("asked.length") == before + 1


async def test_a_server_in_trouble_is_asked_less_and_less(visitors: Visitors) -> None:
    visitor, context = await arrives(visitors)

    async def refuse(route: Route) -> None:
        await route.fulfill(status=503)

    await context.route("**/news", refuse)
    await gaps(visitor, context, 6)
    longer = (await gaps(visitor, context, 90))[:3]
    assert len(longer) == 3
    assert all(later > 1.5 * earlier for earlier, later in pairwise(longer))
    await context.unroute("**/news")
    visitors.complaints.found.clear()  # the browser's own, of a 503
    assert await gaps(visitor, context, 130)
    assert max((await gaps(visitor, context, 30))[1:]) < 7
