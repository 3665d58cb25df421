"""What visitors leave: contacts and questions, each with its alert."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.inbox import CONTACTS, FOLLOW_UPS, QUESTIONS, merged_notes
from store.records import Contact, Question
from store.store import Store
from tests.alert_house import due, text_of

pytestmark = pytest.mark.both_databases


def contact(email: str = "jane@example.org", notes: str = "a job", name: str = "Jane", talk: str = "talk-1") -> Contact:
    return Contact(talk, email, email, notes, name)


def more_of(reference: str) -> str:
    return f"More, {reference}"


async def test_a_contact_is_kept_with_one_alert(store: Store) -> None:
    jane = Contact("talk", "jane@bücher.example", "jane@xn--bcher-kva.example", "a job", "Jane", disposable=True)
    assert await store.add_contact(jane, text_of, text_of) == "new"
    assert await store.contacts() == [jane]
    (alert,) = await store.claim_due_alerts(10, datetime.now(UTC))
    assert (alert.kind, alert.text, alert.attempts) == ("contact", f"An alert, {alert.reference}", 1)
    assert alert.reference.startswith("C-")
    assert alert.created.utcoffset() == timedelta(0)


async def test_a_contact_without_an_alert_is_not_kept(store: Store) -> None:
    def fails(reference: str) -> str:
        raise ZeroDivisionError(reference)

    with pytest.raises(ZeroDivisionError):
        await store.add_contact(contact(), fails, fails)
    with pytest.raises(ZeroDivisionError):
        await store.add_question(Question("talk", "Why?"), fails)
    assert (await store.contacts(), await store.questions(), await due(store)) == ([], [], [])
    assert await store.add_contact(contact(), text_of, text_of) == "new"


async def test_the_same_address_in_a_conversation_is_one_alert(store: Store) -> None:
    assert await store.add_contact(contact("Jane@Example.org"), text_of, text_of) == "new"
    assert await store.add_contact(contact("jane@example.ORG"), text_of, text_of) == "known"
    assert await store.add_contact(contact("john@example.org"), text_of, text_of) == "new"
    assert await store.add_contact(contact("jane@example.org", talk="talk-2"), text_of, text_of) == "new"
    assert len(await due(store)) == 3


@pytest.mark.parametrize(
    ("kept", "newer", "both"),
    [
        ("a job", "The budget is 50k.", "a job\nThe budget is 50k."),
        ("a job\nThe budget is 50k.", "From May on.", "a job\nThe budget is 50k.\nFrom May on."),
        ("a job", "A  job.", "a job"),
        ("a job\nThe budget is 50k.", "the budget is 50k", "a job\nThe budget is 50k."),
        ("a job", "", "a job"),
        ("", "a job", "a job"),
        ("a job", "no job", "a job\nno job"),
        ("A job", "A job in Turin", "A job in Turin"),
        ("pays 50", "pays 500", "pays 50\npays 500"),
        ("a job", "\x00", "a job\n\ufffd"),
    ],
)  # fmt: skip
def test_notes_grow_and_repeat_nothing(kept: str, newer: str, both: str) -> None:
    assert merged_notes(kept, newer) == both
    assert merged_notes(both, newer) == both


@given(
    st.lists(st.lists(st.sampled_from(["a", "job", "50", "500", ".", "?", "\n"]), max_size=5), min_size=1, max_size=5)
)
def test_nothing_that_was_noted_is_lost(said: list[list[str]]) -> None:
    notes = ""
    for words in said:
        notes = merged_notes(notes, " ".join(words))
    kept = spoken(notes)
    assert all(spoken(line) in kept for words in said for line in " ".join(words).splitlines())


def spoken(text: str) -> str:
    return f" {' '.join(re.findall('[a-z0-9]+', text))} ".replace("  ", " ")


async def test_newer_notes_are_added_with_an_alert_that_names_the_first(store: Store) -> None:
    assert await store.add_contact(contact(notes="a job"), text_of, more_of) == "new"
    assert await store.add_contact(contact(notes="50k"), text_of, more_of) == "more"
    assert await store.add_contact(contact(notes="a job"), text_of, more_of) == "known"
    assert await store.contacts() == [contact(notes="a job\n50k")]
    first, more = await store.claim_due_alerts(10, datetime.now(UTC))
    assert (more.kind, more.reference, more.text) == ("contact", f"{first.reference}-2", f"More, {first.reference}-2")


async def test_a_name_given_later_rings_once_and_an_empty_one_changes_nothing(store: Store) -> None:
    for name, kept in (("", "new"), ("Jane", "more"), ("", "known"), ("Jane Doe", "more")):
        assert await store.add_contact(contact(name=name), text_of, more_of) == kept
    assert await store.contacts() == [contact(name="Jane Doe")]
    assert [text.split(",")[0] for text in await due(store)] == ["An alert", "More"]


async def test_follow_ups_are_a_handful_in_a_conversation_and_later_notes_are_kept_all_the_same(store: Store) -> None:
    emails = ("a@example.org", "b@example.org")
    for email in emails:
        await store.add_contact(contact(email, "note"), text_of, more_of)
    for number in range(4):
        for email in emails:
            assert await store.add_contact(contact(email, f"note {number}."), text_of, more_of) == "more"
    texts = await due(store)
    assert sum(text.startswith("More") for text in texts) == FOLLOW_UPS
    assert len(texts) == 2 + FOLLOW_UPS
    assert {one.notes for one in await store.contacts()} == {"note 0.\nnote 1.\nnote 2.\nnote 3."}


async def test_notes_end_somewhere(store: Store) -> None:
    for letter, kept in (("a", "new"), ("b", "more"), ("c", "full"), ("b", "known")):
        assert await store.add_contact(contact(notes=letter * 5000), text_of, more_of) == kept
    assert [len(one.notes) for one in await store.contacts()] == [10_001]


async def test_a_conversation_leaves_five_contacts(store: Store) -> None:
    answers = [await store.add_contact(contact(f"{number}@example.org"), text_of, more_of) for number in range(7)]
    assert answers == ["new"] * CONTACTS + ["full"] * 2
    assert len(await store.contacts()) == len(await due(store)) == CONTACTS
    assert await store.add_contact(contact("0@example.org"), text_of, more_of) == "known"
    assert await store.add_contact(contact("0@example.org", talk="talk-2"), text_of, more_of) == "new"


async def test_a_conversation_passes_ten_questions_on(store: Store) -> None:
    answers = [await store.add_question(Question("talk", f"What is {number}?"), text_of) for number in range(12)]
    assert answers == ["new"] * QUESTIONS + ["full"] * 2
    assert len(await store.questions()) == len(await due(store)) == QUESTIONS
    assert await store.add_question(Question("talk", "what is 0"), text_of) == "known"
    assert await store.add_question(Question("talk 2", "What is 99?"), text_of) == "new"


@pytest.mark.parametrize("again", ["Do you ski?", "do you  SKI", " Do you\nski ?! ", "Do you ski…", "do you ski。"])
async def test_the_same_question_in_a_conversation_is_one_alert(store: Store, again: str) -> None:
    assert await store.add_question(Question("talk", "Do you ski?"), text_of) == "new"
    assert await store.add_question(Question("talk", again), text_of) == "known"
    assert await store.questions() == [Question("talk", "Do you ski?")]
    assert len(await due(store)) == 1


@pytest.mark.parametrize("other", ["Do you swim?", "Do you ski in C++?", "?"])
async def test_another_question_is_another_alert(store: Store, other: str) -> None:
    assert await store.add_question(Question("talk", "Do you ski?"), text_of) == "new"
    assert await store.add_question(Question("talk", other), text_of) == "new"
    assert await store.add_question(Question("talk 2", "Do you ski?"), text_of) == "new"


async def test_contacts_and_questions_come_newest_first(store: Store) -> None:
    for email in ("a@example.org", "b@example.org"):
        await store.add_contact(contact(email), text_of, text_of)
        await store.add_question(Question("talk", f"Who is {email}?"), text_of)
    assert [one.email for one in await store.contacts()] == ["b@example.org", "a@example.org"]
    assert [one.question for one in await store.questions()] == ["Who is b@example.org?", "Who is a@example.org?"]


async def test_one_of_many_simultaneous_contacts_wins(store: Store, url: str) -> None:
    other = Store.open(url)
    fresh = await asyncio.gather(*[one.add_contact(contact(), text_of, text_of) for one in (store, other) * 10])
    await other.close()
    assert sorted(fresh) == ["known"] * 19 + ["new"]
    assert len(await due(store)) == 1


async def test_limits_hold_and_no_note_is_lost_when_all_come_at_once(store: Store, url: str) -> None:
    other = Store.open(url)
    both = [(number, one) for number, one in enumerate((store, other) * 8)]
    left = [one.add_contact(contact(f"{number}@example.org"), text_of, more_of) for number, one in both]
    asked = [one.add_question(Question("talk-1", f"What is {number}?"), text_of) for number, one in both]
    kept = await asyncio.gather(*left, *asked)
    assert kept.count("new") == CONTACTS + QUESTIONS
    await store.add_contact(contact(talk="talk-2"), text_of, more_of)
    more = [one.add_contact(contact(notes=f"note {n}.", talk="talk-2"), text_of, more_of) for n, one in both]
    assert await asyncio.gather(*more) == ["more"] * len(both)
    await other.close()
    (jane,) = [one for one in await store.contacts() if one.conversation_id == "talk-2"]
    assert len(jane.notes.splitlines()) == 1 + len(both)


async def test_references_are_readable_and_differ(store: Store) -> None:
    references: list[str] = []

    def collect(reference: str) -> str:
        references.append(reference)
        return reference

    for index in range(40):
        await store.add_question(Question(f"talk {index}", "Why?"), collect)
    assert len(set(references)) == 40
    assert not set("".join(one.removeprefix("Q-") for one in references)) & set("01OILAEIU-")
