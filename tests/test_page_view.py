"""The view of a turn: what the browser and the API are told of it, and of a whole conversation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.conversation import (
    Conversation,
    Draft,
    OwnerWords,
    Reply,
    Step,
    ToolCall,
    ToolResult,
    Transcript,
    Turn,
)
from agent.events import Event, Replied, StopReason, TextDelta, ToolFinished, ToolStarted, TurnFinished
from agent.reception import Opened
from agent.toolkit import Arguments, Tool, Visit
from pages.markup import Growing
from pages.view import BROKE_OFF, HISTORY_CHARACTERS, HISTORY_TURNS, Showing, history, owner_words


class Nothing(Arguments):
    """Does nothing."""


async def fine(arguments: Nothing, visit: Visit) -> str:
    return "ok"


TOOLS = {"note": Tool("note", Nothing, fine, "Writing it down…", "Written down")}
CALL = ToolCall("c1", "note", "{}")


def shown_after(*events: Opened | Event) -> dict[str, Any]:
    showing = Showing(TOOLS)
    for event in events:
        showing = showing.after(event)
    return showing.for_the_browser(Growing().after(showing.text))


def test_a_turn_waits_until_there_are_words() -> None:
    assert shown_after(Opened(7)) == {"number": 7, "state": "waiting", "blocks": [], "tools": [], "sources": []}
    assert shown_after(Opened(7), TextDelta("Yes"))["state"] == "streaming"


def test_a_tool_has_a_line_while_it_runs_and_another_when_it_is_done() -> None:
    begun = (Opened(1), Replied(Reply("", (CALL,))), ToolStarted(CALL))
    assert shown_after(*begun)["tools"] == [{"state": "working", "text": "Writing it down…"}]
    done = (*begun, ToolFinished(CALL, ToolResult("c1", "ok")))
    assert shown_after(*done)["tools"] == [{"state": "done", "text": "Written down"}]


@pytest.mark.parametrize("result", [None, ToolResult("c1", "ERROR: Ask for the address.")])
def test_a_call_that_failed_or_asked_back_leaves_no_line(result: ToolResult | None) -> None:
    assert shown_after(Replied(Reply("", (CALL,))), ToolStarted(CALL), ToolFinished(CALL, result))["tools"] == []


def test_a_tool_that_nobody_has_leaves_no_line() -> None:
    assert shown_after(ToolStarted(ToolCall("c1", "invented", "{}")))["tools"] == []


def test_a_finished_turn_says_how_it_ended() -> None:
    def ended(reply: Reply, stop: Any) -> dict[str, Any]:
        return shown_after(TextDelta("So"), TurnFinished(Draft("q").ended(reply), stop))

    assert ended(Reply("So it is."), "answered") == {
        "number": None, "state": "done", "blocks": ["<p>So it is.</p>\n"], "tools": [], "sources": [],
    }  # fmt: skip
    assert ended(Reply("So", finish="cut"), "answered")["state"] == "broken"
    assert ended(Reply("So", finish="cut"), "stopped")["state"] == "stopped"
    assert ended(Reply("Sorry."), "failed")["state"] == "failed"


WRITTEN = OwnerWords(5, 3, "*Since 2019.*", "Since when?", datetime(2026, 5, 1, 12, 30, tzinfo=UTC))
WORDS = {
    "id": 5, "question": "Since when?", "blocks": ["<p><em>Since 2019.</em></p>\n"],
    "written": "2026-05-01T12:30:00+00:00",
}  # fmt: skip


def kept(*turns: Turn, words: tuple[OwnerWords, ...] = (), stops: tuple[str, ...] = ()) -> Transcript:
    """As the store gives it; the words follow the last turn."""
    numbers = tuple(range(3, 3 + len(turns)))
    placed = (*((),) * (len(turns) - 1), words)
    return Transcript(Conversation(turns), numbers, (None,) * len(turns), placed, stops or ("answered",) * len(turns))


def test_a_conversation_comes_back_with_questions_as_text_and_thumbs() -> None:
    said = Reply("**So.**", sources=("cv.md",))
    turn = Turn("<b>Why?</b>", (Step(Reply("", (CALL,)), (ToolResult("c1", "ok"),)), Step(said)))
    transcript = Transcript(Conversation((turn,)), (3,), (True,), ((WRITTEN,),), ("answered",))
    assert history(transcript, TOOLS) == [
        {
            "number": 3,
            "question": "<b>Why?</b>",
            "state": "done",
            "blocks": ["<p><strong>So.</strong></p>\n"],
            "tools": [{"state": "done", "text": "Written down"}],
            "sources": ["cv.md"],
            "words": [WORDS],
            "liked": True,
        }
    ]


def test_the_owners_words_come_with_the_turns_that_they_stand_under() -> None:
    turns = Turn("One?", (Step(Reply("A.")),)), Turn("Two?", (Step(Reply("B.")),))
    assert owner_words(kept(*turns, words=(WRITTEN,))) == [{"number": 3, "words": []}, {"number": 4, "words": [WORDS]}]


@pytest.mark.parametrize(
    ("finish", "stop", "state"),
    [
        ("stop", "answered", "done"), ("stop", "max_turns", "done"), ("cut", "stopped", "stopped"),
        ("cut", "answered", "broken"), ("cut", "", "broken"), ("stop", "failed", "failed"),
    ],
)  # fmt: skip
def test_a_turn_comes_back_as_it_ended(finish: Any, stop: str, state: str) -> None:
    (turn,) = history(kept(Turn("Why?", (Step(Reply("So", finish=finish)),)), stops=(stop,)), TOOLS)
    assert turn["state"] == state


def for_callers(reply: Reply, stop: StopReason = "answered") -> str:
    return Showing(TOOLS).after(TextDelta(reply.text)).after(TurnFinished(Draft("q").ended(reply), stop)).for_callers


def test_callers_read_what_a_reply_rests_on_in_its_last_line() -> None:
    assert for_callers(Reply("So.", sources=("cv.md › Work", "faq.md"))) == "So.\n\nSources: cv.md › Work; faq.md"
    assert for_callers(Reply("So.")) == "So."
    assert Showing(TOOLS).after(TextDelta("So")).for_callers == "So"


def test_callers_read_that_an_answer_broke_off() -> None:
    assert for_callers(Reply("So", finish="cut")) == f"So\n\n{BROKE_OFF}"
    assert for_callers(Reply("", finish="cut")) == BROKE_OFF


def test_sources_that_were_never_compared_are_not_shown() -> None:
    invented = Step(Reply("Wait.", (CALL,), sources=("invented.md",)), (ToolResult("c1", "ok"),))
    turn = Turn("Why?", (invented, Step(Reply("So."))))
    assert history(kept(turn), TOOLS)[0]["sources"] == []
    assert Showing(TOOLS).after(TurnFinished(turn, "answered")).sources == ()


def remembered(*texts: str) -> Transcript:
    turns = tuple(Turn(f"question {number}", (Step(Reply(text)),)) for number, text in enumerate(texts))
    columns = (None,) * len(turns), ((),) * len(turns), ("answered",) * len(turns)
    return Transcript(Conversation(turns), tuple(range(len(turns))), *columns)


def test_a_long_conversation_comes_back_by_its_end() -> None:
    long = "word " * (HISTORY_CHARACTERS // 20)
    assert [turn["number"] for turn in history(remembered(*[long] * 9), TOOLS)] == [6, 7, 8]
    assert [turn["number"] for turn in history(remembered("short", long * 9), TOOLS)] == [1]
    assert len(history(remembered(*["short"] * 1000), TOOLS)) == HISTORY_TURNS
    assert history(remembered(), TOOLS) == []
