"""What a visitor must not read is kept back, however the stream is cut, and what they may read is not."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.hidden import Curtain, take_apart

CALL = {"name": "gather_user_details", "arguments": {"email": "sarah@techfirm.com", "notes": "interview"}}
ONE = (("gather_user_details", json.dumps(CALL["arguments"])),)
JSON = json.dumps(CALL)

CALLS = [
    JSON,
    f"  {JSON}\n",
    json.dumps(CALL, indent=2),
    f"```json\n{JSON}\n```",
    f"```\n{JSON}\n```",
    f"```tool_call\n{JSON}\n```\n",
    f"<tool_call>\n{JSON}\n</tool_call>",
    f"<tool_call>{JSON}",
    f"[TOOL_CALLS][{JSON}]",
    f"[{JSON}]",
    json.dumps({"function": CALL}),
    json.dumps({"type": "function", "function": CALL}),
    json.dumps({"tool_calls": [{"id": "1", "type": "function", "function": CALL}]}),
    json.dumps({"name": CALL["name"], "parameters": CALL["arguments"]}),
    json.dumps({"name": CALL["name"], "arguments": json.dumps(CALL["arguments"])}),
]
TEXTS = [
    "Hello.",
    "[Ada](https://example.com) wrote <b>Notes</b>.",
    "```python\nprint('name')\n```",
    "{curly} beginnings",
    '{"year": 1843}',
    "I wrote 3 < 4 and [see this].",
    "`code` first",
    "``` is a fence",
    "<thin ice> is not a thought",
    "",
]


def shown_of(pieces: list[str]) -> str:
    curtain = Curtain()
    return "".join(curtain.let_through(piece) for piece in pieces)


def cut(text: str, places: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize("raw", CALLS)
def test_a_call_written_as_text_is_a_call_and_no_text(raw: str) -> None:
    written = take_apart(raw)
    assert (written.text, written.calls) == ("", ONE)
    assert shown_of(list(raw)).strip() == ""


def test_text_around_a_call_in_tags_stays() -> None:
    written = take_apart(f"One moment. <tool_call>{JSON}</tool_call> Done.")
    assert written.text == "One moment.  Done."
    assert written.calls == ONE


@pytest.mark.parametrize("raw", TEXTS)
def test_what_only_looks_like_a_call_is_text(raw: str) -> None:
    assert take_apart(raw).text == raw
    assert take_apart(raw).calls == ()


def test_thoughts_are_kept_back_and_the_answer_streams_on_behind_them() -> None:
    raw = "<think>The visitor greets.</think>\n\nHello there."
    assert take_apart(raw).text == "Hello there."
    assert take_apart(raw).thoughts == "The visitor greets."
    curtain = Curtain()
    assert curtain.let_through("<think>The visitor greets.</think>\n\nHello").strip() == "Hello"
    assert curtain.let_through(" there.") == " there."


def test_half_a_call_in_tags_is_never_shown() -> None:
    assert take_apart('<tool_call>{"name": "gath').text == ""
    assert take_apart('<tool_call>{"name": "gath').calls == ()


@given(st.sampled_from(CALLS + TEXTS + [f"Well. <think>x</think>{t}" for t in TEXTS]), st.lists(st.integers(0, 400)))
def test_however_a_text_is_cut_the_same_is_shown_and_it_begins_what_stays(raw: str, places: list[int]) -> None:
    shown = shown_of(cut(raw, places))
    text = take_apart(raw).text
    assert "".join(text.split()).startswith("".join(shown.split()))
    for secret in ("sarah@", "<think>", "tool_call>"):
        assert secret not in shown


@given(st.text(alphabet='<>[]{}`"thinktool_call/ \nab:'), st.lists(st.integers(0, 99)))
def test_any_text_can_be_taken_apart_and_shown(raw: str, places: list[int]) -> None:
    shown = shown_of(cut(raw, places))
    assert "".join(take_apart(raw).text.split()).startswith("".join(shown.split()))
