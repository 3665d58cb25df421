"""What visitors leave: contacts and questions, each with its alert."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from store.records import Contact, Question
from store.store import Store
from tests.alert_house import due, text_of


def contact(email: str = "jane@example.org", notes: str = "a job", name: str = "Jane", talk: str = "talk-1") -> Contact:
    return Contact(talk, email, email, notes, name)


async def test_a_contact_is_kept_with_one_alert(store: Store) -> None:
    jane = Contact("talk", "jane@bücher.example", "jane@xn--bcher-kva.example", "a job", "Jane", disposable=True)
    assert await store.add_contact(jane, text_of)
    assert await store.contacts() == [jane]
    (alert,) = await store.claim_due_alerts(10, datetime.now(UTC))
    assert (alert.kind, alert.text, alert.attempts) == ("contact", f"An alert, {alert.reference}", 1)
    assert alert.reference.startswith("C-")
    assert alert.created.utcoffset() == timedelta(0)


async def test_a_contact_without_an_alert_is_not_kept(store: Store) -> None:
    def fails(reference: str) -> str:
        raise ZeroDivisionError(reference)

    with pytest.raises(ZeroDivisionError):
        await store.add_contact(contact(), fails)
    with pytest.raises(ZeroDivisionError):
        await store.add_question(Question("talk", "Why?"), fails)
    assert (await store.contacts(), await store.questions(), await due(store)) == ([], [], [])
    assert await store.add_contact(contact(), text_of)


async def test_the_same_address_in_a_conversation_is_one_alert(store: Store) -> None:
    assert await store.add_contact(contact("Jane@Example.org"), text_of)
    assert not await store.add_contact(contact("jane@example.ORG"), text_of)
    assert await store.add_contact(contact("john@example.org"), text_of)
    assert await store.add_contact(contact("jane@example.org", talk="talk-2"), text_of)
    assert len(await due(store)) == 3


async def test_newer_notes_and_a_newer_name_are_kept(store: Store) -> None:
    await store.add_contact(contact(notes="a job", name=""), text_of)
    assert not await store.add_contact(contact(notes="a job in Turin", name="Jane"), text_of)
    assert not await store.add_contact(contact(notes="", name=""), text_of)
    assert await store.contacts() == [contact(notes="a job in Turin", name="Jane")]


@pytest.mark.parametrize("again", ["Do you ski?", "do you  SKI", " Do you\nski ?! ", "Do you ski…", "do you ski。"])
async def test_the_same_question_in_a_conversation_is_one_alert(store: Store, again: str) -> None:
    assert await store.add_question(Question("talk", "Do you ski?"), text_of)
    assert not await store.add_question(Question("talk", again), text_of)
    assert await store.questions() == [Question("talk", "Do you ski?")]
    assert len(await due(store)) == 1


@pytest.mark.parametrize("other", ["Do you swim?", "Do you ski in C++?", "?"])
async def test_another_question_is_another_alert(store: Store, other: str) -> None:
    assert await store.add_question(Question("talk", "Do you ski?"), text_of)
    assert await store.add_question(Question("talk", other), text_of)
    assert await store.add_question(Question("talk 2", "Do you ski?"), text_of)


async def test_contacts_and_questions_come_newest_first(store: Store) -> None:
    for email in ("a@example.org", "b@example.org"):
        await store.add_contact(contact(email), text_of)
        await store.add_question(Question("talk", f"Who is {email}?"), text_of)
    assert [one.email for one in await store.contacts()] == ["b@example.org", "a@example.org"]
    assert [one.question for one in await store.questions()] == ["Who is b@example.org?", "Who is a@example.org?"]


async def test_one_of_many_simultaneous_contacts_wins(store: Store, url: str) -> None:
    other = Store.open(url)
    fresh = await asyncio.gather(*[one.add_contact(contact(), text_of) for one in (store, other) * 10])
    await other.close()
    assert sorted(fresh) == [False] * 19 + [True]
    assert len(await due(store)) == 1


async def test_references_are_readable_and_differ(store: Store) -> None:
    references: list[str] = []

    def collect(reference: str) -> str:
        references.append(reference)
        return reference

    for index in range(40):
        await store.add_question(Question("talk", f"Question {index}"), collect)
    assert len(set(references)) == 40
    assert not set("".join(one.removeprefix("Q-") for one in references)) & set("01OILAEIU-")
