"""What a reply rests on, on the page and for callers of the API."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect

from tests.e2e.browser import Visitor, Visitors
from tests.e2e.peers import Llmock
from tests.e2e.raw_api import raw_api
from tests.e2e.replica import Site
from tests.e2e.test_look import CONTRAST

PART = "04-faq.md › Questions visitors ask › Where are you based?"
SHORT = "04-faq.md › Where are you based?"
TEXT = "I lived in England: in London, in Surrey"
SOURCED = f"In England.\n\nSources: {PART}; 01-profile.md; invented.md"


async def asked(visitor: Visitor, llmock: Llmock) -> Visitor:
    await llmock.says(SOURCED)
    assert await visitor.ask("Where do you live?") == "In England."
    return visitor


def shown(visitor: Visitor, text: str) -> Locator:
    """Of the conversation; the page's wire has the text as well."""
    return visitor.page.get_by_role("log").get_by_text(text)


async def test_a_chip_opens_its_passage_and_closes_it_again(visitors: Visitors, llmock: Llmock) -> None:
    visitor = await asked(await visitors.one(), llmock)
    for _ in range(2):
        sources = visitor.page.get_by_role("group", name="Sources")
        await expect(sources.get_by_role("button")).to_have_text([SHORT, "01-profile.md"])
        await sources.get_by_role("button", name=SHORT).click()
        passage = visitor.page.get_by_role("group", name=PART)
        await expect(passage).to_contain_text(TEXT)
        await sources.get_by_role("button", name="01-profile.md").click()
        await expect(shown(visitor, TEXT)).to_have_count(0)
        await sources.get_by_role("button", name="01-profile.md").click()
        await expect(sources).not_to_contain_text("Ada Lovelace")
        await visitor.page.reload()  # earlier turns have theirs, too
        await visitor.hears()
    await expect(shown(visitor, "invented.md")).to_have_count(0)


async def test_the_keyboard_opens_and_closes_a_passage(visitors: Visitors, llmock: Llmock) -> None:
    visitor = await asked(await visitors.one(), llmock)
    chip = visitor.button(SHORT)
    await chip.focus()
    await expect(chip).to_have_attribute("aria-expanded", "false")
    await visitor.page.keyboard.press("Enter")
    await expect(chip).to_have_attribute("aria-expanded", "true")
    await expect(shown(visitor, TEXT)).to_be_visible()
    await visitor.page.keyboard.press("Escape")
    await expect(chip).to_have_attribute("aria-expanded", "false")
    await expect(chip).to_be_focused()
    await expect(shown(visitor, TEXT)).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_passage_can_be_read_on_a_phone(visitors: Visitors, llmock: Llmock, scheme: str) -> None:
    visitor = await asked(await visitors.on_a_phone(color_scheme=scheme), llmock)
    await visitor.button(SHORT).tap()
    text = shown(visitor, TEXT)
    await expect(text).to_be_in_viewport()
    for part in (text, visitor.button(SHORT), visitor.button("01-profile.md")):
        contrast: float = await part.evaluate(CONTRAST)
        assert contrast >= 4.5
        box = await part.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


async def test_callers_read_the_sources_and_a_broken_end_in_the_last_line(replica: Site, llmock: Llmock) -> None:
    async with raw_api(replica.url) as caller:
        await llmock.says(SOURCED)
        assert await caller.said("Where do you live?") == f"In England.\n\nSources: {PART}; 01-profile.md"
        await llmock.says("This answer ends in the middle of a sentence that never came.")
        await llmock.does({"type": "stream_fault", "kind": "disconnect", "after_chunks": 6})
        broken = await caller.said("Will you break off?")
        assert broken.startswith("This answer ends")
        assert broken.endswith("\n\n(This answer broke off.)")


async def test_a_stopped_answer_comes_back_as_stopped(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("These words came through and then nothing more.")
    await llmock.does({"type": "stream_fault", "kind": "stall", "after_chunks": 6, "stall_seconds": 60})
    visitor = await visitors.one()
    await visitor.say("Tell me something long?")
    await expect(visitor.reply).to_contain_text("These words")
    await visitor.button("Stop").click()
    await visitor.settled()
    await llmock.says("Yes.")
    await visitor.ask("And now?")
    await visitor.page.reload()
    await expect(visitor.turns.first).to_contain_text("Stopped.")
    await expect(visitor.turns.first).not_to_contain_text("broke off")
