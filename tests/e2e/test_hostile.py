"""Markup and script in what a visitor or a model writes. Every browser here also fails on a request to elsewhere."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.e2e.browser import Visitors
from tests.e2e.peers import Llmock

MARKUP = [
    "<script>document.title = 'taken'</script>",
    "<img src=x onerror=\"document.title = 'taken'\">",
    "<img src='https://elsewhere.invalid/pixel.png'>",
    "![a picture](https://elsewhere.invalid/pixel.png)",
    "<iframe src='https://elsewhere.invalid'></iframe>",
    "<video autoplay src='https://elsewhere.invalid/film.mp4'></video>",
    "<div style=\"position:fixed;inset:0;background:url('https://elsewhere.invalid/x')\">over it all</div>",
    "<form action='https://elsewhere.invalid'><input name='q'></form>",
    "<style>@import url('https://elsewhere.invalid/x.css');</style>",
    "<svg onload=\"document.title = 'taken'\"></svg>",
    "<a href=\"javascript:document.title = 'taken'\">press me</a>",
    "[press me](javascript:document.title='taken')",
    "[press me](data:text/html,<script>document.title='taken'</script>)",
    "[press me][ref]\n\n[ref]: javascript:document.title='taken'",
    "<meta http-equiv='refresh' content='0; url=https://elsewhere.invalid'>",
]
LOADING = "[data-testid=bot], [data-testid=user]"
HARMFUL = "script, img, iframe, video, form, style, svg, object, embed, meta, link, [onerror], [onload], [style]"


async def harmless(visitors: Visitors, visitor_says: str, llmock: Llmock, model_says: str) -> None:
    await llmock.says(model_says)
    visitor = await visitors.one()
    title = await visitor.page.title()
    await visitor.ask(visitor_says)
    for _ in range(2):
        parts = visitor.page.locator(LOADING)
        assert await parts.locator(HARMFUL).count() == 0
        for link in await parts.locator("a").all():
            address = await link.get_attribute("href") or ""
            assert address.startswith(("https://", "http://", "mailto:"))
        assert await visitor.page.title() == title
        await visitor.page.reload()  # what is kept is shown again
        await visitor.hears()


@pytest.mark.parametrize("markup", MARKUP)
async def test_markup_of_the_model_does_nothing(visitors: Visitors, llmock: Llmock, markup: str) -> None:
    await harmless(visitors, "Show me?", llmock, f"Before it.\n\n{markup}\n\nAfter it.")


async def test_markup_of_a_visitor_does_nothing_and_is_shown_as_written(visitors: Visitors, llmock: Llmock) -> None:
    written = " ".join(MARKUP)
    await harmless(visitors, written, llmock, "I see.")
    assert (await llmock.requests())[-1]["messages"][-1]["content"] == written
    await llmock.says("I see.")
    visitor = await visitors.one()
    await visitor.ask(MARKUP[0])
    await expect(visitor.questions.last).to_have_text(MARKUP[0])


async def test_a_hundred_thousand_characters_are_refused_in_a_sentence(visitors: Visitors, llmock: Llmock) -> None:
    visitor = await visitors.one()
    await visitor.box.fill("x" * 100_000)
    await visitor.box.press("Enter")
    await expect(visitor.notice).to_contain_text("too long")
    assert len(await visitor.box.input_value()) == 100_000, "what was written is not lost"
    assert await llmock.requests() == []
    await llmock.says("That I can read.")
    await visitor.box.fill("")
    assert await visitor.ask("A short one?") == "That I can read."


async def test_emoji_alone_are_a_message(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("👋🏽")
    visitor = await visitors.one()
    assert await visitor.ask("👩🏽‍💻🇬🇧 🙂") == "👋🏽"
    assert (await llmock.requests())[-1]["messages"][-1]["content"] == "👩🏽‍💻🇬🇧 🙂"
