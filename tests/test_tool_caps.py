"""How much one conversation may leave, and what becomes of what a visitor adds later."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.tool_house import House, opened, turn, visit
from tools import gather_user_details, inform_unknown


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with opened(tmp_path) as house:
        yield house


# Contacts


async def test_a_sixth_contact_is_answered_with_a_sentence_and_neither_stored_nor_alerted(house: House) -> None:
    emails = [f"visitor{number}@acme.com" for number in range(6)]
    here = visit(", ".join(emails))
    assert [await house.gather(here, email) for email in emails] == ["ok"] * 5 + [gather_user_details.FULL]
    assert sorted(contact.email for contact in await house.store.contacts()) == emails[:5]
    assert len(await house.alerts()) == 5


async def test_a_contact_that_is_there_already_is_no_sixth_one(house: House) -> None:
    emails = [f"visitor{number}@acme.com" for number in range(5)]
    here = visit(", ".join(emails))
    for email in [*emails, *emails]:
        assert await house.gather(here, email) == "ok"
    assert len(await house.alerts()) == 5


async def test_a_bad_address_takes_nobody_s_place(house: House) -> None:
    for number in range(7):
        assert await house.gather(visit(f"visitor{number}@acme"), f"visitor{number}@acme") != "ok"
    assert await house.gather(visit("jane@acme.com"), "jane@acme.com") == "ok"


# What is added later


async def test_what_a_lead_says_later_is_added_and_alerted_once(house: House) -> None:
    """The owner has only seen the first alert: a budget named in the second message must reach the phone too."""
    here = visit("The budget is 50k.", turn("I am jane@acme.com, I have a job for you."))
    assert await house.gather(here, "jane@acme.com", notes="Has a job.", name="Jane") == "ok"
    for _ in range(2):
        assert await house.gather(here, "jane@acme.com", notes="The budget is 50k.", name="Jane") == "ok"
    assert [contact.notes for contact in await house.store.contacts()] == ["Has a job.\nThe budget is 50k."]
    first, more = await house.alerts()
    reference = first.splitlines()[-1]
    assert more.splitlines()[:3] == ["More from Jane", "jane@acme.com", "Wants: The budget is 50k."]
    assert more.splitlines()[-1] == f"{reference}-2"


async def test_a_talkative_lead_rings_a_handful_of_times_and_loses_nothing(house: House) -> None:
    here = visit("jane@acme.com")
    for number in range(12):
        assert await house.gather(here, "jane@acme.com", notes=f"Wish {number}.") == "ok"
    assert len(await house.alerts()) == 1 + 5
    (contact,) = await house.store.contacts()
    assert contact.notes.splitlines() == [f"Wish {number}." for number in range(12)]


async def test_notes_without_end_are_answered_with_a_sentence(house: House) -> None:
    here = visit("jane@acme.com")
    answers = [await house.gather(here, "jane@acme.com", notes=letter * 4000) for letter in "abcd"]
    assert answers == ["ok", "ok", gather_user_details.FULL, gather_user_details.FULL]
    assert len(await house.alerts()) == 2


# Questions


async def test_an_eleventh_question_is_answered_with_a_sentence_and_neither_stored_nor_alerted(house: House) -> None:
    here = visit("Tell me everything.")
    answers = [await house.ask(here, f"What is {number}?") for number in range(11)]
    assert answers == ["ok"] * 10 + [inform_unknown.FULL]
    assert len(await house.store.questions()) == 10
    assert len(await house.alerts()) == 10


async def test_a_question_that_was_passed_on_is_no_eleventh_one(house: House) -> None:
    here = visit("Tell me everything.")
    for number in [*range(10), *range(10)]:
        assert await house.ask(here, f"What is {number}?") == "ok"
    assert len(await house.alerts()) == 10


async def test_contacts_are_taken_when_the_questions_are_used_up(house: House) -> None:
    here = visit("jane@acme.com")
    for number in range(11):
        await house.ask(here, f"What is {number}?")
    assert await house.gather(here, "jane@acme.com") == "ok"


@pytest.mark.parametrize("sentence", [gather_user_details.FULL, inform_unknown.FULL])
def test_the_model_is_told_that_nothing_was_stored_and_what_to_say(sentence: str) -> None:
    assert sentence.startswith("NOT STORED: ")
    assert "visitor" in sentence
    assert "ok" not in sentence.split()
