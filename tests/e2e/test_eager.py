"""Visitors who write before the page is ready: no word is lost."""

from __future__ import annotations

import asyncio
from typing import Any

from playwright.async_api import Route, expect

from tests.e2e.browser import Visitors
from tests.e2e.peers import Llmock

BARE = """<!doctype html><div id="page"><div id="message"><textarea></textarea></div></div>
<script type="module">import { whenDrawn } from "/wire.js"; whenDrawn((isEager) => { window.eager = isEager; });
document.title = "loaded";</script>"""

THE_REST = """() => document.querySelector('#page').insertAdjacentHTML(
    'beforeend', '<button id="told"></button><p id="conversation"><input></p>')"""


async def test_a_message_that_is_sent_while_the_past_loads_comes_after_it(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("I keep it.", times=None)
    visitor = await visitors.one()
    await visitor.ask("My secret is Rosebud.")
    go, asked = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        asked.set()
        await go.wait()
        await route.continue_()

    await visitor.page.route("**/run/predict", late)
    await visitor.page.reload()
    await asyncio.wait_for(asked.wait(), 20)
    await visitor.box.fill("And now?")
    await visitor.box.press("Enter")
    await expect(visitor.box).to_have_value("And now?")
    await expect(visitor.questions).to_have_count(0)
    go.set()
    await expect(visitor.questions).to_have_text(["My secret is Rosebud.", "And now?"])
    assert await visitor.hears() == "I keep it."
    await expect(visitor.box).to_have_value("")


async def test_enter_in_a_box_that_is_there_before_the_page_is_remembered(visitors: Visitors) -> None:
    async def bare(route: Route) -> None:
        await route.fulfill(body=BARE, content_type="text/html")

    context = await visitors.context()
    page = await context.new_page()
    await page.route("**/bare", bare)
    told: list[Any] = []
    for keys in (["Shift+Enter"], ["Enter"]):
        await page.goto("/bare")
        await expect(page).to_have_title("loaded")
        await page.locator("textarea").fill("Hello")
        for key in keys:
            await page.locator("textarea").press(key)
        await page.evaluate(THE_REST)
        await page.wait_for_function("window.eager !== undefined")
        told.append((await page.evaluate("window.eager"), await page.locator("textarea").input_value()))
    assert told == [(False, "Hello\n"), (True, "Hello")]
