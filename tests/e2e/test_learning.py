"""The owner answers from the phone: who asked reads it on the open page, and the replica knows it from then on."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from agent.reception import CLOSED
from tests.e2e.browser import Visitor, Visitors
from tests.e2e.conftest import Opens, fresh, lasting
from tests.e2e.owner import OwnersPhone
from tests.e2e.peers import Llmock, Phone
from tests.e2e.raw_api import raw_api
from tests.e2e.replica import ROOMY, Site, alerts_to, provided_by, site
from tests.e2e.test_look import CONTRAST

ANSWERED = "Ada Lovelace answered in person"
WROTE = "Ada Lovelace wrote to you in person"
NOT_KNOWN = "I do not know that, and have passed it on."
LONG = "\n\n".join(f"Paragraph {number} of a long answer." for number in range(60))


@lasting
async def owner(phone: Phone) -> AsyncGenerator[OwnersPhone]:
    own = OwnersPhone(phone.url, "555000222:e2e-BotOfAnOwnerWhoTeaches")
    yield own
    await own.close()


@lasting
async def learner(folder: Path, llmock_process: Llmock, owner: OwnersPhone) -> AsyncGenerator[Site]:
    async with site(folder / "learner", **provided_by(llmock_process.base_url), **alerts_to(owner), **ROOMY) as running:
        await running.logs("hears you")
        yield running


@fresh
async def guests(learner: Site, visitors_of: Opens) -> AsyncGenerator[Visitors]:
    async with visitors_of(learner) as opened:
        yield opened


def words(visitor: Visitor) -> Locator:
    """What the owner wrote to this visitor."""
    return visitor.page.get_by_test_id("owner")


async def asks_in_vain(visitor: Visitor, llmock: Llmock, question: str) -> None:
    await llmock.calls("inform_unknown", {"question": question})
    await llmock.says(NOT_KNOWN)
    await visitor.ask(question)


async def greets(visitor: Visitor, llmock: Llmock, reply: str = "Good day.") -> None:
    await llmock.says(reply)
    await visitor.ask("Good day?")


async def leaves_an_address(visitor: Visitor, llmock: Llmock, email: str) -> None:
    await llmock.calls("gather_user_details", {"email": email, "notes": "Wants a compiler."})
    await llmock.says("Thank you.")
    await visitor.ask(f"Write to {email}: I need a compiler.")


async def test_an_answer_reaches_who_asked_and_whoever_asks_next(
    guests: Visitors, llmock: Llmock, owner: OwnersPhone
) -> None:
    question, answer = "Which metal would you take for the cogs of a small engine?", "Gunmetal. *Brass* wears too soon."
    first = await guests.one()
    await asks_in_vain(first, llmock, question)
    await first.box.fill("Half a message")
    await owner.writes(answer, await owner.message(question))
    await expect(words(first)).to_have_count(1)
    await expect(words(first)).to_contain_text(ANSWERED)
    await expect(words(first)).to_contain_text(question)
    await expect(words(first)).to_contain_text("Gunmetal. Brass wears too soon.")
    await expect(words(first).locator("em")).to_have_text("Brass")
    await expect(first.box).to_have_value("Half a message")
    await expect(first.box).to_be_focused()

    second = await guests.one()
    await llmock.says("Gunmetal, I am told.")
    await second.ask("What should the gears of my little machine be made of?")
    system = (await llmock.requests())[-1]["messages"][0]["content"]
    assert f"Asked: {question}\n{answer}\n</answer>" in system
    await expect(words(second)).to_have_count(0)

    await first.page.reload()
    await expect(words(first)).to_contain_text("Gunmetal. Brass wears too soon.")
    await owner.writes("Bronze after all.", await owner.message("Kept as A-"))
    await expect(words(first)).to_contain_text("Bronze after all.")
    await expect(words(first)).not_to_contain_text("Gunmetal")
    kept = re.search(r"A-\w+", await owner.gets("Kept as A-"))
    assert kept
    await owner.writes(f"/forget {kept[0]}")
    await expect(words(first)).to_have_count(0)
    await llmock.says("I do not know.")
    await second.ask("And now?")
    assert "Bronze after all." not in json.dumps((await llmock.requests())[-1])


async def test_without_a_key_the_answer_is_quoted_with_its_source(
    tmp_path: Path, phone: Phone, visitors_of: Opens
) -> None:
    owner = OwnersPhone(phone.url, "555000333:e2e-BotOfAnOwnerWithoutAKey")
    question = "Which metal would you take for the cogs of a small engine?"
    async with site(tmp_path / "replica", **alerts_to(owner), **ROOMY) as running, visitors_of(running) as guests:
        await running.logs("hears you")
        first = await guests.one()
        assert "passed your question on" in await first.ask(question)
        await owner.writes("Gunmetal, since brass wears too soon.", await owner.message(question))
        await expect(words(first)).to_contain_text("Gunmetal, since brass wears too soon.")
        second = await guests.one()
        reply = await second.ask("What metal should the cogs of my small engine be?")
        assert "Gunmetal, since brass wears too soon." in reply
        await second.button(f"Answered in person: {question}").click()
        passage = second.page.locator(".passage")
        await expect(passage).to_contain_text(f"Answered in person: {question}")
        await expect(passage).to_contain_text("Gunmetal, since brass wears too soon.")
        await first.page.reload()
        await expect(words(first)).to_contain_text(ANSWERED)
    await owner.close()


async def test_a_reply_to_a_contact_is_read_by_that_visitor_alone(
    guests: Visitors, llmock: Llmock, owner: OwnersPhone
) -> None:
    grace, other = await guests.one(), await guests.one()
    await greets(other, llmock)
    await leaves_an_address(grace, llmock, "grace@example.org")
    await owner.writes("I will write on <b>Monday</b>.", await owner.message("grace@example.org"))
    await expect(words(grace)).to_contain_text(WROTE)
    await expect(words(grace)).to_contain_text("I will write on <b>Monday</b>.")
    await llmock.says("Very well.")
    await grace.ask("On which day?")
    assert "I will write on <b>Monday</b>." in json.dumps((await llmock.requests())[-1])
    await other.page.reload()
    await expect(other.questions).to_have_count(1)
    await expect(words(other)).to_have_count(0)


async def test_a_visitor_who_was_forgotten_finds_an_empty_page(
    guests: Visitors, llmock: Llmock, owner: OwnersPhone
) -> None:
    visitor = await guests.one()
    await leaves_an_address(visitor, llmock, "ida@example.org")
    contact = re.search(r"C-\w+", await owner.gets("ida@example.org"))
    assert contact
    await owner.writes(f"{contact[0]}: I will write.")
    await expect(words(visitor)).to_have_count(1)
    await owner.writes(f"/forget {contact[0]}")
    await expect(visitor.turns).to_have_count(0)
    await llmock.says("Good day.")
    assert await visitor.ask("Good day?") == "Good day."


async def test_words_wait_for_a_reply_that_is_being_written(
    guests: Visitors, llmock: Llmock, owner: OwnersPhone
) -> None:
    visitor = await guests.one()
    await leaves_an_address(visitor, llmock, "mary@example.org")
    alert = await owner.message("mary@example.org")
    slow = " ".join(f"Word {number}." for number in range(120))
    await llmock.says(slow)
    await visitor.say("Tell me something long?")
    await expect(visitor.reply).to_contain_text("Word 3.")
    await owner.writes("A word from me.", alert)
    await owner.gets("Shown to the visitor")
    await expect(words(visitor)).to_contain_text("A word from me.")
    assert await visitor.hears() == slow


async def test_a_reader_is_not_moved_and_is_told_where_to_look(
    guests: Visitors, llmock: Llmock, owner: OwnersPhone
) -> None:
    visitor = await guests.on_a_phone()
    await leaves_an_address(visitor, llmock, "byron@example.org")
    await greets(visitor, llmock, LONG)
    talk = visitor.page.locator("#talk")
    await talk.evaluate("node => { node.scrollTop = 40; }")
    await owner.writes("Look down here.", await owner.message("byron@example.org"))
    pointer = visitor.button("Ada Lovelace wrote to you")
    await expect(pointer).to_be_visible()
    assert await talk.evaluate("node => node.scrollTop") == 40
    await pointer.click()
    await expect(words(visitor)).to_be_in_viewport()
    await expect(words(visitor)).to_be_focused()
    await expect(pointer).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_screen_reader_hears_of_it_and_all_can_read_it(
    guests: Visitors, llmock: Llmock, owner: OwnersPhone, scheme: str
) -> None:
    visitor = await guests.on_a_phone(color_scheme=scheme)
    await leaves_an_address(visitor, llmock, f"{scheme}@example.org")
    await owner.writes("Words to read.", await owner.message(f"{scheme}@example.org"))
    block = visitor.page.get_by_role("log").get_by_role("group", name=WROTE)
    await expect(block).to_be_visible()
    await expect(visitor.page.get_by_role("log")).to_have_attribute("aria-live", "polite")
    for part in (block.locator("header p"), block.locator("time"), block.locator(".reply p")):
        contrast: float = await part.evaluate(CONTRAST)
        assert contrast >= 4.5
    assert await visitor.page.evaluate("document.documentElement.scrollWidth") == 390


async def test_a_closed_chat_says_so_and_keeps_what_is_written(
    guests: Visitors, learner: Site, llmock: Llmock, owner: OwnersPhone
) -> None:
    visitor = await guests.one()
    await visitor.box.fill("Are you there?")
    sign = visitor.page.locator("#sign")
    await expect(sign).to_be_empty()
    await owner.writes("/pause")
    try:
        await expect(sign).to_contain_text("Ada Lovelace has closed this chat for a while.")
        await expect(sign).to_have_role("status")
        await expect(visitor.box).to_have_accessible_description(re.compile("has closed this chat"))
        await expect(visitor.button("Send")).to_have_attribute("aria-disabled", "true")
        await visitor.box.press("Enter")
        await visitor.button("Send").click(force=True)
        await expect(visitor.box).to_have_value("Are you there?")
        await expect(visitor.questions).to_have_count(0)
        late = await guests.one()
        await expect(late.page.locator("#sign")).to_contain_text("has closed this chat")
        async with raw_api(learner.url) as caller:
            assert await caller.said("Are you there?") == CLOSED
        assert await llmock.requests() == []
    finally:
        await owner.writes("/resume")
    await expect(sign).to_be_empty()
    await expect(visitor.notice.filter(has_text="open again")).to_be_visible()
    await llmock.says("I am here.")
    await visitor.box.press("Enter")
    assert await visitor.hears() == "I am here."
