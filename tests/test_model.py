"""One completion: what providers really send, read over a real socket."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import openai
import pytest

from agent.conversation import Reply, ToolCall, Usage, WireMessage
from agent.fallback import WithFallback
from agent.model import ChatModel, ModelError, OpenAIModel, TooLong, Warming, open_provider
from agent.wire.faults import limit_retry_after
from tests.fakes.provider import Answer, Provider, calls, delta, says

EMAIL_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "take_address",
        "description": "",
        "parameters": {"type": "object", "properties": {"email": {}, "notes": {}, "name": {}}},
    },
}
MESSAGES = [{"role": "system", "content": "You are Ada."}, {"role": "user", "content": "Hi"}]


async def read(
    model: ChatModel, messages: list[WireMessage] = MESSAGES, tools: list[dict[str, Any]] | None = None
) -> tuple[list[str], Reply]:
    pieces = [piece async for piece in model.stream(messages, tools or ())]
    reply = pieces.pop()
    assert isinstance(reply, Reply)
    return [piece for piece in pieces if isinstance(piece, str)], reply


def call_delta(index: int | None = None, call_id: str | None = None, name: str | None = None, **more: Any) -> Any:
    arguments = more.pop("arguments", None)
    piece: dict[str, Any] = {"type": "function", "function": {"name": name, "arguments": arguments}, **more}
    if index is not None:
        piece["index"] = index
    if call_id is not None:
        piece["id"] = call_id
    return delta(tool_calls=[piece])


async def test_the_request_holds_only_what_every_provider_takes(model: OpenAIModel, provider: Provider) -> None:
    await read(model)
    assert provider.requests == [
        {
            "model": "scripted",
            "messages": MESSAGES,
            "max_tokens": 100,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]


async def test_usage_comes_from_a_chunk_without_choices(model: OpenAIModel, provider: Provider) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 7}}
    provider.script = [Answer([delta(content="Hello."), delta(finish="stop"), {"choices": [], "usage": usage}])]
    assert (await read(model))[1].usage == Usage(prompt=10, cached=7, completion=2)


async def test_calls_without_index_one_after_the_other(model: OpenAIModel, provider: Provider) -> None:
    provider.script = [
        Answer(
            [
                call_delta(call_id="a", name="one", arguments='{"x":'),
                call_delta(arguments="1}"),
                call_delta(call_id="b", name="two", arguments="{}"),
                delta(finish="tool_calls"),
            ]
        )
    ]
    assert (await read(model))[1].calls == (ToolCall("a", "one", '{"x":1}'), ToolCall("b", "two", "{}"))


async def test_calls_that_share_an_index_are_told_apart_by_their_ids(model: OpenAIModel, provider: Provider) -> None:
    chunks = [call_delta(0, "a", "one", arguments="{}"), call_delta(0, "b", "two", arguments="{}")]
    provider.script = [Answer([*chunks, delta(finish="tool_calls")])]
    assert [(call.id, call.name) for call in (await read(model))[1].calls] == [("a", "one"), ("b", "two")]


@pytest.mark.parametrize("ids", [("", ""), (None, None), ("c", "c"), ("call_1", ""), ("call_1_1", "")])
async def test_missing_and_repeated_ids_are_made_unique(
    model: OpenAIModel, provider: Provider, ids: tuple[str | None, ...]
) -> None:
    chunks = [call_delta(number, call_id, "one", arguments="{}") for number, call_id in enumerate(ids)]
    provider.script = [Answer([*chunks, delta(finish="tool_calls")])]
    found = [call.id for call in (await read(model))[1].calls]
    assert len(set(found)) == 2
    assert "" not in found


async def test_arguments_that_arrive_as_an_object_become_json(model: OpenAIModel, provider: Provider) -> None:
    provider.script = [Answer([call_delta(0, "a", "one", arguments={"x": 1}), delta(finish="stop")])]
    assert (await read(model))[1].calls[0].arguments == '{"x": 1}'


async def test_what_a_provider_adds_to_a_call_is_kept(model: OpenAIModel, provider: Provider) -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    provider.script = [Answer([call_delta(0, "a", "one", arguments="{}", extra_content=extra), delta(finish="stop")])]
    assert (await read(model))[1].calls[0].extra == (("extra_content", extra),)


async def test_thoughts_are_kept_apart_from_the_text(model: OpenAIModel, provider: Provider) -> None:
    provider.script = [
        Answer([delta(reasoning_content="The visitor greets."), delta(content="Hello."), delta(finish="stop")])
    ]
    texts, reply = await read(model)
    assert (texts, reply.text, reply.reasoning) == (["Hello."], "Hello.", "The visitor greets.")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(status=401, body={"error": {"message": "Incorrect API key provided: sk-secret"}}), "OPENAI_API_KEY"),
        (Answer(status=404, body={"error": {"message": "no"}}), "OPENAI_MODEL"),
        (Answer(status=429, body={"error": {"message": "slow down"}}), "limit"),
        (Answer(status=500, body={"error": {"message": "oops"}}), "try again later"),
        (Answer(body={"id": None, "choices": None, "error": {"code": 429, "message": "sk-secret"}}), "limit"),
        (Answer(raw="data: {broken\n\n"), "could not be read"),
        (Answer(done=False), "without a word"),
    ],
    ids=["wrong key", "wrong model", "limit", "fault", "error with status 200", "broken chunk", "nothing"],
)
async def test_a_fault_before_any_text_is_a_model_error_in_plain_words(
    model: OpenAIModel, provider: Provider, answer: Answer, reason: str
) -> None:
    provider.script = [answer]
    with pytest.raises(ModelError, match=reason) as raised:
        await read(model)
    assert "sk-secret" not in str(raised.value)


async def test_a_provider_that_cannot_be_reached_is_named() -> None:
    client = openai.AsyncOpenAI(api_key="x", base_url="http://127.0.0.1:9/v1", max_retries=0)
    model = OpenAIModel(client, "scripted", 100)
    with pytest.raises(ModelError, match="check OPENAI_BASE_URL"):
        await read(model)
    await model.close()


async def test_the_fallback_answers_while_nothing_was_shown(model: OpenAIModel, provider: Provider) -> None:
    provider.script = [Answer(status=500, body={"error": {}}), says("Hello from the second.")]
    assert (await read(WithFallback(model, model)))[1].text == "Hello from the second."


async def test_the_fallback_stays_out_once_something_was_shown(model: OpenAIModel, provider: Provider) -> None:
    provider.script = [says("I have", finish=None), says("Hello from the second.")]
    reply = (await read(WithFallback(model, model)))[1]
    assert (reply.text, reply.finish) == ("I have", "cut")
    assert len(provider.requests) == 1


async def test_a_model_that_warms_up_is_built_once_and_awaited(model: OpenAIModel, provider: Provider) -> None:
    built: list[ChatModel] = []

    def build() -> ChatModel:
        built.append(model)
        return model

    warming = Warming("scripted", build)
    texts = await asyncio.gather(read(warming), read(warming))
    assert [reply.text for _, reply in texts] == ["Hello.", "Hello."]
    assert len(built) == 1


async def test_calls_keep_their_order(model: OpenAIModel, provider: Provider) -> None:
    provider.script = [calls(("one", "{}"), ("two", "{}"), ("three", "{}"))]
    assert [call.name for call in (await read(model))[1].calls] == ["one", "two", "three"]


async def test_a_reply_in_one_body_is_read_like_a_stream(model: OpenAIModel, provider: Provider) -> None:
    function = {"name": "one", "arguments": "{}"}
    message = {
        "role": "assistant",
        "content": "Hello.",
        "tool_calls": [{"id": "", "type": "function", "function": function}] * 2,
    }
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    provider.script = [Answer(body={"id": "x", "choices": [choice], "usage": usage})]
    texts, reply = await read(model)
    assert texts == ["Hello."]
    assert [call.name for call in reply.calls] == ["one", "one"]
    assert reply.usage == Usage(prompt=10, completion=2)


async def test_groqs_refusal_of_its_own_models_call_is_the_text_that_the_model_wrote(
    model: OpenAIModel, provider: Provider
) -> None:
    error = {"code": "tool_use_failed", "message": "Failed to call a function.", "failed_generation": "I am Ada."}
    provider.script = [Answer(status=400, body={"error": error})]
    texts, reply = await read(model)
    assert (texts, reply.text, reply.finish) == (["I am Ada."], "I am Ada.", "stop")


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (404, "No endpoints found that support tool use. To learn more about provider routing, visit the docs."),
        (400, "`tools` is not supported by this model"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice: function calling is not enabled'),
    ],
)
async def test_a_model_without_tools_goes_on_without_and_addresses_come_from_the_visitor(
    model: OpenAIModel, provider: Provider, status: int, message: str
) -> None:
    provider.script = [Answer(status=status, body={"error": {"message": message}}), says("Hello."), says("Thanks.")]
    assert (await read(model, tools=[EMAIL_TOOL]))[1].text == "Hello."
    assert ["tools" in request for request in provider.requests] == [True, False]
    asked = [MESSAGES[0], {"role": "user", "content": "I'm Jo, write to jo@acme.com"}]
    [call] = (await read(model, asked, [EMAIL_TOOL]))[1].calls
    assert call.name == "take_address"
    assert '"jo@acme.com"' in call.arguments
    wire = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
    done = [
        *asked,
        {"role": "assistant", "content": "", "tool_calls": [wire]},
        {"role": "tool", "tool_call_id": call.id, "content": "ok"},
    ]
    assert (await read(model, done, [EMAIL_TOOL]))[1].text == "Thanks."
    system, user = provider.requests[-1]["messages"]
    assert system["content"].endswith("the answer: ok")
    assert user == asked[1]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (413, "Request too large for model `llama` on tokens per minute"),
        (400, "This model's maximum context length is 8192 tokens."),
        (400, "the request exceeds the available context size"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    ],
)
async def test_a_request_that_is_too_long_is_told_apart(
    model: OpenAIModel, provider: Provider, status: int, message: str
) -> None:
    provider.script = [Answer(status=status, body={"error": {"message": message}})]
    with pytest.raises(TooLong, match="CONTEXT_TOKENS"):
        await read(WithFallback(model, model))


async def test_an_error_with_status_200_is_tried_again_like_any_other(provider: Provider) -> None:
    model = open_provider("scripted", None, provider.base_url, max_output_tokens=100, timeout_s=5)
    provider.script = [Answer(body={"id": None, "choices": None, "error": {"code": 429, "message": "slow"}})]
    assert (await read(model))[1].text == "Hello."
    assert len(provider.requests) == 2
    await model.close()


@pytest.mark.parametrize(("asked", "granted"), [("60", "10"), ("3", "3"), ("3600", "3600"), ("soon", "soon")])
async def test_a_long_wait_before_the_next_try_is_cut_short(asked: str, granted: str) -> None:
    response = httpx2.Response(429, headers={"retry-after": asked})
    await limit_retry_after(response)
    assert response.headers["retry-after"] == granted
