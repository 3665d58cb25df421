"""Providers at their worst, over a real socket: a reply comes all the same, or the second provider gives it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from agent.contract import ChatModel, ModelError, ToolChoice
from agent.conversation import Conversation, Reply
from agent.events import TextDelta, TurnFinished
from agent.fallback import SECOND, WithFallback
from agent.loop import FAULT, Replica, respond
from agent.model import OpenAIModel, open_provider
from tests.fakes.hands import Hands, all_of, turn_of
from tests.fakes.provider import Answer, Provider, calls, delta, says, serving

ASKED = [{"role": "system", "content": "You are Ada."}, {"role": "user", "content": "Hi"}]
NOTE = ("note", '{"text": "tea"}')


@pytest.fixture
async def other() -> AsyncGenerator[Provider]:
    """The provider of the fallback."""
    async with serving() as provider:
        yield provider
        assert provider.refused == []


@pytest.fixture
async def both(model: OpenAIModel, other: Provider) -> AsyncGenerator[WithFallback]:
    second = open_provider("second", None, other.base_url, max_output_tokens=100, timeout_s=5, max_retries=0)
    yield WithFallback(model, second, patience_s=0.2)
    await second.close()


async def read(model: ChatModel, choice: Any = "auto") -> Reply:
    pieces = [piece async for piece in model.stream(ASKED, Hands().toolkit.schemas, choice)]
    assert isinstance(pieces[-1], Reply)
    return pieces[-1]


def stream(*payloads: str | bytes) -> Answer:
    """A body, byte by byte as given."""
    return Answer(raw=b"".join(p if isinstance(p, bytes) else p.encode() for p in payloads), done=False)


def event(chunk: Any) -> str:
    return f"data: {json.dumps(chunk)}\n\n"


HELLO = event(delta(content="Hello."))
STOP = event(delta(finish="stop"))
BODY = json.dumps({"choices": [{"index": 0, "message": {"content": "Hello."}, "finish_reason": "stop"}]})


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
        stream(*(event(chunk) for chunk in ({}, None, [], 3, "x", {"choices": []})), HELLO, STOP),
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


BROKEN = {
    "not UTF-8": stream(b'data: {"choices": [{"delta": {"content": "caf\xe9"}}]}\n\n', STOP),
    "a page": stream("<html><body>502 Bad Gateway</body></html>"),
    "half a chunk": stream('data: {"choices": [{"delta": {"con\n\n'),
    "half a body": stream(BODY[:40]),
    "nothing": stream(""),
    "a comment": stream(": ping\n\n"),
    "a body without anything": Answer(body={"choices": None}),
    "an error in the stream": stream(event({"error": {"code": 503, "message": "overloaded"}})),
    "an error in a choice": stream(
        event({"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 502}}]})
    ),
    "an error in words": stream(event({"error": "overloaded"})),
    "thoughts, then nothing": stream(event(delta(reasoning_content="Hm"))),
    "half a thought": stream(event(delta(content="<think>Hm"))),
    "nested too deep": stream("data: " + '{"choices":' + "[" * 100_000 + "]" * 100_000 + "}\n\n"),
    "a number beyond all": stream('data: {"choices": [{"index": ' + "9" * 5000 + "}]}\n\n"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_breaks_before_a_word_is_a_model_error(model: OpenAIModel, provider: Provider, name: str) -> None:
    provider.script = [BROKEN[name]]
    with pytest.raises(ModelError):
        await read(model)


@pytest.mark.parametrize("name", BROKEN)
async def test_what_breaks_before_a_word_goes_to_the_fallback(
    both: WithFallback, provider: Provider, other: Provider, name: str
) -> None:
    provider.script = [BROKEN[name]]
    other.script = [says("Hello from the second.")]
    assert (await read(both)).text == "Hello from the second."


async def test_what_breaks_at_once_is_tried_again_before_the_fallback(provider: Provider) -> None:
    model = open_provider("scripted", None, provider.base_url, max_output_tokens=100, timeout_s=5)
    provider.script = [BROKEN["half a chunk"], says("Hello.")]
    assert (await read(model)).text == "Hello."
    assert len(provider.requests) == 2
    await model.close()


@pytest.mark.parametrize(
    "answer",
    [
        Answer(wait=asyncio.Event()),
        Answer(hold=asyncio.Event()),
        Answer([delta(role="assistant", content="")], hold=asyncio.Event()),
        Answer([delta(reasoning_content="Hm")], hold=asyncio.Event()),
    ],
    ids=["no answer", "no chunk", "an empty chunk", "a thought"],
)
async def test_a_provider_that_hangs_before_its_first_word_is_left_for_the_fallback(
    both: WithFallback, provider: Provider, other: Provider, answer: Answer
) -> None:
    provider.script = [answer]
    other.script = [says("Hello from the second.")]
    assert (await read(both)).text == "Hello from the second."


async def test_a_reply_that_has_begun_is_waited_for(both: WithFallback, provider: Provider, other: Provider) -> None:
    hold = asyncio.Event()
    provider.script = [Answer([delta(content="Once")], hold=hold, raw=event(delta(content=" upon")) + STOP)]
    texts: list[str] = []
    async for piece in both.stream(ASKED, ()):
        if isinstance(piece, str):
            texts.append(piece)
            asyncio.get_running_loop().call_later(0.5, hold.set)
    assert texts == ["Once", " upon"]
    assert other.requests == []


async def test_a_model_that_thinks_is_waited_for(both: WithFallback, other: Provider) -> None:
    class Thinking:
        name = "thinking"

        async def stream(
            self, messages: Any, tools: Any, tool_choice: ToolChoice = "auto"
        ) -> AsyncGenerator[str | Reply]:
            for _sign in range(3):
                await asyncio.sleep(0.12)
                yield ""
            yield "Hello."
            yield Reply("Hello.")

        async def close(self) -> None: ...

    patient = WithFallback(Thinking(), both, patience_s=0.2)
    assert (await read(patient)).text == "Hello."
    assert other.requests == []


async def test_a_reply_that_stays_blank_goes_to_the_fallback(
    both: WithFallback, provider: Provider, other: Provider
) -> None:
    provider.script = [says(""), says("")]
    other.script = [says("Hello from the second.")]
    assert (await turn_of(Replica(both, Hands().toolkit, "You are Ada."))).text == "Hello from the second."
    assert [request["tool_choice"] for request in provider.requests] == ["auto", "none"]


async def test_a_request_that_stays_too_long_goes_to_the_fallback(
    both: WithFallback, provider: Provider, other: Provider
) -> None:
    too_long = Answer(status=413, body={"error": {"message": "too large"}})
    provider.script = [too_long, too_long]
    other.script = [says("Hello from the second.")]
    assert (await turn_of(Replica(both, Hands().toolkit, "You are Ada."))).text == "Hello from the second."
    assert (len(provider.requests), len(other.requests)) == (2, 1)


async def test_a_length_fault_inside_a_stream_is_told_apart(model: OpenAIModel, provider: Provider) -> None:
    fault = {"code": 400, "message": "This endpoint's maximum context length is 8192 tokens."}
    provider.script = [stream(event({"error": fault})), says("Hello.")]
    assert (await turn_of(Replica(model, Hands().toolkit, "You are Ada."))).text == "Hello."


async def test_when_both_fail_the_visitor_reads_a_sentence(
    both: WithFallback, provider: Provider, other: Provider
) -> None:
    provider.script, other.script = [BROKEN["not UTF-8"]], [Answer(status=500)]
    text = (await turn_of(Replica(both, Hands().toolkit, "You are Ada."))).text
    assert text.startswith(FAULT.partition("{")[0])


async def test_what_one_provider_added_never_reaches_the_other(
    both: WithFallback, provider: Provider, other: Provider
) -> None:
    """The first calls with extras of its own and fails; the second calls with its own and fails in its turn."""

    def calling(number: int, mark: str) -> Answer:
        function = {"name": "note", "arguments": json.dumps({"text": mark})}
        piece = {"index": 0, "id": f"c{number}", "type": "function", "function": function, "extra_content": mark}
        return Answer([delta(reasoning_content=f"thought of {mark}"), delta(tool_calls=[piece]), delta(finish="stop")])

    down = Answer(status=400, body={"error": {"message": "no"}})
    provider.script = [calling(1, "first"), down, down, says("Done.")]
    other.script = [calling(2, "second"), calling(3, "second again")]
    replica = Replica(both, Hands().toolkit, "You are Ada.", max_turns=3)
    await turn_of(replica)
    assert "first" not in json.dumps([m.get("reasoning_content") for m in other.requests[0]["messages"]])
    told = [call.get("extra_content") for m in other.requests[1]["messages"] for call in m.get("tool_calls", ())]
    assert told == [None, "second"]
    assert [m["reasoning_content"] for m in other.requests[1]["messages"] if "reasoning_content" in m] == [
        "thought of second"
    ]
    told = [call.get("extra_content") for m in provider.requests[3]["messages"] for call in m.get("tool_calls", ())]
    assert told == ["first", None, None]
    assert SECOND not in json.dumps([provider.requests, other.requests])


async def test_a_fault_after_the_first_word_keeps_what_was_shown(
    both: WithFallback, provider: Provider, other: Provider
) -> None:
    for broken in (b'data: {"x": "caf\xe9"}\n\n', b"data: {half\n\n", event({"error": "no"}).encode()):
        provider.script = [stream(HELLO, broken)]
        reply = await read(both)
        assert (reply.text, reply.finish) == ("Hello.", "cut")
    assert other.requests == []


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
        says("Done."),
    ]
    events = await all_of(respond(Replica(model, hands.toolkit, "x"), Conversation(), "Hi"))
    assert hands.noted == ["tea", "cake"]
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].turn.text == "Done."
