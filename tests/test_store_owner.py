"""What the owner does from the phone: each update once; lists, counts, forgetting."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from store.owner import OFFSET, Owner
from store.records import Contact, Sent, Stats, StoreError, Target
from store.store import Store
from tests.alert_house import LATER, due
from tests.databases import run_sql
from tests.owner_house import answer, ask, did, forget, leave, say

pytestmark = pytest.mark.both_databases

PAST = datetime(2020, 1, 1, tzinfo=UTC)


# Updates


async def test_an_update_is_handled_once_and_queues_the_reply(store: Store) -> None:
    calls: list[int] = []

    def act(owner: Owner) -> str:
        calls.append(1)
        owner.set_state("paused", "true")
        return "Paused."

    assert await store.update_offset() is None
    assert [await store.handle_update(update, act, 9) for update in (7, 7, 3)] == [True, False, False]
    assert await store.update_offset() == 8
    assert (await store.state("paused"), len(calls), await due(store)) == ("true", 1, ["Paused."])
    assert await store.handle_update(12, lambda _: None)
    assert (await store.update_offset(), await due(store)) == (13, [])


async def test_an_update_that_fails_changes_nothing_and_can_be_handled_again(store: Store) -> None:
    def fails(owner: Owner) -> str:
        owner.set_state("paused", "true")
        owner.tell("talk", "Hello")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.handle_update(7, fails)
    assert (await store.state("paused"), await store.owner_words("talk"), await store.update_offset()) == (
        None,
        (),
        None,
    )
    assert await store.handle_update(7, lambda _: "ok")


async def test_an_update_that_reaches_two_processes_is_handled_by_one(store: Store, url: str) -> None:
    reference = await ask(store)
    other = Store.open(url)

    def act(owner: Owner) -> str:
        target = owner.target_named(reference)
        assert target is not None
        owner.tell("talk", owner.answer(target, "Yes.").reference)
        return "Thank you."

    for update in range(5):
        done = await asyncio.gather(*[one.handle_update(update, act) for one in (store, other) * 4])
        assert sorted(done) == [False] * 7 + [True]
    await other.close()
    assert len(await store.owner_words("talk")) == 1 + 5
    assert len(await store.answers()) == 1
    assert (await due(store)).count("Thank you.") == 1  # they are claimed one by one


async def test_after_a_quiet_week_updates_of_any_number_are_new(store: Store, url: str) -> None:
    await store.handle_update(1000, lambda _: None)
    assert not await store.handle_update(5, lambda _: None)
    for days, offset in ((5.9, 1001), (6.1, None)):
        changed = datetime.now(UTC) - timedelta(days=days)
        run_sql(url, f"UPDATE states SET changed = '{changed:%Y-%m-%d %H:%M:%S.%f}+00:00'")
        assert await store.update_offset() == offset
    assert await store.handle_update(5, lambda _: None)
    assert await store.update_offset() == 6


async def test_another_bot_counts_for_itself(store: Store) -> None:
    assert await store.handle_update(1000, lambda _: None, offset_key="offset of bot 1")
    assert await store.handle_update(5, lambda _: None, offset_key="offset of bot 2")
    assert await store.update_offset("offset of bot 2") == 6
    assert await store.state(OFFSET) is None


async def test_half_surrogates_and_nul_in_the_owners_words_are_mended(store: Store) -> None:
    await answer(store, await ask(store), "a\x00b \ud83d\ude00 \ud800")
    assert [one.text for one in await store.answers()] == ["a\ufffdb \U0001f600 \ufffd"]
    assert await store.owner_words("talk") != ()


# Lists and counts


async def test_leads_and_open_questions_are_listed_newest_first(store: Store) -> None:
    contacts = [await leave(store, Contact("talk", f"{n}@example.org", f"{n}@example.org", "")) for n in range(3)]
    questions = [await ask(store, f"{n}?") for n in range(4)]
    await answer(store, questions[2], "Yes.")
    left = await did(store, lambda owner: owner.contacts(2))
    assert [(reference, contact.email) for reference, contact, _ in left] == [
        (contacts[2], "2@example.org"),
        (contacts[1], "1@example.org"),
    ]
    asked = await did(store, lambda owner: owner.open_questions(2))
    assert [(reference, question) for reference, question, _ in asked] == [(questions[3], "3?"), (questions[1], "1?")]
    assert all(created.utcoffset() == timedelta(0) for *_, created in (*left, *asked))


async def test_counts_are_those_since_a_moment(store: Store) -> None:
    assert await store.stats(PAST) == Stats(0, 0, 0, 0, 0, 0, 0, 0, 0.0)
    for message in ("a", "b", "c"):
        await say(store, message)
    await say(store, "d", talk="other")
    await store.drop_last_turn("other")
    await say(store, "d", talk="other")
    await store.set_feedback("talk", 0, True)
    await store.set_feedback("talk", 1, True)
    await store.set_feedback("other", 1, False)
    await leave(store)
    await answer(store, await ask(store), "Yes.")
    await ask(store, "Why?")
    assert await store.stats(PAST) == Stats(2, 4, 1, 2, 1, 1, 2, 1, 0.0)
    assert await did(store, lambda owner: owner.stats(datetime.now(UTC) + LATER)) == Stats(0, 0, 0, 0, 1, 0, 0, 0, 0.0)


# Forgetting


async def test_a_forgotten_answer_is_gone_for_all_and_its_question_open_again(store: Store) -> None:
    question = await ask(store)
    kept = await answer(store, question, "Yes.")
    assert await forget(store, kept.reference.lower()) == f"the answer {kept.reference}"
    assert (await store.answers(), await store.owner_words("talk"), await store.news("talk")) == ((), (), 0)
    assert [one[0] for one in await did(store, lambda owner: owner.open_questions(9))] == [question]
    assert await forget(store, kept.reference) is None


@pytest.mark.parametrize("by", ["contact", "more", "question"])
async def test_all_of_a_visitor_is_forgotten_and_nothing_of_others(store: Store, url: str, by: str) -> None:
    references: dict[str, str] = {}
    for talk in ("other", "talk"):
        await say(store, "Do you ski? I am Jane.", talk=talk)
        references["question"] = await ask(store, "Do you ski?", talk)
        references["contact"] = await leave(store, Contact(talk, f"{talk}@example.org", f"{talk}@example.org", "a job"))
        references["more"] = await leave(store, Contact(talk, f"{talk}@example.org", "", "a pay rise"))
        await did(store, lambda owner, talk=talk: owner.tell(talk, "Hello."))
    kept = await answer(store, references["question"], "Yes.")
    now = datetime.now(UTC) + LATER
    claimed = [one.id for one in await store.claim_due_alerts(99, now, "me")]
    assert await store.forget(references[by]) == (
        "all that was kept of one visitor: 1 contact, 1 question, 1 message. "
        f"What you answered stays, for others: {kept.reference}"
    )
    await store.mark_sent(claimed, now, "me", Sent("1", (1,)))  # the alerts were on their way
    assert await store.conversation("talk") == await store.conversation("nobody")
    for table in ("turns", "contacts", "questions", "alerts", "owner_words"):
        left = run_sql(url, f"SELECT DISTINCT conversation_id FROM {table}")
        assert left == [("other",)], table
    assert [one.reference for one in await store.answers()] == [kept.reference]
    assert await store.target_named(kept.reference) == Target("answer", kept.reference, None, "Do you ski?", "")
    assert (await answer(store, kept.reference, "No.")).text == "No."
    assert await store.forget(references[by]) is None


async def test_where_the_same_address_was_left_as_well_is_said(store: Store) -> None:
    first = await leave(store, Contact("one", "Jane@example.org", "", "a job"))
    await leave(store, Contact("two", "joe@example.org", "", "a job"))
    second = await leave(store, Contact("three", "jane@example.org", "", "a job"))
    assert (
        await store.forget(second)
        == f"all that was kept of one visitor: 1 contact, 0 questions, 0 messages. Also left under {first}"
    )
    assert await store.forget(first) == "all that was kept of one visitor: 1 contact, 0 questions, 0 messages"


async def test_costs_stay_when_a_visitor_is_forgotten(store: Store, url: str) -> None:
    await leave(store)
    run_sql(
        url,
        "INSERT INTO model_calls (conversation_id, number, at, provider, model, outcome, duration_s, tokens_in,"
        " tokens_cached, tokens_out, estimated, finish, tools, error, cost) VALUES"
        " ('talk', 0, '2030-01-01 10:00:00.000000', 'h', 'm', 'answered', 1, 2, 0, 3, FALSE, 'stop', '', '', 0.5)",
    )
    (reference, *_), *_ = await did(store, lambda owner: owner.contacts(1))
    await forget(store, reference)
    assert [(row.conversation_id, row.cost) for row in await store.model_calls()] == [("", 0.5)]
    assert (await store.stats(PAST)).cost == 0.5


@pytest.mark.parametrize("reference", ["C-22222", "T-22222", "A-22222", "", "%", "talk"])
async def test_what_is_not_there_cannot_be_forgotten(store: Store, reference: str) -> None:
    await leave(store)
    assert await forget(store, reference) is None
    assert len(await store.contacts()) == 1


# States


async def test_a_state_is_kept_changed_and_taken_away(store: Store) -> None:
    values: list[str | None] = []
    for value in ("1", "2", None, None):
        await store.set_state("key", value)
        values.append(await store.state("key"))
    assert values == ["1", "2", None, None]
    assert await did(store, lambda owner: owner.state("key")) is None


async def test_an_unusable_database_stops_an_update_with_an_error_of_the_store(store: Store, url: str) -> None:
    run_sql(url, "DROP TABLE states")
    with pytest.raises(StoreError):
        await store.handle_update(1, lambda _: "reply")
    assert await due(store) == []
