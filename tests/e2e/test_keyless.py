"""The main job without any key: the notes are quoted, the tools and the phone work as with a provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx
import pytest
from playwright.async_api import expect

from tests.e2e.browser import Visitors
from tests.e2e.conftest import Opens, Starts, fresh
from tests.e2e.peers import Phone
from tests.e2e.raw_api import raw_api
from tests.e2e.replica import Site


@fresh
async def guests(keyless: Site, visitors_of: Opens) -> AsyncGenerator[Visitors]:
    async with visitors_of(keyless) as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "words", "file"),
    [
        ("Which languages do you speak?", "native speaker of English", "04-faq.md"),
        ("Where were you educated?", "educated at home", "04-faq.md"),
    ],
)
async def test_a_question_is_answered_by_a_quote_with_its_file(
    guests: Visitors, question: str, words: str, file: str
) -> None:
    visitor = await guests.one()
    reply = await visitor.ask(question)
    assert words in reply
    chips = visitor.page.get_by_role("group", name="Sources").get_by_role("button")
    await expect(chips.filter(has_text=file).first).to_be_visible()


async def test_it_says_once_that_it_quotes_notes(guests: Visitors) -> None:
    visitor = await guests.one()
    assert "No language model" in await visitor.ask("Which languages do you speak?")
    assert "No language model" not in await visitor.ask("Who are you?")


async def test_an_address_reaches_the_owners_phone(guests: Visitors, keyless: Site, phone: Phone) -> None:
    visitor = await guests.one()
    reply = await visitor.ask("I'm Mary Somerville, write to mary.somerville@example.net about stars")
    assert "passed your details on" in reply
    await expect(visitor.turns.last).to_contain_text("Passed your details on")
    alert = await phone.gets("mary.somerville@example.net")
    assert alert.startswith("New contact: Mary Somerville")
    assert "mary.somerville@example.net" in [contact.email for contact in await keyless.contacts()]


async def test_a_bad_address_is_asked_for_again(guests: Visitors, keyless: Site) -> None:
    visitor = await guests.one()
    reply = await visitor.ask("Write to mary@@example..net please")
    assert "does not look right" in reply
    assert [contact for contact in await keyless.contacts() if "mary@@" in contact.email] == []


async def test_a_question_that_nothing_answers_reaches_the_owners_phone(guests: Visitors, phone: Phone) -> None:
    visitor = await guests.one()
    question = "What is your favourite programming language for embedded microcontrollers?"
    reply = await visitor.ask(question)
    assert "do not answer that" in reply
    await expect(visitor.turns.last).to_contain_text("Passed your question on")
    assert question in await phone.gets("embedded microcontrollers")


async def test_a_reload_brings_the_conversation_back(guests: Visitors) -> None:
    visitor = await guests.one()
    first = await visitor.ask("Which languages do you speak?")
    await visitor.page.reload()
    await expect(visitor.questions).to_have_text(["Which languages do you speak?"])
    assert await visitor.hears() == first
    assert await visitor.ask("Thank you!")


async def test_without_any_setting_it_starts_says_what_is_missing_and_works(replica_with: Starts) -> None:
    async with replica_with() as site:
        for missing in ("OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN"):
            assert len([line for line in site.log.splitlines() if missing in line]) == 1
        async with raw_api(site.url) as api:
            assert "native speaker of English" in await api.said("Which languages do you speak?")
            assert "passed your details on" in await api.said("Write to somebody@example.org")
        await site.logs(r"Alert without a channel.*somebody@example\.org")
        assert [contact.email for contact in await site.contacts()] == ["somebody@example.org"]
        assert (await site.alert_counts())["kept"] == 1
        async with httpx.AsyncClient(base_url=site.url) as client:
            health = (await client.get("/healthz")).json()
        assert health["knowledge"] == health["store"] == "ok"
        assert "OPENAI_API_KEY" in health["model"]
        assert "TELEGRAM_BOT_TOKEN" in health["alerts"]
