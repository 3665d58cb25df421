"""Where visitors wait: the cap, the turns, and a transcript that keeps what was said however it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from agent.conversation import Reply, WireMessage
from agent.events import TextDelta, TurnFinished
from agent.loop import Replica
from agent.model import OpenAIModel, ToolChoice
from agent.reception import BLANK, OTHER_TAB, Opened, Reception, Refused
from agent.toolkit import Toolkit
from store.store import Store
from tests.fakes.provider import Answer, Provider, delta, says


@pytest.fixture
def reception(model: OpenAIModel, store: Store) -> Reception:
    return Reception(Replica(model, Toolkit(), "You are Ada."), store, max_replies=3, max_message_chars=50)


async def text_of(reception: Reception, conversation_id: str, message: str) -> str:
    last = None
    async for event in reception.answer(conversation_id, message):
        last = event
    assert isinstance(last, TurnFinished)
    return last.turn.text


async def test_what_was_said_is_kept_and_goes_into_the_next_request(reception: Reception, provider: Provider) -> None:
    provider.script = [says("I am Ada."), says("In London.")]
    await text_of(reception, "c1", " Who are you? ")
    await text_of(reception, "c1", "Where were you born?")
    assert [message["content"] for message in provider.requests[1]["messages"]] == [
        "You are Ada.", "Who are you?", "I am Ada.", "Where were you born?",
    ]  # fmt: skip


async def test_nothing_of_one_conversation_reaches_another(reception: Reception, provider: Provider) -> None:
    await asyncio.gather(text_of(reception, "c1", "I am Sarah"), text_of(reception, "c2", "I am Tom"))
    await text_of(reception, "c2", "Who am I?")
    assert "Sarah" not in str(provider.requests[-1])
    assert "Tom" in str(provider.requests[-1])


async def test_never_more_than_three_replies_at_once_and_all_are_answered(
    reception: Reception, provider: Provider
) -> None:
    go = asyncio.Event()
    provider.answer = lambda asked: Answer([delta(content="Yes."), delta(finish="stop")], hold=go)
    first_words = asyncio.Queue[None]()

    async def visit(number: int) -> str:
        text = ""
        async for event in reception.answer(f"c{number}", "Hi"):
            if isinstance(event, TextDelta):
                first_words.put_nowait(None)
                text += event.text
        return text

    visits = [asyncio.create_task(visit(number)) for number in range(12)]
    for _ in range(3):
        await first_words.get()
    assert len(provider.requests) == 3
    go.set()
    assert await asyncio.gather(*visits) == ["Yes."] * 12
    assert provider.most == 3


async def test_two_tabs_of_one_conversation_take_turns(reception: Reception, provider: Provider) -> None:
    provider.script = [says("One."), says("Two.")]
    await asyncio.gather(text_of(reception, "c1", "First"), text_of(reception, "c1", "Second"))
    assert provider.most == 1
    assert [message["role"] for message in provider.requests[1]["messages"]] == ["system", "user", "assistant", "user"]


async def test_a_third_tab_is_asked_to_wait(reception: Reception, provider: Provider) -> None:
    go = asyncio.Event()
    provider.answer = lambda asked: Answer([delta(content="Yes."), delta(finish="stop")], hold=go)
    two = [asyncio.create_task(text_of(reception, "c1", message)) for message in ("First", "Second")]
    opened = reception.answer("c2", "Hi")
    assert isinstance(await anext(opened), Opened)
    with pytest.raises(Refused, match=OTHER_TAB):
        await text_of(reception, "c1", "Third")
    go.set()
    await asyncio.gather(*two)
    await opened.aclose()


@pytest.mark.parametrize(("message", "why"), [("", BLANK), (" \n\t", BLANK), ("x" * 51, "under 50 characters")])
async def test_a_blank_or_long_message_is_refused_with_a_sentence(
    reception: Reception, provider: Provider, store: Store, message: str, why: str
) -> None:
    with pytest.raises(Refused, match=why):
        await text_of(reception, "c1", message)
    assert provider.requests == []
    assert (await store.transcript("c1")).conversation.turns == ()


async def test_half_surrogates_break_nothing(reception: Reception, provider: Provider) -> None:
    provider.script = [Answer([delta(content="Hi \ud83d"), delta(finish="stop")]), says("Bye.")]
    first = await text_of(reception, "c1", "Hello \ud83d\ude00 \udfff")
    assert await text_of(reception, "c1", "Bye") == "Bye."
    first.encode()
    assert provider.requests[1]["messages"][1]["content"] == "Hello 😀 \ufffd"


async def test_stop_keeps_what_was_shown_and_the_talk_goes_on(
    reception: Reception, provider: Provider, store: Store
) -> None:
    provider.script = [Answer([delta(content="Once upon")], hold=asyncio.Event()), says("Of course.")]
    shown = asyncio.Event()

    async def visit() -> None:
        async for event in reception.answer("c1", "A story"):
            if isinstance(event, TextDelta):
                shown.set()

    task = asyncio.create_task(visit())
    await shown.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    [turn] = (await store.transcript("c1")).conversation.turns
    assert (turn.message, turn.text, turn.incomplete) == ("A story", "Once upon", True)
    assert await text_of(reception, "c1", "Go on") == "Of course."


async def test_a_visitor_who_leaves_frees_the_place(reception: Reception, provider: Provider) -> None:
    provider.answer = lambda asked: Answer([delta(content="Hm")], hold=asyncio.Event())
    leaving = [reception.answer(f"c{number}", "Hi") for number in range(3)]
    for events in leaving:
        await anext(events)
        await events.aclose()
    provider.answer = None
    assert await text_of(reception, "c9", "Hi") == "Hello."


async def test_retry_asks_the_last_message_again(reception: Reception, provider: Provider, store: Store) -> None:
    provider.script = [says("Bad."), says("Good.")]
    await text_of(reception, "c1", "Hi")
    async for _ in reception.retry("c1"):
        pass
    assert provider.requests[0]["messages"] == provider.requests[1]["messages"]
    assert [turn.text for turn in (await store.transcript("c1")).conversation.turns] == ["Good."]


async def test_retry_without_a_message_is_refused(reception: Reception) -> None:
    with pytest.raises(Refused):
        async for _ in reception.retry("c1"):
            pass


class Broken:
    """A model with a fault of ours in it."""

    name = "broken"

    async def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        yield "Well"
        raise ZeroDivisionError("the key is sk-secret")

    async def close(self) -> None:
        pass


async def test_a_fault_of_ours_is_a_sentence_with_a_reference_that_stands_in_the_log(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    async def tell(reference: str) -> None:
        told.append(reference)

    replica = Replica(Broken(), Toolkit(), "x")
    reception = Reception(replica, store, max_replies=3, max_message_chars=50, on_trouble=tell)
    text = await text_of(reception, "c1", "Hi")
    [reference] = told
    assert reference in text
    assert "ZeroDivision" not in text
    assert "sk-secret" not in text
    assert any(reference in r.getMessage() and r.exc_info for r in caplog.records if r.levelno == logging.ERROR)
    assert reference in reception.trouble
    assert (await store.transcript("c1")).conversation.turns[0].message == "Hi"


async def test_the_log_says_in_one_line_how_a_turn_went_without_a_word_of_it(
    reception: Reception, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.script = [says("In London.")]
    await text_of(reception, "c1", "Where were you born?")
    [line] = [r.getMessage() for r in caplog.records if r.name == "agent.reception" and r.levelno == logging.INFO]
    for part in ("turn c1/0", "answered", "first word after 0.", "tokens 10 in, 5 out", "tools none"):
        assert part in line
    assert "London" not in line
    assert "born" not in line
