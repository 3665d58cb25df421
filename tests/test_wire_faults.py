"""Providers at their worst, over a real socket: a reply comes all the same, or an error in plain words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.contract import ModelError
from agent.conversation import Conversation, Reply
from agent.events import TextDelta, TurnFinished
from agent.loop import Replica, respond
from agent.model import OpenAIModel, open_provider
from tests.fakes.hands import Hands, all_of, turn_of
from tests.fakes.provider import Answer, Provider, calls, delta, says
from tests.fakes.wire_bytes import ASKED, BODY, BROKEN, HELLO, STOP, event, read, stream

NOTE = ("note", '{"text": "tea"}')


@pytest.mark.parametrize(
    "answer",
    [
        stream(HELLO.replace("\n", "\r\n"), STOP.replace("\n", "\r\n"), "data: [DONE]\r\n\r\n"),
        stream(HELLO.replace("data: ", "data:"), STOP.replace("data: ", "data:")),
        stream(b"\xef\xbb\xbf", HELLO, STOP),
        stream(": OPENROUTER PROCESSING\n\n", HELLO, ": ping\n\n", STOP),
        stream("event: chunk\nid: 7\nretry: 10\n", HELLO, STOP),
        stream(HELLO.replace("\n\n", "\n"), STOP.replace("\n\n", "\n")),
        stream(HELLO, STOP.rstrip()),
        stream(HELLO.replace(', "choices"', ',\ndata: "choices"'), STOP),
        stream(BODY),
        stream(json.dumps(json.loads(BODY), indent=2)),
        stream(f"data: {BODY}\n\ndata: [DONE]\n\n"),
        stream(HELLO.removeprefix("data: "), STOP.removeprefix("data: ")),
        stream(*(f"data: {chunk}\n\n" for chunk in ("{}", "null", "[]", "3", '"x"', '{"choices": []}')), HELLO, STOP),
        stream(event({"choices": [None]}), event({"choices": [{"delta": None}]}), event({"choices": 3}), HELLO, STOP),
        stream(event({"choices": [{"index": 1, "delta": {"content": "No."}}]}), HELLO, STOP),
        stream(
            event({"choices": [{"index": 1, "delta": {"content": "No."}}, delta(content="Hello.")["choices"][0]]}), STOP
        ),
        stream(*(event({"choices": [{"index": 0, "message": {"content": text}}]}) for text in ("Hel", "l", "o."))),
        stream(event(delta(content=[{"type": "text", "text": "Hel"}, {"type": "image"}, None, "lo."])), STOP),
        stream(event(delta(content={"type": "text", "text": "Hello."})), STOP),
        stream(HELLO, event(json.loads(BODY)), STOP),
        stream(HELLO, event(delta(finish="eos"))),
        stream(HELLO, event(delta(finish="stop") | {"error": None})),
    ],
)
async def test_hello_is_hello_however_it_is_wrapped(model: OpenAIModel, provider: Provider, answer: Answer) -> None:
    provider.script = [answer]
    reply = await read(model)
    assert (reply.text, reply.finish) == ("Hello.", "stop")


@pytest.mark.parametrize("name", BROKEN)
async def test_what_breaks_before_a_word_is_a_model_error(model: OpenAIModel, provider: Provider, name: str) -> None:
    provider.script = [BROKEN[name]]
    with pytest.raises(ModelError):
        await read(model)


async def test_what_breaks_at_once_is_tried_again_before_the_fallback(provider: Provider) -> None:
    model = open_provider("scripted", None, provider.base_url, max_output_tokens=100, timeout_s=5)
    provider.script = [BROKEN["half a chunk"], says("Hello.")]
    assert (await read(model)).text == "Hello."
    assert len(provider.requests) == 2
    await model.close()


async def test_a_length_fault_inside_a_stream_is_told_apart(model: OpenAIModel, provider: Provider) -> None:
    fault = {"code": 400, "message": "This endpoint's maximum context length is 8192 tokens."}
    provider.script = [stream(event({"error": fault})), says("Hello.")]
    assert (await turn_of(Replica(model, Hands().toolkit, "You are Ada."))).text == "Hello."


@pytest.mark.parametrize(
    "written",
    [
        'Sure. {"name": "note", "arguments": {"text": "tea"}}',
        '<tool_call>{"name": "note", "arguments": {"text": "tea"}}</tool_call>',
        "<function=note><parameter=text>tea</parameter></function>",
        '[TOOL_CALLS]note[ARGS]{"text": "tea"}',
    ],
)
async def test_a_call_in_the_text_runs_once_and_is_never_shown_nor_run_where_none_may_be_made(
    model: OpenAIModel, provider: Provider, written: str
) -> None:
    hands = Hands()
    provider.script = [says(written), says("Noted.")]
    events = await all_of(respond(Replica(model, hands.toolkit, "x"), Conversation(), "Tea"))
    assert hands.noted == ["tea"]
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert shown.replace("Sure.", "").strip() == "Noted."
    provider.script = [says(written)]
    reply = await read(model, "none")
    assert (reply.text, reply.calls) == ("Sure." if "Sure" in written else "", ())


@pytest.mark.parametrize(
    "written", ["<tool_call>note the tea</tool_call>", '<tool_call>{"name": "no', "<function=note>te"]
)
async def test_a_marked_call_that_cannot_be_read_is_taken_back(
    model: OpenAIModel, provider: Provider, written: str
) -> None:
    hands = Hands()
    provider.script = [says(written), says("Sorry.")]
    assert (await turn_of(Replica(model, hands.toolkit, "x"))).text == "Sorry."
    system, *rest = provider.requests[1]["messages"]
    assert rest == [{"role": "user", "content": "Hi"}]
    assert "failed. Try a different way." in system["content"]
    assert hands.noted == []


async def test_thoughts_without_their_beginning_leave_the_answer(model: OpenAIModel, provider: Provider) -> None:
    provider.script = [says("The visitor greets me.</think>\n\nHello.")]
    turn = await turn_of(Replica(model, Hands().toolkit, "x"))
    assert turn.text == "Hello."


async def test_a_model_without_tools_shows_no_call_that_it_writes(model: OpenAIModel, provider: Provider) -> None:
    refused = Answer(status=400, body={"error": {"message": "gemma does not support tools"}})
    provider.script = [refused, says('Well. {"name": "note", "arguments": {"text": "tea"}}')]
    reply = await read(model)
    assert (reply.text, reply.calls) == ("Well.", ())


async def test_addresses_are_found_by_whoever_is_asked_to(provider: Provider) -> None:
    model = open_provider(
        "scripted",
        None,
        provider.base_url,
        max_output_tokens=9,
        timeout_s=5,
        find_addresses=lambda text: ["jo@acme.com"],
    )
    provider.script = [Answer(status=400, body={"error": {"message": "tools are not supported"}})]
    tool: dict[str, Any] = {
        "type": "function",
        "function": {"name": "take", "parameters": {"properties": {"email": {}}}},
    }
    pieces = [piece async for piece in model.stream(ASKED, [tool])]
    assert isinstance(pieces[0], Reply)
    assert "jo@acme.com" in pieces[0].calls[0].arguments
    await model.close()


async def test_a_turn_ends_well_when_the_last_word_is_a_call_that_may_not_be_made(
    model: OpenAIModel, provider: Provider
) -> None:
    hands = Hands()
    provider.script = [
        calls(NOTE),
        calls(("note", '{"text": "cake"}')),
        calls(("note", '{"text": "ale"}')),
    ]
    events = await all_of(respond(Replica(model, hands.toolkit, "x"), Conversation(), "Hi"))
    assert hands.noted == ["tea", "cake"]
    assert isinstance(events[-1], TurnFinished)
    assert "Your message is kept" in events[-1].turn.text
    assert len(provider.requests) == 3
