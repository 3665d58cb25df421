"""How the page looks and sounds: by keyboard, by screen reader, on a phone, at night, in a link's preview."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.e2e.browser import Visitors
from tests.e2e.conftest import Opens
from tests.e2e.peers import Llmock
from tests.e2e.replica import Site

COLOURS = """(node) => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  let back = null;
  for (let at = node; at && !back; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] > 0.5) back = colour;
  }
  return { back: light(back || [255, 255, 255]), front: light(parse(getComputedStyle(node).color)) };
}"""
CONTRAST = f"""(node) => {{
  const {{ back, front }} = ({COLOURS})(node);
  return (Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05);
}}"""


async def test_the_keyboard_alone_is_enough(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("A first answer.")
    await llmock.says("A second answer.")
    visitor = await visitors.one()
    keyboard = visitor.page.keyboard
    await expect(visitor.box).to_be_focused()
    await visitor.page.keyboard.type("A first question?")
    await keyboard.press("Enter")
    assert await visitor.hears() == "A first answer."
    names = set[str]()
    for _ in range(12):
        await keyboard.press("Shift+Tab")
        focused = visitor.page.locator(":focus")
        if not await focused.count():
            break
        name = await focused.get_attribute("aria-label") or await focused.inner_text()
        names.add(name)
        if name == "Try again":
            outline = await focused.evaluate("node => getComputedStyle(node).outlineStyle")
            assert outline != "none", "one has to see where the focus is"
            await keyboard.press("Enter")
            await expect(visitor.reply).to_have_text("A second answer.")
            break
    assert names >= {"Try again"}, f"the keyboard reaches only {names!r}"


async def test_a_screen_reader_hears_names_and_roles(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("Yes.")
    visitor = await visitors.one()
    await visitor.ask("Can you be heard?")
    page = visitor.page
    await expect(page.get_by_role("heading", level=1)).to_have_text("Ada Lovelace")
    await expect(page.get_by_role("main")).to_be_visible()
    await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    log = page.get_by_role("log", name="Conversation")
    await expect(log).to_have_attribute("aria-live", "polite")
    await expect(log).to_have_attribute("aria-busy", "false")
    nameless = await page.evaluate(
        "[...document.querySelectorAll('button, input, textarea, img, a')]"
        ".filter((node) => node.checkVisibility({ visibilityProperty: true }) && !node.closest('[aria-hidden=true]'))"
        ".filter((node) => node.tagName === 'IMG' ? node.alt === null : !(node.ariaLabel || node.innerText ||"
        " node.title || node.labels?.length || node.closest('[inert]')))"
        ".map((node) => node.outerHTML.slice(0, 120))"
    )
    assert nameless == []


async def test_a_phone_needs_no_sideways_scroll(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says(
        "`" + "x" * 300 + "`\n\n| " + " | ".join(["a wide table"] * 9) + " |\n|" + "---|" * 9 + "\n\n" + "y" * 300
    )
    visitor = await visitors.on_a_phone()
    width = "document.documentElement.scrollWidth"
    assert await visitor.page.evaluate(width) == 390
    await visitor.ask("z" * 200 + " https://example.org/" + "w" * 200)
    assert await visitor.page.evaluate(width) == 390
    for part in (visitor.box, visitor.button("Send"), visitor.button("New chat"), visitor.questions.last):
        box = await part.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_words_can_be_read_by_day_and_by_night(visitors: Visitors, llmock: Llmock, scheme: str) -> None:
    await llmock.says("Words to **read**, and [a link](https://example.org).")
    visitor = await visitors.one(color_scheme=scheme)
    await visitor.ask("Can this be read?")
    for locator in (visitor.reply, visitor.questions.last, visitor.box, visitor.page.get_by_role("heading", level=1)):
        contrast: float = await locator.evaluate(CONTRAST)
        assert contrast >= 4.5, await locator.evaluate("node => node.outerHTML.slice(0, 200)")
    brightness: float = await visitor.page.evaluate(f"({COLOURS})(document.body).back")
    assert (brightness < 0.2) == (scheme == "dark")


async def test_title_and_previews_name_the_replica(visitors: Visitors) -> None:
    visitor = await visitors.one()
    page = visitor.page
    await expect(page).to_have_title("Ada Lovelace · digital replica")
    for name in ("og:title", "og:description", "twitter:title"):
        content = await page.locator(f'meta[property="{name}"], meta[name="{name}"]').get_attribute("content")
        assert content
        assert "Ada Lovelace" in content
    assert "gradio" not in (await page.title()).lower()
    assert await page.locator('meta[content*="Gradio"]').count() == 0


async def test_a_site_may_frame_the_page_only_if_the_owner_says_so(replica: Site, visitors_of: Opens) -> None:
    async with visitors_of(replica) as visitors:
        visitor = await visitors.one()
        answer = await visitor.page.goto("/")
        assert answer
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'self'" in policy
        assert "default-src 'self'" in policy
