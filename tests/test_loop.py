"""The loop against a provider on a real socket: what is asked next, which tools run, how a turn ends."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from agent.conversation import Conversation, Draft, Reply, Step, Turn
from agent.events import Progress, Replied, TextDelta, ToolFinished, ToolStarted, TurnFinished
from agent.loop import Replica, respond
from agent.model import OpenAIModel
from agent.toolkit import Toolkit
from tests.fakes.hands import Hands, all_of, turn_of
from tests.fakes.provider import Answer, Provider, calls, delta, says


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def replica(model: OpenAIModel, hands: Hands) -> Replica:
    return Replica(model, hands.toolkit, "You are Ada.")


async def test_text_streams_and_the_turn_ends_with_it(replica: Replica, provider: Provider) -> None:
    provider.script = [says("I was born in 1815.")]
    events = await all_of(respond(replica, Conversation(), "When were you born?"))
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["I ", "was ", "born ", "in ", "1815."]
    assert events[-1] == TurnFinished(events[-1].turn, "answered")  # type: ignore[union-attr]
    assert provider.requests[0]["messages"] == [
        {"role": "system", "content": "You are Ada."},
        {"role": "user", "content": "When were you born?"},
    ]
    assert [tool["function"]["name"] for tool in provider.requests[0]["tools"]] == ["note", "burn", "wait"]


async def test_the_assistant_message_goes_before_its_results(
    replica: Replica, provider: Provider, hands: Hands
) -> None:
    provider.script = [calls(("note", '{"text": "tea"}'), ("note", '{"text": "cake"}')), says("Noted.")]
    turn = await turn_of(replica, "Note tea and cake")
    assert hands.noted == ["tea", "cake"]
    assert turn.text == "Noted."
    assert [m["role"] for m in provider.requests[1]["messages"]] == ["system", "user", "assistant", "tool", "tool"]
    assistant, *results = provider.requests[1]["messages"][2:]
    assert [call["id"] for call in assistant["tool_calls"]] == [result["tool_call_id"] for result in results]
    assert [result["content"] for result in results] == ["ok", "ok"]


async def test_a_call_counts_although_the_finish_reason_says_stop(
    replica: Replica, provider: Provider, hands: Hands
) -> None:
    provider.script = [calls(("note", '{"text": "tea"}'), finish="stop"), says("Noted.")]
    await turn_of(replica)
    assert hands.noted == ["tea"]


async def test_text_before_a_call_stays_in_the_answer(replica: Replica, provider: Provider) -> None:
    provider.script = [calls(("note", '{"text": "tea"}'), text="One moment."), says("Noted.")]
    assert (await turn_of(replica)).text == "One moment.\n\nNoted."


async def test_the_guard_ends_a_model_that_never_stops_calling(
    replica: Replica, provider: Provider, hands: Hands
) -> None:
    number = iter(range(100))
    provider.answer = lambda asked: (
        says("Enough.") if asked["tool_choice"] == "none" else calls(("note", json.dumps({"text": str(next(number))})))
    )
    events = await all_of(respond(replica, Conversation(), "Go on"))
    assert hands.noted == ["0", "1"]
    assert [request["tool_choice"] for request in provider.requests] == ["auto", "auto", "none"]
    last = events[-1]
    assert isinstance(last, TurnFinished)
    assert (last.stop, last.turn.text) == ("max_turns", "Enough.")


async def test_a_blank_reply_is_asked_for_once_more_without_tools(replica: Replica, provider: Provider) -> None:
    provider.script = [says(""), says("Hello.")]
    assert (await turn_of(replica)).text == "Hello."
    assert [request["tool_choice"] for request in provider.requests] == ["auto", "none"]


async def test_a_blank_answer_after_the_last_round_is_the_last_one(
    replica: Replica, provider: Provider, hands: Hands
) -> None:
    tea, cake = calls(("note", '{"text": "tea"}')), calls(("note", '{"text": "cake"}'))
    provider.script = [tea, cake, says("")]
    assert "Your message is kept" in (await turn_of(replica)).text
    assert hands.noted == ["tea", "cake"]
    assert [request["tool_choice"] for request in provider.requests] == ["auto", "auto", "none"]


async def test_a_model_that_stays_blank_gets_a_sentence_for_the_visitor(replica: Replica, provider: Provider) -> None:
    provider.script = [says(""), says(" ")]
    assert "Your message is kept" in (await turn_of(replica)).text


@pytest.mark.parametrize("arguments", ["{}", "[1, 2]", "null", "", '{"text": [1]}', '{"text": null}'])
async def test_a_missing_or_wrong_field_is_named_to_the_model(
    replica: Replica, provider: Provider, hands: Hands, arguments: str
) -> None:
    provider.script = [calls(("note", arguments)), says("Sorry.")]
    await turn_of(replica)
    result = provider.requests[1]["messages"][-1]
    assert result["role"] == "tool"
    assert "text" in result["content"]
    assert hands.noted == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("notes", '{"text": "tea"}'),
        ("note", '{"text": "te'),
        ("burn", '{"text": "x"}'),
        ("wait", '{"text": "x"}'),
    ],
    ids=["unknown tool", "half JSON", "a tool that raises", "a tool that hangs"],
)
async def test_a_call_that_cannot_be_mended_leaves_no_trace(
    replica: Replica, provider: Provider, hands: Hands, name: str, arguments: str
) -> None:
    provider.script = [calls((name, arguments), text="One moment."), says("I cannot do that.")]
    turn = await turn_of(replica, "Do it")
    assert turn.text == "I cannot do that."
    system, *rest = provider.requests[1]["messages"]
    assert rest == [{"role": "user", "content": "Do it"}]
    assert system["content"].startswith("You are Ada.")
    assert "failed. Try a different way." in system["content"]
    assert "secret" not in json.dumps(provider.requests)


async def test_the_notice_is_gone_from_the_request_after_and_from_the_history(
    replica: Replica, provider: Provider
) -> None:
    provider.script = [
        calls(("burn", '{"text": "x"}')),
        calls(("note", '{"text": "tea"}')),
        says("Done."),
        says("Hello again."),
    ]
    conversation = Conversation().and_then(await turn_of(replica, "Burn it"))
    await turn_of(replica, "And now?", conversation)
    assert ["failed" in request["messages"][0]["content"] for request in provider.requests] == [
        False,
        True,
        False,
        False,
    ]
    assert "failed" not in json.dumps(provider.requests[3])


async def test_good_calls_of_a_bad_reply_stay_and_are_not_run_twice(
    replica: Replica, provider: Provider, hands: Hands
) -> None:
    good = ("note", '{"text": "tea"}')
    provider.script = [calls(good, ("push", "{}")), calls(good), says("Done.")]
    await turn_of(replica)
    assert hands.noted == ["tea"]
    second = provider.requests[1]["messages"]
    assert [call["function"]["name"] for call in second[2]["tool_calls"]] == ["note"]
    assert [m["role"] for m in second] == ["system", "user", "assistant", "tool"]
    assert "push" not in json.dumps(second)


async def test_a_provider_that_fails_gives_a_sentence_with_a_reference_that_stands_in_the_log(
    replica: Replica, provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    provider.script = [Answer(status=401, body={"error": {"message": "Incorrect API key provided: sk-secret"}})]
    events = await all_of(respond(replica, Conversation(), "Hi"))
    last = events[-1]
    assert isinstance(last, TurnFinished)
    assert last.stop == "failed"
    assert last.reference in last.turn.text
    logged = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert any(last.reference in line and "check OPENAI_API_KEY" in line for line in logged)
    assert "sk-secret" not in "".join(logged) + last.turn.text


async def test_a_stream_that_is_cut_is_kept_as_far_as_it_came(replica: Replica, provider: Provider) -> None:
    provider.script = [says("I have worked", finish=None)]
    turn = await turn_of(replica)
    assert turn.text == "I have worked"
    assert turn.incomplete


async def test_half_a_call_in_a_stream_that_is_cut_is_not_run(
    replica: Replica, provider: Provider, hands: Hands
) -> None:
    piece = {"index": 0, "id": "c", "type": "function", "function": {"name": "note", "arguments": '{"text": "te'}}
    provider.script = [Answer([delta(tool_calls=[piece])], done=False), says("Hello.")]
    assert (await turn_of(replica)).text == "Hello."
    assert hands.noted == []


async def test_the_clock_runs_for_the_whole_reply(provider: Provider, model: OpenAIModel, hands: Hands) -> None:
    provider.script = [Answer([delta(content="Slow")], hold=asyncio.Event())]
    turn = await turn_of(Replica(model, hands.toolkit, "x", reply_timeout_s=0.3))
    assert turn.text == "Slow"
    assert turn.incomplete


async def test_leaving_in_the_middle_closes_the_request(replica: Replica, provider: Provider) -> None:
    never = asyncio.Event()
    provider.script = [Answer([delta(content="Once "), delta(content="upon")], hold=never)]
    progress = Progress(Draft("Tell me a story"))
    events = respond(replica, Conversation(), "Tell me a story")
    async for event in events:
        progress = progress.after(event)
        if progress.text == "Once upon":
            break
    await events.aclose()
    turn = progress.stopped()
    assert turn.text == "Once upon"
    assert turn.incomplete
    provider.script = [says("Of course.")]
    await turn_of(replica, "Go on", Conversation().and_then(turn))
    assert provider.requests[-1]["messages"][2] == {"role": "assistant", "content": "Once upon"}


async def test_leaving_while_a_tool_runs_keeps_a_well_formed_turn(
    provider: Provider, model: OpenAIModel, hands: Hands
) -> None:
    provider.script = [calls(("note", '{"text": "tea"}'), ("wait", '{"text": "x"}')), says("Hello.")]
    toolkit = Toolkit(*hands.toolkit.tools.values(), timeout_s=60)
    replica = Replica(model, toolkit, "You are Ada.")
    progress = Progress(Draft("Do it"))

    async def listen() -> None:
        nonlocal progress
        async for event in respond(replica, Conversation(), "Do it"):
            progress = progress.after(event)

    task = asyncio.create_task(listen())
    await hands.started.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await turn_of(replica, "Still there?", Conversation().and_then(progress.stopped()))
    roles = [message["role"] for message in provider.requests[-1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


def test_a_step_that_a_provider_would_refuse_cannot_be_built() -> None:
    from agent.conversation import ToolCall, ToolResult

    call = ToolCall("a", "note", "{}")
    for reply, results in [
        (Reply(calls=(call,)), ()),
        (Reply(), (ToolResult("a", "ok"),)),
        (Reply(calls=(call, call)), (ToolResult("a", "ok"), ToolResult("a", "ok"))),
        (Reply(calls=(ToolCall("", "note", "{}"),)), (ToolResult("", "ok"),)),
    ]:
        with pytest.raises(ValueError, match="call"):
            Step(reply, results)
    with pytest.raises(ValueError, match="ends with"):
        Turn("Hi", (Step(Reply(calls=(call,)), (ToolResult("a", "ok"),)),))


async def test_events_tell_of_a_tool_before_and_after_it_ran(replica: Replica, provider: Provider) -> None:
    provider.script = [calls(("note", '{"text": "tea"}'), ("burn", '{"text": "x"}')), says("Done.")]
    events = await all_of(respond(replica, Conversation(), "Hi"))
    kinds = [type(event) for event in events if not isinstance(event, TextDelta)]
    assert kinds == [Replied, ToolStarted, ToolFinished, ToolStarted, ToolFinished, Replied, TurnFinished]
    finished = [event for event in events if isinstance(event, ToolFinished)]
    assert [event.result and event.result.content for event in finished] == ["ok", None]
