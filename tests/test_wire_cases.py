"""Replies as providers really send them (cases/wire.jsonl), over a real socket: what runs, what is asked next."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.conversation import Conversation, Reply
from agent.events import Event, TextDelta, ToolFinished, TurnFinished
from agent.loop import Replica, respond
from agent.model import OpenAIModel, open_provider
from agent.toolkit import Toolkit
from agent.wire.reading import Reading
from alerts.outbox import Outbox
from store.store import Store
from tests.fakes.provider import Answer, Provider, delta, says
from tools.registry import toolkit

Case = dict[str, Any]
CASES: list[Case] = [
    json.loads(line) for line in (Path(__file__).parent / "cases" / "wire.jsonl").read_text().splitlines()
]
MESSAGE = "I'm Sarah from TechFirm, sarah@techfirm.com, for an interview. Do you play the piano?"
STREAMED = [case for case in CASES if "stream" in case]


@pytest.fixture
async def model(provider: Provider) -> AsyncGenerator[OpenAIModel]:
    model = open_provider("scripted", None, provider.base_url, max_output_tokens=100, timeout_s=5)
    yield model
    await model.close()


@pytest.fixture
def replica(store: Store, model: OpenAIModel) -> Replica:
    tools: Toolkit = toolkit(Outbox(store, []))
    return Replica(model, tools, "You are Ada.")


def as_streamed(case: Case) -> Answer:
    if "body" in case:
        return Answer(status=case.get("status", 200), body=case["body"])
    return Answer(case["stream"], done=case.get("ends") != "connection closed")


def as_one_body(case: Case) -> Answer:
    """The same reply as a provider sends it that does not stream: deltas joined as the format says."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    finish, usage, calls = None, None, list[dict[str, Any]]()
    for chunk in case["stream"]:
        usage = chunk.get("usage") or usage
        for choice in chunk["choices"]:
            finish = choice["finish_reason"] or finish
            part = choice["delta"]
            for key in ("content", "reasoning_content"):
                if part.get(key) is not None:
                    message[key] = (message.get(key) or "") + part[key]
            for piece in part.get("tool_calls", ()):
                if "id" in piece or not calls:
                    calls.append({**piece, "function": dict(piece["function"])})
                else:
                    calls[-1]["function"]["arguments"] += piece["function"]["arguments"]
    if calls:
        message["tool_calls"] = [{key: value for key, value in call.items() if key != "index"} for call in calls]
    return Answer(
        body={"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}
    )


WAYS = [(case, "streamed", as_streamed(case)) for case in CASES] + [
    (case, "in one body", as_one_body(case)) for case in STREAMED if case.get("ends") != "connection closed"
]


@pytest.mark.parametrize(("case", "way", "answer"), WAYS, ids=[f"{case['name']}, {way}" for case, way, _ in WAYS])
async def test_each_case_comes_out_right(
    replica: Replica, provider: Provider, store: Store, case: Case, way: str, answer: Answer
) -> None:
    provider.script = [Answer(answer.chunks, answer.status, answer.body, answer.raw, answer.done), says("All done.")]
    events = [event async for event in respond(replica, Conversation(), MESSAGE, "c1")]
    right = case["right"]
    if right == "as a 429: retried, then the fallback provider":
        assert text_of(events) == "All done."
        return
    await check_runs(right, events, store)
    check_next_request(right, provider)
    check_text(right, events)


async def check_runs(right: Case, events: list[Event], store: Store) -> None:
    ran = [
        (event.call.name, json.loads(event.call.arguments))
        for event in events
        if isinstance(event, ToolFinished) and event.result and event.result.content == "ok"
    ]
    known = {"gather_user_details": ("email", "notes", "name"), "inform_unknown": ("question",)}
    ran = [(name, unwrapped(arguments, known[name])) for name, arguments in ran]
    if "runs" in right:
        assert ran == [(name, arguments) for name, arguments in right["runs"]]
    contacts = [run for run in right.get("runs", ()) if run[0] == "gather_user_details"]
    questions = [run for run in right.get("runs", ()) if run[0] == "inform_unknown"]
    assert [contact.email for contact in await store.contacts()] == [run[1]["email"] for run in contacts]
    assert [question.question for question in await store.questions()] == [run[1]["question"] for run in questions]


def unwrapped(arguments: Any, known: tuple[str, ...]) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(arguments) if isinstance(arguments, str) else arguments
    return {name: value for name, value in values.items() if name in known}


def check_next_request(right: Case, provider: Provider) -> None:
    if right.get("asks_again_without_tools"):
        assert [request["tool_choice"] for request in provider.requests] == ["auto", "none"]
        return
    if "runs" not in right:
        return
    _, user, *rest = provider.requests[1]["messages"]
    assert user == {"role": "user", "content": MESSAGE}
    if right.get("rolled_back"):
        assert rest == []
        assert "failed. Try a different way." in provider.requests[1]["messages"][0]["content"]
        return
    assistant, *results = rest
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert ids == [result["tool_call_id"] for result in results]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    if "kept" in right:
        assert ids == right["kept"]
        assert "failed. Try a different way." in provider.requests[1]["messages"][0]["content"]
    if "extra" in right:
        assert assistant["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "c2ln"}}
    for name in right.get("tool_result_names", ()):
        assert name in results[0]["content"]


def check_text(right: Case, events: list[Event]) -> None:
    text = text_of(events)
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text
    if "text" in right:
        assert text == right["text"]
    if "text_starts" in right:
        assert text.startswith(right["text_starts"])
    last = events[-1]
    assert isinstance(last, TurnFinished)
    assert last.turn.incomplete == bool(right.get("marked_incomplete"))
    for never in ("{", "greets", "arguments"):
        assert never not in shown + text


def text_of(events: list[Event]) -> str:
    last = events[-1]
    assert isinstance(last, TurnFinished)
    return last.turn.text


async def test_thoughts_go_back_within_the_turn_and_not_later(replica: Replica, provider: Provider) -> None:
    call = {"name": "inform_unknown", "arguments": '{"question": "Do you play the piano?"}'}
    piece = {"index": 0, "id": "c1", "type": "function", "function": call}
    chunks = [delta(reasoning_content="A question."), delta(tool_calls=[piece]), delta(finish="tool_calls")]
    provider.script = [Answer(chunks), says("I do not know."), says("Bye.")]
    events = [event async for event in respond(replica, Conversation(), MESSAGE, "c1")]
    last = events[-1]
    assert isinstance(last, TurnFinished)
    async for _ in respond(replica, Conversation().and_then(last.turn), "Bye", "c1"):
        pass
    assert provider.requests[1]["messages"][2]["reasoning_content"] == "A question."
    assert "A question." not in json.dumps(provider.requests[2])


@pytest.mark.parametrize("case", STREAMED, ids=[case["name"] for case in STREAMED])
def test_however_a_stream_is_cut_into_chunks_the_reply_is_the_same(case: Case) -> None:
    whole = read(case["stream"])
    for seed in range(20):
        assert read(recut(case["stream"], random.Random(seed))) == whole


def read(stream: list[Case]) -> Reply:
    reading = Reading()
    for chunk in stream:
        reading.take(chunk)
    return reading.reply()


def recut(stream: list[Case], dice: random.Random) -> list[Case]:
    """The same stream with its texts and arguments cut elsewhere."""
    cut: list[Case] = []
    for chunk in stream:
        pieces = [chunk]
        for choice in chunk["choices"][:1]:
            whole: Case = choice["delta"]
            if isinstance(whole.get("content"), str) and len(whole["content"]) > 1:
                pieces = [with_delta(chunk, {**whole, "content": part}) for part in parts(whole["content"], dice)]
            calls: list[Case] = whole.get("tool_calls") or []
            if len(calls) == 1 and isinstance(calls[0]["function"].get("arguments"), str):
                pieces = [with_delta(chunk, {"tool_calls": [call]}) for call in call_parts(calls[0], dice)]
        cut += pieces
    return cut


def call_parts(call: Case, dice: random.Random) -> list[Case]:
    first, *rest = parts(call["function"]["arguments"], dice)
    index = {"index": call["index"]} if "index" in call else {}
    begun = {**call, "function": {**call["function"], "arguments": first}}
    return [begun, *({**index, "function": {"arguments": part}} for part in rest)]


def with_delta(chunk: Case, other: Case) -> Case:
    return {**chunk, "choices": [{**chunk["choices"][0], "delta": other}]}


def parts(text: str, dice: random.Random) -> list[str]:
    places = sorted({0, len(text), *(dice.randrange(len(text) + 1) for _ in range(4))})
    return [text[a:b] for a, b in pairwise(places)] or [text]
