"""The page's events and the chat API: what they take, what they tell, and that they never raise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable
from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.conversation import Transcript
from agent.loop import Replica
from agent.model import OpenAIModel
from agent.persona import Profile
from agent.reception import BLANK, Reception
from agent.toolkit import Toolkit
from pages.page import chat_page
from pages.talk import NOT_TEXT, Talk, clean, conversation_of_session, known
from store.store import Store
from tests.fakes.provider import Provider, says

PAGE_ID = "A" * 32


class Thumbs:
    def __init__(self) -> None:
        self.given: list[tuple[str, int, bool | None]] = []

    async def __call__(self, conversation_id: str, number: int, liked: bool | None) -> None:
        self.given.append((conversation_id, number, liked))


@pytest.fixture
def thumbs() -> Thumbs:
    return Thumbs()


@pytest.fixture
def talk(model: OpenAIModel, store: Store, thumbs: Thumbs) -> Talk:
    reception = Reception(Replica(model, Toolkit(), "You are Ada."), store, max_replies=3, max_message_chars=50)
    return Talk(reception, thumbs)


async def pieces(source: AsyncGenerator[str]) -> list[dict[str, Any]]:
    return [json.loads(piece) async for piece in source]


def visit(session_hash: str | None) -> gr.Request:
    return cast(gr.Request, SimpleNamespace(session_hash=session_hash))


async def test_a_question_of_a_new_visitor_begins_a_conversation_and_tells_its_id(
    talk: Talk, provider: Provider
) -> None:
    provider.script = [says("I am Ada.")]
    told = await pieces(talk.ask("Who are you?", ""))
    assert known(told[0]["conversation"]) == told[0]["conversation"] != ""
    assert told[0]["turn"]["state"] == "waiting"
    assert told[-1]["turn"]["state"] == "done"
    assert told[-1]["turn"]["blocks"] == ["<p>I am Ada.</p>\n"]


async def test_earlier_messages_never_travel_with_a_reply(talk: Talk, provider: Provider) -> None:
    provider.script = [says("The first answer."), says("The second answer.")]
    await pieces(talk.ask("The first question", PAGE_ID))
    told = await pieces(talk.ask("The second question", PAGE_ID))
    assert "first" not in json.dumps(told)
    assert [turn["question"] for turn in json.loads(await talk.load(PAGE_ID))["history"]] == [
        "The first question", "The second question",
    ]  # fmt: skip


async def test_a_line_break_travels_as_a_separator(talk: Talk, provider: Provider) -> None:
    provider.script = [says("Yes.")]
    await pieces(talk.ask("One\u2028two", PAGE_ID))
    assert provider.requests[0]["messages"][-1]["content"] == "One\ntwo"


@pytest.mark.parametrize("posted", [None, 5, True, ["a"], {"role": "system"}, "", "  \n", "\0"])
async def test_whatever_is_no_message_is_refused_in_a_sentence(talk: Talk, posted: Any, provider: Provider) -> None:
    assert [piece["refused"] for piece in await pieces(talk.ask(posted, posted))] == [BLANK]
    assert provider.requests == []


@pytest.mark.parametrize(
    "forged", [None, 5, ["a"], "x", "A" * 31, "A" * 33, "A" * 31 + "'", "api." + "a" * 28, "é" * 32]
)
async def test_a_forged_id_is_nobodys_conversation(talk: Talk, forged: Any, provider: Provider) -> None:
    assert json.loads(await talk.load(forged))["history"] == []
    assert [piece.get("refused") for piece in await pieces(talk.again(forged))] == [BLANK]
    provider.script = [says("Yes.")]
    told = await pieces(talk.ask("Hello", forged))
    assert told[0]["conversation"] not in ("", forged)


async def test_a_half_character_does_not_break_the_message(talk: Talk, provider: Provider) -> None:
    provider.script = [says("Yes.")]
    told = await pieces(talk.ask("Hi \ud83d", PAGE_ID))
    assert told[-1]["turn"]["state"] == "done"


async def test_a_last_message_is_answered_once_more(talk: Talk, provider: Provider) -> None:
    provider.script = [says("Once."), says("Twice.")]
    await pieces(talk.ask("Well?", PAGE_ID))
    told = await pieces(talk.again(PAGE_ID))
    assert told[-1]["turn"]["blocks"] == ["<p>Twice.</p>\n"]
    assert len(json.loads(await talk.load(PAGE_ID))["history"]) == 1


async def test_a_reply_that_the_visitor_stopped_comes_back_as_stopped(talk: Talk, provider: Provider) -> None:
    held = says("So it is.")
    held.hold = asyncio.Event()
    provider.script = [held, says("Next."), says("Cut", finish=None)]
    asking = talk.ask("Well?", PAGE_ID)
    async for piece in asking:
        if json.loads(piece)["turn"]["blocks"]:
            break
    await asking.aclose()
    await pieces(talk.ask("And?", PAGE_ID))
    await pieces(talk.ask("Hm?", PAGE_ID))
    turns = json.loads(await talk.load(PAGE_ID))["history"]
    assert [turn["state"] for turn in turns] == ["stopped", "done", "broken"]


async def test_gradio_finds_no_mark_to_translate_in_what_is_told(talk: Talk, provider: Provider) -> None:
    provider.script = [says('`__i18n__{"key": "common.submit"}`')]
    told = [piece async for piece in talk.ask("Say it", PAGE_ID)]
    assert "__i18n__" not in "".join(told)
    assert "__i18n__" in json.loads(told[-1])["turn"]["blocks"][0]


async def test_two_pieces_with_the_same_content_differ(talk: Talk) -> None:
    assert await talk.load("") != await talk.load("")


@pytest.mark.parametrize(("thumb", "liked"), [("7 up", True), ("7 down", False), ("7 none", None)])
async def test_a_thumb_is_kept(talk: Talk, thumbs: Thumbs, thumb: str, liked: bool | None) -> None:
    await talk.rate(thumb, PAGE_ID)
    assert thumbs.given == [(PAGE_ID, 7, liked)]


@pytest.mark.parametrize("thumb", [None, 7, "up", "7 sideways", "-7 up", "7 up\n", "99999999999 up", "٣ up"])
async def test_a_forged_thumb_is_dropped(talk: Talk, thumbs: Thumbs, thumb: Any) -> None:
    await talk.rate(thumb, PAGE_ID)
    await talk.rate("7 up", "somebody")
    assert thumbs.given == []


class BrokenStore:
    """A store whose disk is gone."""

    async def transcript(self, *_: Any, **__: Any) -> Transcript:
        raise OSError("disk at /secret/path")

    async def open_turn(self, *_: Any, **__: Any) -> int:
        raise OSError("disk at /secret/path")

    async def close_turn(self, *_: Any, **__: Any) -> None:
        raise OSError("disk at /secret/path")

    async def drop_last_turn(self, *_: Any, **__: Any) -> str | None:
        raise OSError("disk at /secret/path")


async def test_a_fault_becomes_a_sentence_with_a_reference_that_stands_in_the_log(
    model: OpenAIModel, caplog: pytest.LogCaptureFixture
) -> None:
    async def lost(conversation_id: str, number: int, liked: bool | None) -> None:
        raise OSError("disk at /secret/path")

    reception = Reception(Replica(model, Toolkit(), "You are Ada."), BrokenStore(), max_replies=3, max_message_chars=50)
    talk = Talk(reception, lost)
    sentences = [
        *[piece["refused"] for piece in await pieces(talk.ask("Hello", PAGE_ID))],
        *[piece["refused"] for piece in await pieces(talk.again(PAGE_ID))],
        json.loads(await talk.load(PAGE_ID))["refused"],
        *[reply async for reply in talk.chat("Hello", visit("s1"))],
    ]
    await talk.rate("7 up", PAGE_ID)
    assert len(sentences) == 4
    for sentence in sentences:
        assert "secret" not in sentence
        reference = sentence.rpartition("Reference ")[2].rstrip(")")
        assert f"[{reference}]" in caplog.text
    assert caplog.text.count("The store failed") == 3
    assert caplog.text.count("An event of the page failed") == 2


# --- The API ---


async def test_the_api_streams_the_reply_so_far_and_ends_with_the_whole(talk: Talk, provider: Provider) -> None:
    provider.script = [says("I am Ada Lovelace.")]
    replies = [reply async for reply in talk.chat("Who are you?", visit("s1"))]
    assert replies[-1] == "I am Ada Lovelace."
    assert all(replies[-1].startswith(reply) for reply in replies)


async def test_one_session_is_one_conversation(talk: Talk, provider: Provider) -> None:
    provider.script = [says("Yes."), says("No."), says("Who knows."), says("Well.")]
    for message, session in [("One", "s1"), ("Two", "s1"), ("Three", None), ("Four", None)]:
        _ = [reply async for reply in talk.chat(message, visit(session))]
    asked = [[m["content"] for m in request["messages"] if m["role"] == "user"] for request in provider.requests]
    assert asked == [["One"], ["One", "Two"], ["Three"], ["Four"]]


@pytest.mark.parametrize(("posted", "reply"), [(None, NOT_TEXT), (5, NOT_TEXT), (["a"], NOT_TEXT), (" ", BLANK)])
async def test_the_api_answers_what_is_no_message_with_a_sentence(talk: Talk, posted: Any, reply: str) -> None:
    assert [said async for said in talk.chat(posted, visit("s1"))] == [reply]


@given(st.text() | st.none())
def test_no_session_of_the_api_can_be_a_conversation_of_the_page(session: str | None) -> None:
    assert known(conversation_of_session(session)) == ""


@given(st.text() | st.none() | st.integers() | st.lists(st.text()))
def test_a_cleaned_message_can_be_stored_and_sent(posted: Any) -> None:
    cleaned = clean(posted)
    assert "\0" not in cleaned
    cleaned.encode()


# --- How it is wired ---


async def nothing_new(conversation_id: str) -> int:
    return 0


async def is_open() -> bool:
    return False


def dependencies_of(talk: Talk) -> Iterable[Any]:
    profile = Profile("Ada Lovelace", "", ())
    page = chat_page(
        talk.reception,
        profile,
        max_replies=3,
        max_message_chars=50,
        on_feedback=talk.on_feedback,
        newest=nothing_new,
        is_closed=is_open,
    )
    return page.blocks.fns.values()


async def test_page_and_api_wait_in_one_line(talk: Talk) -> None:
    lines = {fn.api_name: (fn.concurrency_id, fn.concurrency_limit) for fn in dependencies_of(talk) if fn.queue}
    assert lines == dict.fromkeys(("ask", "again", "chat"), ("chat", 3))


async def test_no_event_of_the_page_needs_eval_or_takes_a_history(talk: Talk) -> None:
    for fn in dependencies_of(talk):
        assert not fn.js
        assert {type(block).__name__ for block in fn.inputs} <= {"Textbox", "Api"}
