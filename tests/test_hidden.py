"""What a visitor must not read is kept back, however the stream is cut, and what they may read is not."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.wire.arguments import Unreadable, read_arguments
from agent.wire.hidden import Curtain, take_apart
from agent.wire.written_calls import UNREADABLE

NAME = "gather_user_details"
NAMES = (NAME, "inform_unknown")
VALUES = {"email": "sarah@techfirm.com", "notes": "interview"}
CALL = {"name": NAME, "arguments": VALUES}
ARGUMENTS = json.dumps(VALUES)
JSON = json.dumps(CALL)
PARAMETERS = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in VALUES.items())

CALLS = [
    JSON,
    f"  {JSON}\n",
    json.dumps(CALL, indent=2),
    f"```json\n{JSON}\n```",
    f"```\n{JSON}\n```",
    f"```tool_call\n{JSON}\n```\n",
    f"<tool_call>\n{JSON}\n</tool_call>",
    f"<TOOL_CALL>{JSON}</TOOL_CALL>",
    f"<tool_call>{JSON}",
    f"[TOOL_CALLS][{JSON}]",
    f"[TOOL_CALLS]{NAME}[ARGS]{ARGUMENTS}",
    f"[TOOL_CALLS]{NAME}[CALL_ID]a1b2c3d4e[ARGS]{ARGUMENTS}</s>",
    f"[{JSON}]",
    json.dumps({"function": CALL}),
    json.dumps({"type": "function", "function": CALL}),
    json.dumps({"tool_calls": [{"id": "1", "type": "function", "function": CALL}]}),
    json.dumps({"name": NAME, "parameters": VALUES}),
    json.dumps({"tool": NAME, "parameters": VALUES}),
    json.dumps({"tool": NAME, "args": VALUES}),
    json.dumps({"name": NAME, "arguments": ARGUMENTS}),
    str(CALL),
    JSON[:-2] + ",}, /* the visitor's */}",
    f"<function={NAME}>{ARGUMENTS}</function>",
    f"<function={NAME}>\n{PARAMETERS}</function>",
    f"<tool_call>\n<function={NAME}>\n{PARAMETERS}</function>\n</tool_call>",
    f"<tool_call>{NAME}\n"
    + "".join(f"<arg_key>{k}</arg_key>\n<arg_value>{v}</arg_value>\n" for k, v in VALUES.items()),
    f'<function_calls><invoke name="{NAME}">'
    + "".join(f'<parameter name="{k}">{v}</parameter>' for k, v in VALUES.items())
    + "</invoke></function_calls>",
    f"<|python_tag|>{JSON}<|eom_id|>",
    f"<|channel|>commentary to=functions.{NAME} <|constrain|>json<|message|>{ARGUMENTS}<|call|>",
    f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{NAME}\n```json\n{ARGUMENTS}\n```"
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{NAME}:0<|tool_call_argument_begin|>{ARGUMENTS}"
    "<|tool_call_end|><|tool_calls_section_end|>",
]
TWO = [
    f"{JSON}\n{JSON}",
    f"[{JSON}, {JSON}]",
    f"{JSON};{JSON}",
    f"```json\n{JSON}\n{JSON}\n```",
    f"<tool_call>{JSON}</tool_call>\n<tool_call>{JSON}</tool_call>",
    f"<tool_call>{JSON}\n{JSON}</tool_call>",
    f"[TOOL_CALLS]{NAME}[ARGS]{ARGUMENTS}[TOOL_CALLS]{NAME}[ARGS]{ARGUMENTS}",
]
TEXTS = [
    "Hello.",
    "[Ada](https://example.com) wrote <b>Notes</b>.",
    "```python\nprint('name')\n```",
    '```json\n{"name": "Ada", "born": 1815}\n```',
    "{curly} beginnings",
    '{"year": 1843}',
    '{"name": "Ada", "arguments": {"born": 1815}}',
    '[{"name": "Ada"}, {"name": "Charles"}]',
    '{"type": "object", "properties": {"name": {"type": "string"}}}',
    '{"id": 1, "name": "half',
    "I wrote 3 < 4 and [see this].",
    "`code` first",
    "``` is a fence",
    "<thin ice> is not a thought",
    "- [ ] to do\n- [x] done",
    "Some models write `<think>` before, and `</think>` behind.",
    "Price: <|3|>, a[0] = {1: 2}",
    "",
]
UNREADABLES = [
    '<tool_call>{"name": "gath',
    "<tool_call>gather their details</tool_call>",
    f'<tool_call>{{"name": "{NAME}", "arguments": {{"email": "sar',
    f'{{"name": "{NAME}", "arguments": {{"email": "sar',
    f'One moment. {{"name": "{NAME}", "arguments": {{"email": "sar',
    f"<function={NAME}><parameter=email>sar",
    f"[TOOL_CALLS]{NAME}[ARGS]{{",
    "```tool_call\nnote it\n```",
]
THOUGHTS = [
    "<think>secret</think>Hello.",
    "<thinking>secret</thinking>\nHello.",
    "<THINK>secret</THINK>Hello.",
    "<reasoning>secret</reasoning>Hello.",
    "<thought>secret</thought>Hello.",
    "[THINK]secret[/THINK]Hello.",
    "<think>secret",
    f"<think>secret: <tool_call>{JSON}</tool_call></think>Hello.",
    "<|channel|>analysis<|message|>secret<|end|><|start|>assistant<|channel|>final<|message|>Hello.<|return|>",
    "<|channel|>analysis<|message|>secret",
    "<|start|>assistant<|channel|>analysis<|message|>secret<|end|>\n<|channel|>final<|message|>Hello.",
]
ONLY_THE_END = ["secret</think>Hello.", "The secret\n</thinking>\n\nHello.", "secret</reasoning>Hello.<|im_end|>"]


def shown_of(pieces: list[str]) -> str:
    curtain = Curtain(NAMES)
    return "".join(curtain.let_through(piece) for piece in pieces)


def cut(text: str, places: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    return [text[a:b] for a, b in pairwise(edges)]


def read(calls: tuple[tuple[str, str], ...]) -> list[tuple[str, object]]:
    return [(name, json.loads(arguments)) for name, arguments in calls]


@pytest.mark.parametrize("raw", CALLS)
def test_a_call_written_as_text_is_a_call_and_no_text(raw: str) -> None:
    written = take_apart(raw, NAMES)
    assert (written.text.replace("</s>", ""), read(written.calls)) == ("", [(NAME, VALUES)])
    assert shown_of(list(raw)).strip().replace("</s>", "") == ""


@pytest.mark.parametrize("raw", TWO)
def test_two_calls_written_as_text_are_two_calls(raw: str) -> None:
    written = take_apart(raw, NAMES)
    assert (written.text, read(written.calls)) == ("", [(NAME, VALUES)] * 2)


@pytest.mark.parametrize("raw", CALLS)
def test_a_call_behind_a_sentence_is_a_call_and_the_sentence_is_shown_before_it_ends(raw: str) -> None:
    written = take_apart(f"Sure, let me note that.\n{raw}", NAMES)
    assert written.text.replace("</s>", "").strip() == "Sure, let me note that."
    assert read(written.calls) == [(NAME, VALUES)]
    assert shown_of(["Sure, let me note that.\n", raw[:5]]).strip() == "Sure, let me note that."


def test_text_around_a_call_in_tags_stays() -> None:
    written = take_apart(f"One moment. <tool_call>{JSON}</tool_call> Done.", NAMES)
    assert written.text == "One moment.  Done."
    assert read(written.calls) == [(NAME, VALUES)]


@pytest.mark.parametrize("raw", TEXTS)
def test_what_only_looks_like_a_call_is_text(raw: str) -> None:
    assert take_apart(raw, NAMES).text == raw
    assert take_apart(raw, NAMES).calls == ()


@pytest.mark.parametrize("raw", CALLS[:5])
def test_json_that_names_no_tool_of_ours_is_text(raw: str) -> None:
    assert take_apart(raw, ["another"]).text == raw


@pytest.mark.parametrize("raw", UNREADABLES)
def test_what_is_marked_as_a_call_and_cannot_be_read_is_a_failed_call_and_never_shown(raw: str) -> None:
    written = take_apart(raw, NAMES)
    assert written.text in ("", "One moment.")
    [(name, arguments)] = written.calls
    if name != UNREADABLE:
        with pytest.raises(Unreadable):
            read_arguments(arguments)
    assert "sar" not in shown_of(list(raw))


@pytest.mark.parametrize("raw", THOUGHTS)
def test_thoughts_are_never_shown(raw: str) -> None:
    written = take_apart(raw, NAMES)
    assert written.text in ("Hello.", "")
    assert "secret" in written.thoughts
    assert written.calls == ()
    assert "secret" not in shown_of(list(raw))


@pytest.mark.parametrize("raw", ONLY_THE_END)
def test_thoughts_whose_beginning_is_missing_do_not_stay(raw: str) -> None:
    assert take_apart(raw, NAMES).text == "Hello."
    assert "secret" in take_apart(raw, NAMES).thoughts


def test_the_answer_streams_on_behind_thoughts() -> None:
    curtain = Curtain()
    assert curtain.let_through("<think>The visitor greets.</think>\n\nHello").strip() == "Hello"
    assert curtain.let_through(" there.") == " there."


@pytest.mark.parametrize("opening", ["{", "[", "<", "`", "```json\n{", '{"name": "Ada"', "<th", "[TOOL"])
def test_text_goes_on_as_soon_as_it_can_be_nothing_else(opening: str) -> None:
    assert shown_of(["Well, ", opening, " yes and"]) == f"Well, {opening} yes and"


def test_json_without_an_end_is_held_back_no_longer_than_any_call_is() -> None:
    long = '{"id": "' + "x" * 30_000
    assert shown_of(cut(long, list(range(0, 30_000, 100)))) == long


ALL = [*CALLS, *TWO, *TEXTS, *UNREADABLES, *THOUGHTS, *(f"Well. <think>x</think>{text}" for text in TEXTS)]


@given(st.sampled_from(ALL), st.sampled_from(["", "So: ", *ALL]), st.lists(st.integers(0, 800)))
def test_however_a_text_is_cut_the_same_stays_and_what_was_shown_begins_it(
    raw: str, before: str, places: list[int]
) -> None:
    raw = before + raw
    curtain = Curtain(NAMES)
    shown = "".join(curtain.let_through(piece) for piece in cut(raw, places))
    written = curtain.written()
    assert written == take_apart(raw, NAMES)
    assert "".join(written.text.split()).startswith("".join(shown.split())) or not (written.text or shown.strip("\n;"))
    if "`<think>`" not in raw:
        for secret in ("sarah@", "<think>", "tool_call>", "secret"):
            assert secret not in shown


PARTS = [*"<>[]{}`\"':,/|=\n ", "think", "tool_call", "```json", '{"name"', f'"{NAME}"', "<function=", "</think>"]


@given(st.lists(st.sampled_from(PARTS)).map("".join), st.lists(st.integers(0, 99)))
def test_any_text_can_be_taken_apart_and_stays_the_same_however_it_is_cut(raw: str, places: list[int]) -> None:
    curtain = Curtain(NAMES)
    for piece in cut(raw, places):
        curtain.let_through(piece)
    assert curtain.written() == take_apart(raw, NAMES)
