"""The strict reader of requests refuses what strict providers refuse: it would be worth nothing if it did not."""

from __future__ import annotations

from typing import Any

import pytest

from agent.conversation import Conversation, Draft, Reply, Step, ToolCall, ToolResult, to_wire
from agent.loop import Replica
from agent.model import OpenAIModel
from tests.fakes.hands import Hands, turn_of
from tests.fakes.provider import Provider, calls, says
from tests.fakes.wire import faults

SYSTEM = {"role": "system", "content": "You are Ada."}
USER = {"role": "user", "content": "Hi"}
ASSISTANT = {"role": "assistant", "content": "Hello."}


def call(call_id: Any = "c1", name: Any = "note", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments, **more}}


def calling(*made: Any, content: Any = "", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(made), **more}


def result(call_id: str = "c1", content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


EMPTY: dict[str, Any] = {}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "note", "parameters": {"type": "object"}}}
GOOD = [SYSTEM, USER, calling(call()), result()]


def test_good_requests_pass() -> None:
    assert faults({"model": "x", "messages": GOOD, "tools": [TOOL], "tool_choice": "auto"}) == []
    assert faults({"model": "x", "messages": [SYSTEM, USER, ASSISTANT, USER]}) == []


REFUSED: list[list[dict[str, Any]]] = [
    [],
    [SYSTEM],
    [USER],
    [SYSTEM, SYSTEM, USER],
    [SYSTEM, USER, ASSISTANT],
    [SYSTEM, USER, USER],
    [SYSTEM, USER, ASSISTANT, ASSISTANT, USER],
    [SYSTEM, USER, ASSISTANT, SYSTEM, USER],
    [SYSTEM, {"role": "user", "content": " "}],
    [SYSTEM, {"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    [SYSTEM, {"role": "user", "content": "Hi", "metadata": None}],
    [SYSTEM, {"role": "user", "content": "half \ud83d"}],
    [SYSTEM, USER, {"role": "assistant", "content": ""}, USER],
    [SYSTEM, USER, {"role": "assistant", "content": None}, USER],
    [SYSTEM, USER, {"role": "assistant"}, USER],
    [SYSTEM, USER, {"role": "assistant", "content": "x", "tool_calls": []}, USER],
    [SYSTEM, USER, {"role": "assistant", "content": "x", "tool_calls": None}, USER],
    [SYSTEM, USER, calling(call()), USER],
    [SYSTEM, USER, calling(call())],
    [SYSTEM, USER, calling(call(), call()), result(), result()],
    [SYSTEM, USER, calling(call()), result(), ASSISTANT, USER, calling(call()), result()],
    [SYSTEM, USER, calling(call()), result("c2")],
    [SYSTEM, USER, result()],
    [SYSTEM, USER, calling(call()), result(content=None)],
    [SYSTEM, USER, calling(call(), content=None), result()],
    [SYSTEM, USER, calling(call(""), content=""), result("")],
    [SYSTEM, USER, calling(call("c" * 65)), result("c" * 65)],
    *([SYSTEM, USER, calling(call(name=name)), result()] for name in ("", "no te", "no.te", "n" * 65, None)),
    *(
        [SYSTEM, USER, calling(call(arguments=arguments)), result()]
        for arguments in ("", "null", "[]", '"{}"', "{", EMPTY, None, '{"x": NaN}', '{"x": "\\ud83d"}')
    ),
    [SYSTEM, USER, calling(call(strict=True)), result()],
    [SYSTEM, USER, calling(call(), options=[]), result()],
    [SYSTEM, USER, {"role": "developer", "content": "x"}],
]


@pytest.mark.parametrize("messages", REFUSED)
def test_a_strict_provider_refuses(messages: list[dict[str, Any]]) -> None:
    assert faults({"model": "x", "messages": messages})


REFUSED_FIELDS: list[dict[str, Any]] = [
    {"tool_choice": "none"},
    {"tools": []},
    {"tools": None},
    {"tools": [TOOL, TOOL]},
    {"tools": [TOOL], "tool_choice": None},
    {"tools": [{"type": "function", "function": {"name": "no te"}}]},
    {"options": {}},
]


@pytest.mark.parametrize("more", REFUSED_FIELDS)
def test_a_strict_provider_refuses_fields(more: dict[str, Any]) -> None:
    assert faults({"model": "x", "messages": [SYSTEM, USER], **more})


async def test_an_id_that_each_reply_gives_anew_is_sent_once_in_a_request(
    model: OpenAIModel, provider: Provider
) -> None:
    replica = Replica(model, Hands().toolkit, "You are Ada.")
    provider.script = [calls(("note", '{"text": "tea"}')), says("Noted.")] * 2 + [says("Bye.")]
    conversation = Conversation().and_then(await turn_of(replica))
    conversation = conversation.and_then(await turn_of(replica, "And cake", conversation))
    await turn_of(replica, "Bye", conversation)
    messages = provider.requests[-1]["messages"]
    ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert ids == ["c0", "again0001"]
    assert ids == [message["tool_call_id"] for message in messages if message["role"] == "tool"]


@pytest.mark.parametrize("arguments", ["", "null", "[1]", "{", '"x"', '{"text": "tea"}'])
def test_arguments_that_were_kept_as_they_came_are_sent_as_an_object(arguments: str) -> None:
    step = Step(Reply(calls=(ToolCall("c1", "note", arguments),)), (ToolResult("c1", "ok"),))
    messages = to_wire("You are Ada.", Conversation(), Draft("Hi", (step,)))
    assert faults({"model": "x", "messages": messages}) == []
