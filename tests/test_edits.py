"""What an edit of the owner's message does: it changes the text that the message brought, and nothing else."""

from __future__ import annotations

import pytest

from alerts.commands import ANOTHER, PAUSED
from store.store import Store
from tests.fakes.phone import Phone
from tests.fakes.telegram import FakeTelegram
from tests.inbox_house import Talk, inbox_of, listening

EDIT = "edited_message"


@pytest.fixture
def talk(store: Store) -> Talk:
    return Talk(store)


async def shown(store: Store, conversation: str = "talk") -> list[str]:
    return [words.text for words in await store.owner_words(conversation)]


@pytest.mark.both_databases
async def test_mended_words_stand_in_the_place_of_the_old_ones(talk: Talk, store: Store) -> None:
    await store.open_turn("talk", "Write to jane@example.org")
    left, reference = await talk.contact()
    await talk.says("I will cal you.", left)
    await talk.says("See you!", left)
    before = await store.news("talk")
    said = await talk.says("I will call you.", left, kind=EDIT, message_id=talk.said - 2)
    assert said == "Changed: the visitor reads your new text in the place of the old one."
    assert sorted(await shown(store)) == ["I will call you.", "See you!"]
    assert await store.news("talk") > before  # so that an open page asks for them
    assert await store.target_of(talk.chat_id, talk.answered) == [await store.target_named(reference)]


@pytest.mark.both_databases
async def test_an_edit_that_changes_nothing_to_read_does_nothing(talk: Talk, store: Store) -> None:
    asked, _ = await talk.question()
    await talk.says("In Turin.", asked)
    version = await store.answers_version()
    assert await talk.says("In Turin.", asked, kind=EDIT, message_id=talk.said) is None
    assert await store.answers_version() == version


@pytest.mark.parametrize("text", ["In Turin.", "In Milan."])
async def test_what_was_forgotten_does_not_come_back(talk: Talk, store: Store, text: str) -> None:
    asked, _ = await talk.question()
    left, reference = await talk.contact("joe@example.org", "another talk")
    await talk.says("In Turin.", asked)
    answered = talk.said
    await talk.says("Hello.", left)
    told = talk.said
    await talk.says(f"/forget {(await store.answers())[0].reference}")
    await talk.says(f"/forget {reference}")
    assert await talk.says(text, asked, kind=EDIT, message_id=answered) is None
    assert await talk.says(text, left, kind=EDIT, message_id=told) is None
    assert await store.answers() == ()
    assert await shown(store) == await shown(store, "another talk") == []


async def test_an_edit_of_a_correction_that_was_corrected_again_does_nothing(talk: Talk, store: Store) -> None:
    asked, _ = await talk.question()
    await talk.says("In Milan.", asked)
    first = talk.said
    await talk.says("In Turin.", asked)
    assert await talk.says("In Rome.", asked, kind=EDIT, message_id=first) is None
    assert [answer.text for answer in await store.answers()] == ["In Turin."]


async def test_a_text_with_a_reference_is_mended_without_it(talk: Talk, store: Store) -> None:
    _, reference = await talk.question()
    left, contact = await talk.contact()
    await talk.says(f"{reference}: In Milan.")
    said = await talk.says(f"{reference}: In Turin.", kind=EDIT, message_id=talk.said)
    assert said is not None
    assert said.startswith("Kept as A-")
    assert [answer.text for answer in await store.answers()] == ["In Turin."]
    assert await talk.says(f"{contact}: In Turin.", kind=EDIT, message_id=talk.said) is None  # the same text
    assert await talk.says(f"{contact}: In Rome.", kind=EDIT, message_id=talk.said) == ANOTHER
    await talk.says("Hello.", left)
    assert await talk.says("C-22222: Hello!", left, kind=EDIT, message_id=talk.said) == ANOTHER
    assert sorted(await shown(store)) == ["Hello.", "In Turin."]


async def test_a_command_does_not_run_from_an_edit(api: FakeTelegram, store: Store) -> None:
    owner = Phone(api)
    async with listening(inbox_of(api, store)):
        paused = owner.writes("/pause")
        owner.writes("/resume")
        owner.edits(paused, "/pause")
        await api.is_read()
    assert await store.state(PAUSED) is None
    assert (await store.alert_counts())["pending"] == 2


async def test_a_message_of_another_bot_with_the_same_number_is_another_one(talk: Talk, store: Store) -> None:
    asked, _ = await talk.question()
    left, _ = await talk.contact()
    await talk.says("In Turin.", asked)
    number = talk.said
    await talk.says("Hello.", left, message_id=number)
    await talk.says("Hello!", left, kind=EDIT, message_id=number)
    assert [answer.text for answer in await store.answers()] == ["In Turin."]
    assert sorted(await shown(store)) == ["Hello!", "In Turin."]
