"""Which address a contact is taken with, and which is refused or asked about."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from store.records import Contact
from tests.tool_house import House, opened, turn, visit
from tools.gather_user_details import INVALID, NOT_WRITTEN

EXACT = (
    "ERROR: Invalid email format provided. Please inform the user that the email is invalid and ask them to "
    "provide a valid one."
)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with opened(tmp_path) as house:
        yield house


# Taken


async def test_a_contact_is_stored_with_all_that_is_known(house: House) -> None:
    answer = await house.gather(visit("I am Jané: jané@exämple.de"), "jané@exämple.de", name="Jané")
    assert answer == "ok"
    assert await house.store.contacts() == [
        Contact("conversation-1", "jané@exämple.de", "jané@xn--exmple-cua.de", "Wants to talk about a job.", "Jané")
    ]


async def test_the_alert_carries_the_end_of_the_conversation(house: House) -> None:
    await house.gather(
        visit("jane@acme.com", turn("Are you free in May?", text="Leave me your address.")), "jane@acme.com"
    )
    (alert,) = await house.alerts()
    for words in ("jane@acme.com", "Are you free in May?", "Leave me your address."):
        assert words in alert


async def test_a_throw_away_address_is_taken_and_marked(house: House) -> None:
    assert await house.gather(visit("jane@mailinator.com"), "jane@mailinator.com") == "ok"
    assert [contact.disposable for contact in await house.store.contacts()] == [True]


async def test_a_display_name_fills_the_name(house: House) -> None:
    assert await house.gather(visit("Jane Doe <jane@acme.com>"), "Jane Doe <jane@acme.com>") == "ok"
    assert [contact.name for contact in await house.store.contacts()] == ["Jane Doe"]


async def test_a_given_name_wins_over_a_display_name(house: House) -> None:
    assert await house.gather(visit("JD <jane@acme.com>"), "JD <jane@acme.com>", name="Jane\n Doe") == "ok"
    assert [contact.name for contact in await house.store.contacts()] == ["Jane Doe"]


async def test_no_name_may_be_written_as_null(house: House) -> None:
    assert await house.gather(visit("jane@acme.com"), "jane@acme.com", name=None) == "ok"


async def test_empty_notes_cost_no_contact(house: House) -> None:
    assert await house.gather(visit("jane@acme.com"), "jane@acme.com", notes="") == "ok"
    assert len(await house.store.contacts()) == 1


async def test_the_same_contact_twice_is_one_alert(house: House) -> None:
    for email in ("jane@acme.com", "Jane@ACME.com"):
        assert await house.gather(visit("jane@acme.com"), email) == "ok"
    assert len(await house.alerts()) == 1


async def test_an_address_from_an_earlier_turn_counts(house: House) -> None:
    assert await house.gather(visit("Yes, do write!", turn("I am jane@acme.com")), "jane@acme.com") == "ok"


@pytest.mark.parametrize(
    "message",
    [
        "jane@acme.com",
        "Jane Doe <JANE@ACME.COM>, thanks",
        "mailto:jane@acme.com?subject=Hi",
        "It is “jane@acme.com”.",
        "**jane@acme.com**!",
        "jane\u200b@acme.com",
        "ｊａｎｅ＠ａｃｍｅ．ｃｏｍ",
        "jane@acme.com、よろしく",
        "not bob@acme.com, take jane@acme.com",
        "line one\njane@acme.com\nline two",
    ],
)
async def test_an_address_counts_however_the_visitor_wrote_it(house: House, message: str) -> None:
    assert await house.gather(visit(message), "jane@acme.com") == "ok"


async def test_both_forms_of_a_domain_are_one_address(house: House) -> None:
    assert await house.gather(visit("jané@xn--exmple-cua.de"), "jané@exämple.de") == "ok"


# Refused


@pytest.mark.parametrize(
    "email", ["", "jane", "jane@acme", "jane@gmail", "jane@acme..com", ".jane@acme.com", "jane@acme.com\nBcc: x@y.zz"]
)
@pytest.mark.parametrize("wrote", [True, False], ids=["written", "not written"])
async def test_a_malformed_address_gives_the_exact_error(house: House, email: str, wrote: bool) -> None:
    assert INVALID == EXACT
    assert await house.gather(visit(f"I am {email}" if wrote else "Hello"), email) == EXACT
    assert await house.store.contacts() == []
    assert await house.alerts() == []


@pytest.mark.parametrize(
    ("message", "email"),
    [
        ("Please write to me.", "example@example.com"),
        ("xjane@acme.com", "jane@acme.com"),
        ("jane@acme.community", "jane@acme.com"),
        ("jane@acme.com.au", "jane@acme.com"),
        ("jane@mail.acme.com", "jane@acme.com"),
        ("mary.jane@acme.com", "jane@acme.com"),
        ("jane+spam@acme.com", "jane@acme.com"),
        ("jan@acme.com", "jane@acme.com"),
        ("jane@strasse.de", "jane@straße.de"),
        ("Hello", "jane@gmial.com"),
        ("jane@gmail.com", "jane@gmial.com"),
        ("Hello", "jane@acme,com"),
        ("Hello", "jane at acme dot com"),
        ("xjane at acme dot com", "jane@acme.com"),
        ("Hello", "a@b.co; c@d.co"),
    ],
)
async def test_an_address_that_the_visitor_never_wrote_is_not_taken(house: House, message: str, email: str) -> None:
    assert await house.gather(visit(message), email) == NOT_WRITTEN
    assert await house.store.contacts() == []


async def test_what_the_replica_said_is_not_what_the_visitor_wrote(house: House) -> None:
    earlier = turn("Hello", text="Is your address jane@acme.com?")
    assert await house.gather(visit("Hm", earlier), "jane@acme.com") == NOT_WRITTEN


async def test_an_invented_address_is_not_taken_at_the_second_try_either(house: House) -> None:
    earlier = turn("Hello", ("gather_user_details", NOT_WRITTEN))
    assert await house.gather(visit("Well?", earlier), "jane@acme.com") == NOT_WRITTEN


# Asked about


async def test_a_near_miss_is_asked_about_once_and_then_taken(house: House) -> None:
    first = visit("jane@gmial.com")
    question = await house.gather(first, "jane@gmial.com")
    assert '"jane@gmail.com"' in question
    assert await house.gather(first, "jane@gmial.com") == question  # nobody has answered yet
    assert await house.store.contacts() == []
    asked = turn("jane@gmial.com", ("gather_user_details", question))
    assert await house.gather(visit("It is jane@gmial.com!", asked), "jane@gmial.com") == "ok"
    assert [contact.email for contact in await house.store.contacts()] == ["jane@gmial.com"]


async def test_a_suggestion_that_the_visitor_confirms_is_taken(house: House) -> None:
    question = await house.gather(visit("jane@gmial.com"), "jane@gmial.com")
    asked = turn("jane@gmial.com", ("gather_user_details", question))
    assert await house.gather(visit("Yes", asked), "jane@gmail.com") == "ok"


async def test_a_question_about_one_address_says_nothing_of_another(house: House) -> None:
    question = await house.gather(visit("jane@gmial.com"), "jane@gmial.com")
    asked = turn("jane@gmial.com", ("gather_user_details", question))
    assert '"joe@gmail.com"' in await house.gather(visit("and joe@gmial.com", asked), "joe@gmial.com")
    assert await house.gather(visit("Yes", asked), "ane@gmail.com") == NOT_WRITTEN


async def test_only_this_tool_can_have_asked(house: House) -> None:
    question = await house.gather(visit("jane@gmial.com"), "jane@gmial.com")
    forged = turn(question, ("inform_unknown", question), text=question)
    assert await house.gather(visit("jane@gmial.com", forged), "jane@gmial.com") == question


@pytest.mark.parametrize(
    "message",
    [
        "jane@gmial.com",
        "jane@gmail,com",
        "jane@gmail.con",
        "jane at gmail dot com",
        "Jane (at) gmail.com",
        "jane @ gmail.com",
    ],
)
async def test_what_the_model_mended_by_itself_is_asked_about(house: House, message: str) -> None:
    question = await house.gather(visit(message), "jane@gmail.com")
    assert question.startswith('NOT STORED YET: ask the visitor whether they mean "jane@gmail.com"')
    asked = turn(message, ("gather_user_details", question))
    assert await house.gather(visit("Exactly", asked), "jane@gmail.com") == "ok"


@pytest.mark.parametrize("message", ["jane@acme,com", "jane at acme dot com", "jane [at] acme [dot] com"])
async def test_what_cannot_be_an_address_is_asked_about_as_it_stands(house: House, message: str) -> None:
    assert '"jane@acme.com"' in await house.gather(visit(f"Sure: {message}"), message)
    assert await house.store.contacts() == []


async def test_of_several_addresses_the_visitor_has_to_choose(house: House) -> None:
    both = visit("a@b.co or c@d.co")
    answer = await house.gather(both, "a@b.co; c@d.co")
    assert '"a@b.co", "c@d.co"' in answer
    assert "which" in answer
    assert await house.store.contacts() == []
    asked = turn(both.message, ("gather_user_details", answer))
    assert await house.gather(visit("The first", asked), "a@b.co") == "ok"


async def test_a_slip_that_is_chosen_among_several_is_asked_about_next(house: House) -> None:
    both = visit("jane@gmial.com or c@d.co")
    answer = await house.gather(both, both.message)
    assert '"jane@gmial.com", "c@d.co"' in answer
    asked = turn(both.message, ("gather_user_details", answer))
    assert '"jane@gmail.com"' in await house.gather(visit("The first", asked), "jane@gmial.com")
    assert await house.store.contacts() == []


async def test_an_address_spelled_out_is_a_choice_too(house: House) -> None:
    both = visit("jane at acme dot com, or c@d.co")
    assert '"jane@acme.com", "c@d.co"' in await house.gather(both, "jane@acme.com, c@d.co")


async def test_an_address_that_the_model_adds_is_no_choice(house: House) -> None:
    assert await house.gather(visit("jane@acme.com"), "jane@acme.com; boss@acme.com") == "ok"
    assert [contact.email for contact in await house.store.contacts()] == ["jane@acme.com"]
