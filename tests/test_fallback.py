"""Two providers: the second is asked whenever the first fails before anything was shown, and only then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from agent.contract import ToolChoice
from agent.conversation import Reply
from agent.fallback import SECOND, WithFallback
from agent.loop import FAULT, Replica
from agent.model import OpenAIModel, open_provider
from tests.fakes.hands import Hands, turn_of
from tests.fakes.provider import Answer, Provider, delta, says, serving
from tests.fakes.wire_bytes import ASKED, BROKEN, HELLO, STOP, event, read, stream


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


@pytest.mark.parametrize("name", BROKEN)
async def test_what_breaks_before_a_word_goes_to_the_fallback(
    both: WithFallback, provider: Provider, other: Provider, name: str
) -> None:
    provider.script = [BROKEN[name]]
    other.script = [says("Hello from the second.")]
    assert (await read(both)).text == "Hello from the second."


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
