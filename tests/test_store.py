"""The store: what goes in comes out, over restarts, races and bad input."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.conversation import Conversation, Passage, Reply, Step, ToolCall, ToolResult, Turn, Usage
from store.records import Question
from store.store import Store
from tests.alert_house import text_of
from tests.databases import run_sql

pytestmark = pytest.mark.both_databases


def said(text: str, message: str = "Hello") -> Turn:
    return Turn(message, (Step(Reply(text)),))


# Conversations

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)
)
usages = st.none() | st.builds(Usage, st.integers(0), st.integers(0), st.integers(0))


@st.composite
def steps_with_calls(draw: st.DrawFn) -> Step:
    ids = draw(st.lists(texts.filter(bool), min_size=1, max_size=3, unique=True))
    extras = st.lists(st.tuples(texts, json_values), max_size=2).map(tuple)
    calls = tuple(ToolCall(id, draw(texts), draw(texts), draw(extras)) for id in ids)
    reply = Reply(draw(texts), calls, "tool_calls", draw(usages), draw(texts))
    return Step(reply, tuple(ToolResult(id, draw(texts)) for id in ids))


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    last = Reply(draw(texts), (), draw(st.sampled_from(["stop", "length", "content_filter", "cut"])), draw(usages))
    found = draw(st.lists(st.builds(Passage, texts, texts, texts), max_size=2))
    return Turn(draw(texts), (*draw(st.lists(steps_with_calls(), max_size=2)), Step(last)), found=tuple(found))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(said=st.lists(turns(), max_size=3))
async def test_a_conversation_is_read_back_as_it_was(store: Store, said: list[Turn]) -> None:
    talk = uuid4().hex
    for turn in said:
        await store.close_turn(talk, await store.open_turn(talk, turn.message), turn, "answered")
    assert await store.conversation(talk) == Conversation(tuple(said))


async def test_a_conversation_survives_a_restart(url: str) -> None:
    before = Store.open(url)
    await before.close_turn("talk", await before.open_turn("talk", "Hello"), said("Good day"), "answered")
    await before.close()
    after = Store.open(url)
    assert (await after.conversation("talk")).turns == (said("Good day"),)
    await after.close()


async def test_a_turn_that_was_never_closed_reads_as_broken_off(store: Store) -> None:
    await store.open_turn("talk", "Are you there?")
    (turn,) = (await store.conversation("talk")).turns
    assert turn == Turn("Are you there?", (Step(Reply(text="", finish="cut")),))
    assert turn.incomplete


async def test_an_unknown_conversation_is_empty(store: Store) -> None:
    transcript = await store.transcript("nobody")
    assert (transcript.conversation, transcript.numbers, transcript.feedback) == (Conversation(), (), ())
    assert await store.drop_last_turn("nobody") is None


async def test_conversations_do_not_mix(store: Store) -> None:
    assert [await store.open_turn(talk, f"from {talk}") for talk in ("a", "b", "a")] == [0, 0, 1]
    assert (await store.conversation("b")).visitor_messages == ("from b",)


async def test_a_dropped_turn_leaves_the_conversation_and_its_number_is_not_used_again(store: Store) -> None:
    for message in ("first", "second"):
        await store.open_turn("talk", message)
    assert await store.drop_last_turn("talk") == "second"
    assert await store.open_turn("talk", "second, again") == 2
    transcript = await store.transcript("talk")
    assert transcript.numbers == (0, 2)
    assert transcript.conversation.visitor_messages == ("first", "second, again")


async def test_turns_can_be_dropped_until_none_is_left(store: Store) -> None:
    for message in ("first", "second"):
        await store.open_turn("talk", message)
    assert [await store.drop_last_turn("talk") for _ in range(3)] == ["second", "first", None]


async def test_a_dropped_turn_stays_in_the_table(store: Store, url: str) -> None:
    await store.open_turn("talk", "dropped words")
    await store.drop_last_turn("talk")
    assert run_sql(url, "SELECT message, replaced FROM turns") == [("dropped words", True)]


async def test_feedback_is_read_back_with_its_turn(store: Store) -> None:
    for message in ("a", "b", "c", "d"):
        await store.open_turn("talk", message)
    for number, liked in ((0, True), (1, False), (2, True), (2, None)):
        await store.set_feedback("talk", number, liked)
    assert (await store.transcript("talk")).feedback == (True, False, None, None)


async def test_a_turn_that_is_not_there_cannot_be_changed(store: Store) -> None:
    await store.open_turn("talk", "a")
    with pytest.raises(LookupError, match="no turn 1"):
        await store.set_feedback("talk", 1, True)
    with pytest.raises(LookupError, match="no turn 0"):
        await store.close_turn("other talk", 0, said("text"), "answered")


async def test_turns_opened_at_once_from_two_processes_get_different_numbers(store: Store, url: str) -> None:
    other = Store.open(url)
    numbers = await asyncio.gather(*[one.open_turn("talk", "hello") for one in (store, other) * 10])
    await other.close()
    assert sorted(numbers) == list(range(20))


async def test_half_surrogates_and_nul_are_mended_rather_than_refused(store: Store) -> None:
    number = await store.open_turn("talk", "a\x00b\ud83d\ude00c\ud800")
    await store.close_turn("talk", number, said("lone \udfff, joined \ud83d\ude00"), "answered")
    (turn,) = (await store.conversation("talk")).turns
    assert turn.message == "a\ufffdb\U0001f600c\ufffd"
    assert turn.text == "lone \ufffd, joined \U0001f600"
    assert await store.add_question(Question("talk", "why \ud800?"), text_of) == "new"
    assert await store.add_question(Question("talk", "why \ud800?"), text_of) == "known"
