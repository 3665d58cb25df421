"""Whatever JSON a provider sends, it is read; and what is read can be sent, stored and counted."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.conversation import Conversation, Draft, Reply, Step, ToolCall, ToolResult, Usage, to_wire
from agent.wire.reading import ProviderFault, Reading
from agent.wire.usage import MAX_TOKENS
from tests.fakes.provider import Chunk, delta
from tests.fakes.wire import faults

TOOLS = {"note": ["text"], "take": ["email", "notes"]}
PAIR = "\ud83d\ude00"


def read(chunks: list[Any], *, may_call: bool = True) -> tuple[str, Reply]:
    reading = Reading(TOOLS, may_call=may_call)
    shown = "".join(reading.take(chunk) for chunk in chunks)
    return shown, reading.reply()


def call(arguments: Any, name: Any = "note", call_id: Any = "c1", **extra: Any) -> Chunk:
    return delta(tool_calls=[{"index": 0, "id": call_id, "function": {"name": name, "arguments": arguments}, **extra}])


def next_request(reply: Reply) -> dict[str, Any]:
    results = tuple(ToolResult(each.id, "ok") for each in reply.calls)
    steps = (Step(reply, results),) if reply.calls else ()
    return {"model": "x", "messages": to_wire("You are Ada.", Conversation(), Draft("Hi", steps))}


def test_halves_of_a_character_become_the_character() -> None:
    shown, reply = read([delta(content="Hi " + PAIR[0]), delta(content=PAIR[1] + "!"), delta(finish="stop")])
    assert (shown, reply.text) == ("Hi 😀!", "Hi 😀!")


def test_a_half_without_its_other_half_is_replaced() -> None:
    assert read([delta(content="a" + PAIR[0]), delta(content="b"), delta(content=PAIR[1])])[1].text == "a\ufffdb\ufffd"
    assert read([delta(content="a" + PAIR[0]), delta(finish="stop")])[1].text == "a\ufffd"


HALVES = st.sampled_from([*PAIR, PAIR, PAIR[::-1], "a", '"', "\\ud83d", "\\ude00", " "])
TEXT = st.lists(HALVES, max_size=6).map("".join)


@given(TEXT, TEXT, TEXT, TEXT, TEXT)
def test_no_half_of_a_character_is_in_a_reply_or_in_the_next_request(
    text: str, thought: str, name: str, arguments: str, call_id: str
) -> None:
    value = {"text": arguments, PAIR[0]: [arguments]}
    for given_arguments in (arguments, json.dumps(value), json.dumps(value, ensure_ascii=False), value, None):
        chunks = [
            delta(content=text, reasoning_content=thought),
            call(given_arguments, name, call_id, extra_content={PAIR[0]: text}),
            delta(finish="stop"),
        ]
        shown, reply = read(chunks)
        (shown + repr(reply)).encode()
        request = next_request(reply)
        json.dumps(request, ensure_ascii=False, allow_nan=False).encode()
        for each in reply.calls:
            json.dumps(json.loads(to_wire_arguments(each)), ensure_ascii=False).encode()


def to_wire_arguments(call: ToolCall) -> str:
    [message] = [m for m in next_request(Reply(calls=(call,)))["messages"] if "tool_calls" in m]
    return message["tool_calls"][0]["function"]["arguments"]


CUT = (
    f'Hello {PAIR}, <think>{PAIR}</think> one {{"name": "note", "arguments": {{"text": "{PAIR}"}}}} '
    f"<tool_call>{{}}</tool_call> **{PAIR}**"
)


@given(st.lists(st.integers(0, len(CUT))))
def test_however_a_text_is_cut_the_reply_is_the_same(places: list[int]) -> None:
    edges = sorted({0, len(CUT), *places})
    pieces = [delta(content=CUT[a:b]) for a, b in pairwise(edges)]
    assert read([*pieces, delta(finish="stop")])[1] == read([delta(content=CUT), delta(finish="stop")])[1]


@pytest.mark.parametrize(
    ("sent", "tokens"),
    [
        (10, 10),
        (10.0, 10),
        ("10", 10),
        (MAX_TOKENS, MAX_TOKENS),
        (10**30, 0),
        (10**400, 0),
        (-3, 0),
        ("ten", 0),
        (True, 0),
        (None, 0),
        ([10], 0),
        ({"n": 10}, 0),
        (float("nan"), 0),
        (float("inf"), 0),
        ("1e400", 0),
    ],
)
def test_counts_are_whole_numbers_that_can_be_believed(sent: Any, tokens: int) -> None:
    usage = {"prompt_tokens": sent, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": sent}}
    assert read([delta(finish="stop") | {"usage": usage}])[1].usage == Usage(tokens, tokens, 1)


@pytest.mark.parametrize("usage", [None, {}, [], 3, "x", {"prompt_tokens": 0}, {"prompt_tokens": None}])
def test_no_count_takes_back_an_earlier_one(usage: Any) -> None:
    chunks: list[Any] = [{"usage": {"prompt_tokens": 3, "completion_tokens": 2}}, {"choices": [], "usage": usage}]
    assert read(chunks)[1].usage == Usage(3, 0, 2)


def test_thoughts_of_every_kind_are_kept_for_the_count() -> None:
    reply = read([delta(reasoning_content="One."), delta(content="<think>Two.</think>Hi"), delta(finish="stop")])[1]
    assert (reply.text, reply.reasoning, reply.extra) == ("Hi", "One.\nTwo.", (("reasoning_content", "One."),))


@pytest.mark.parametrize(("field", "back"), [("reasoning_content", True), ("reasoning", True), ("thinking", False)])
def test_thoughts_go_back_under_the_name_that_they_came_with(field: str, back: bool) -> None:
    reply = read([delta(**{field: "Hm."}), call('{"text": "a"}'), delta(finish="stop")])[1]
    [message] = [m for m in next_request(reply)["messages"] if "tool_calls" in m]
    assert message.get(field) == ("Hm." if back else None)
    assert message.keys() <= {"role", "content", "tool_calls", field}


ARGUMENTS = [
    '{"text": "tea"}',
    ' {"text": "tea"} ',
    json.dumps('{"text": "tea"}'),
    json.dumps(json.dumps('{"text": "tea"}')),
    '```json\n{"text": "tea"}\n```',
    '{"text": "tea",}',
    '{"text": "tea"} // what they said',
    '{/* note */ "text": "tea" # it\n}',
    "{'text': 'tea'}",
    '[{"text": "tea"}]',
    '{"text": "tea"}{"text": "tea"}',
    '{"text": "tea"} I hope this helps.',
    '{"text": "tea", "colour": null, "more": {"a": [1]}}',
    '{"arguments": {"text": "tea"}}',
    '"tea"',
    '["tea"]',
    {"text": "tea"},
    [{"text": "tea"}],
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_arguments_are_sent_back_as_an_object(arguments: Any) -> None:
    reply = read([call(arguments), delta(finish="tool_calls")])[1]
    assert json.loads(reply.calls[0].arguments)["text"] == "tea"
    assert faults(next_request(reply)) == []


@pytest.mark.parametrize(
    "arguments", ['{"text": "te', '{"text": "tea"', "text: tea", '{"text": "a"}{"text": "b"}', "{"]
)
def test_arguments_that_could_only_be_guessed_stay_as_they_are(arguments: str) -> None:
    assert read([call(arguments), delta(finish="length")])[1].calls[0].arguments == arguments


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["note", "0", ""]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "delta", "message", "content", "tool_calls", "function", "name", "arguments", "id", "index",
             "usage", "prompt_tokens", "finish_reason", "reasoning", "type", "text", "function_call", "extra"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip
PIECE = st.fixed_dictionaries({}, optional={"index": ODD, "id": ODD, "function": ODD | st.fixed_dictionaries(
    {}, optional={"name": ODD, "arguments": ODD}), "extra": ODD})  # fmt: skip
CHUNK = ODD | st.fixed_dictionaries({}, optional={"usage": ODD, "choices": ODD | st.lists(ODD | st.fixed_dictionaries(
    {}, optional={"index": ODD, "finish_reason": ODD, "message": ODD, "delta": ODD | st.fixed_dictionaries(
        {}, optional={"content": ODD, "tool_calls": ODD | st.lists(PIECE, max_size=3), "reasoning": ODD})}),
    max_size=3)})  # fmt: skip


@given(st.lists(CHUNK, max_size=5), st.booleans())
def test_any_json_is_read_and_the_next_request_is_one_that_strict_providers_take(
    chunks: list[Any], may_call: bool
) -> None:
    try:
        shown, reply = read(chunks, may_call=may_call)
    except ProviderFault:
        return
    assert "".join(reply.text.split()).startswith("".join(shown.split()))
    assert may_call or not reply.calls
    named = tuple(each for each in reply.calls if each.name in TOOLS)
    request = next_request(Reply(reply.text, named, extra=reply.extra))
    json.dumps(request, allow_nan=False)
    assert [fault for fault in faults(request) if "extra" not in fault and "unknown field" not in fault] == []
