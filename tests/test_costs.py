"""What replies cost: a row for each request to a provider, whatever became of it, and money where a price is known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.briefing import Briefing
from agent.calls import Metered, ModelCall, collected, collecting
from agent.conversation import Reply, Usage, WireMessage
from agent.events import TextDelta, TurnFinished
from agent.fallback import WithFallback
from agent.fitting import Fitting
from agent.loop import Replica
from agent.model import ChatModel, OpenAIModel, ToolChoice, open_provider
from agent.prices import Price
from agent.reception import Reception
from agent.room import Room
from agent.toolkit import Toolkit
from alerts.outbox import Outbox
from store.store import Store
from tests.fakes.provider import Answer, Provider, calls, delta, says
from tools.registry import toolkit

PRICE = Price(1.0, 0.5, 2.0)
ASKED: list[WireMessage] = [{"role": "system", "content": "You are Ada."}, {"role": "user", "content": "Hi"}]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'a.db'}"


def metered(model: ChatModel, price: Price | None = PRICE, told: list[ModelCall] | None = None) -> Metered:
    return Metered(model, "provider.test", price, (told if told is not None else []).append)


def reception(store: Store, model: ChatModel, **others: Any) -> Reception:
    replica = Replica(model, toolkit(Outbox(store, [])), "You are Ada.", **others)
    return Reception(replica, store, max_replies=3, max_message_chars=500)


async def said(reception: Reception, message: str = "Hello", conversation_id: str = "c1") -> str:
    last = None
    async for event in reception.answer(conversation_id, message):
        last = event
    assert isinstance(last, TurnFinished)
    return last.turn.text


def usage(prompt: int, cached: int, completion: int) -> dict[str, Any]:
    details = {"cached_tokens": cached}
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": details}
    return {"choices": [], "usage": counts}


async def test_each_request_of_a_turn_is_a_row_with_what_it_took(
    store: Store, model: OpenAIModel, provider: Provider
) -> None:
    told: list[ModelCall] = []
    called = calls(("inform_unknown", '{"question": "Her shoe size?"}'))
    answer = Answer([delta(content="I do not know."), delta(finish="stop"), usage(1000, 400, 50)])
    provider.script = [Answer([*called.chunks, usage(900, 0, 20)]), answer]
    before = datetime.now(UTC)
    await said(reception(store, metered(model, told=told)), "What is her shoe size?")
    second, first = await store.model_calls()
    assert (first.conversation_id, first.number, first.provider, first.model) == ("c1", 0, "provider.test", "scripted")
    assert (first.finish, first.tools, first.error, first.outcome) == ("tool_calls", "inform_unknown", "", "answered")
    assert (first.tokens_in, first.tokens_cached, first.tokens_out, first.estimated) == (900, 0, 20, False)
    assert first.first_token_s is None
    assert (second.tokens_in, second.tokens_cached, second.tokens_out) == (1000, 400, 50)
    assert second.cost == pytest.approx((600 * 1.0 + 400 * 0.5 + 50 * 2.0) / 1e6)
    assert second.first_token_s is not None
    assert 0 < second.first_token_s <= second.duration_s < 5
    assert before <= first.at <= second.at
    assert [call.tokens for call in told] == [920, 1050]
    assert await store.tokens_since(before) == 1970
    assert await store.tokens_since(datetime.now(UTC) + timedelta(seconds=1)) == 0


async def test_a_failed_call_and_its_fallback_are_two_rows(
    store: Store, provider: Provider, model: OpenAIModel
) -> None:
    provider.script = [Answer(status=500), says("From the second.")]
    second = open_provider("second", None, provider.base_url, max_output_tokens=100, timeout_s=5)
    both = WithFallback(metered(model), Metered(second, "other.test", None, lambda call: None))
    assert await said(reception(store, both)) == "From the second."
    answered, failed = await store.model_calls()
    assert (failed.provider, failed.outcome, failed.tokens_in, failed.cost) == ("provider.test", "failed", 0, 0)
    assert "HTTP 500" in failed.error
    assert (answered.provider, answered.model, answered.outcome) == ("other.test", "second", "answered")
    assert answered.cost is None
    await second.close()


async def test_a_turn_without_an_answer_is_counted_too(store: Store, provider: Provider, model: OpenAIModel) -> None:
    provider.script = [Answer(status=401)]
    assert "Sorry" in await said(reception(store, metered(model)))
    [row] = await store.model_calls()
    assert (row.outcome, row.tokens_in + row.tokens_out) == ("failed", 0)
    assert "OPENAI_API_KEY" in row.error


async def test_without_counts_tokens_are_estimated_at_three_bytes(
    store: Store, provider: Provider, model: OpenAIModel
) -> None:
    provider.script = [Answer([delta(content="x" * 300), delta(finish="stop")])]
    await said(reception(store, metered(model)), "y" * 300)
    [row] = await store.model_calls()
    assert row.estimated
    assert 100 <= row.tokens_out <= 102
    asked = provider.requests[0]
    assert row.tokens_in >= len(str(asked["messages"])) / 3 * 0.9
    assert row.tokens_in < len(str([asked["messages"], asked["tools"]])) / 2


async def test_counts_of_zero_are_no_counts(store: Store, provider: Provider, model: OpenAIModel) -> None:
    provider.script = [Answer([delta(content="Yes."), delta(finish="stop"), usage(0, 0, 0)])]
    await said(reception(store, metered(model)))
    [row] = await store.model_calls()
    assert row.estimated
    assert row.tokens_in > 0


async def test_who_leaves_has_asked_all_the_same(store: Store, provider: Provider, model: OpenAIModel) -> None:
    provider.script = [Answer([delta(content="Once upon a time")], hold=asyncio.Event())]
    talk = reception(store, metered(model)).answer("c1", "A story")
    async for event in talk:
        if isinstance(event, TextDelta):
            break
    await talk.aclose()
    [row] = await store.model_calls()
    assert (row.outcome, row.estimated) == ("left", True)
    assert row.tokens_in > 0
    assert row.tokens_out > 0


async def test_a_reply_that_takes_too_long_is_a_row(store: Store, provider: Provider, model: OpenAIModel) -> None:
    provider.script = [Answer([delta(content="Well")], hold=asyncio.Event())]
    await said(reception(store, metered(model), reply_timeout_s=0.3))
    [row] = await store.model_calls()
    assert (row.outcome, row.error) == ("left", "nobody waited for the end")
    assert 0.2 < row.duration_s < 5


async def test_a_stream_that_breaks_off_is_a_row(store: Store, provider: Provider, model: OpenAIModel) -> None:
    provider.script = [says("Once upon", finish=None)]
    await said(reception(store, metered(model)))
    [row] = await store.model_calls()
    assert (row.outcome, row.finish) == ("cut", "cut")


async def test_a_summary_is_a_row_of_the_turn_that_needed_it(
    store: Store, provider: Provider, model: OpenAIModel
) -> None:
    replica = Replica(metered(model), Toolkit(), "You are Ada.")
    briefing = Briefing(fitting=Fitting(Room(1400, 900), can_write=True))
    both = Reception(replica, store, max_replies=3, max_message_chars=5000, briefing=briefing)
    for _ in range(2):
        await said(both, "please " * 150)
    assert [row.number for row in await store.model_calls()] == [1, 1, 0]


class Broken:
    """A model with a fault of ours in it."""

    name = "broken"

    async def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        yield "Well"
        raise ZeroDivisionError("the key is sk-secret")

    async def close(self) -> None:
        pass


async def test_a_fault_of_ours_leaves_its_kind_and_no_secret(store: Store) -> None:
    await said(reception(store, metered(Broken())))
    [row] = await store.model_calls()
    assert (row.outcome, row.error) == ("failed", "ZeroDivisionError")


async def test_rows_of_two_visitors_are_not_mixed_up(store: Store, provider: Provider, model: OpenAIModel) -> None:
    both = reception(store, metered(model))
    provider.answer = lambda asked: says(asked["messages"][-1]["content"])
    await asyncio.gather(*(said(both, f"Hello {n}", f"c{n}") for n in range(6)))
    rows = await store.model_calls()
    assert sorted(row.conversation_id for row in rows) == [f"c{n}" for n in range(6)]


async def test_calls_are_collected_whoever_reads_the_events(provider: Provider, model: OpenAIModel) -> None:
    """A generator may be read from one task after the other, each with a context of its own."""
    collected_calls: list[ModelCall] = []
    pieces = collected(metered(model).stream(ASKED, ()), collected_calls)
    async with aclosing(pieces):
        while await asyncio.create_task(_next(pieces)):
            pass
    assert [call.outcome for call in collected_calls] == ["answered"]


async def _next(pieces: AsyncGenerator[str | Reply]) -> str | Reply | None:
    return await anext(pieces, None)


async def test_what_is_asked_outside_of_a_turn_is_told_but_belongs_to_none(
    provider: Provider, model: OpenAIModel
) -> None:
    told: list[ModelCall] = []
    inside: list[ModelCall] = []
    asked = metered(model, told=told)
    with collecting(inside):
        _ = [piece async for piece in asked.stream(ASKED, ())]
    _ = [piece async for piece in asked.stream(ASKED, ())]
    assert (len(inside), len(told)) == (1, 2)


# --- The log ---


async def line_of(reception: Reception, caplog: pytest.LogCaptureFixture) -> str:
    await said(reception)
    return [r.getMessage() for r in caplog.records if r.name == "agent.reception" and r.levelno == logging.INFO][-1]


async def test_the_log_says_money(
    store: Store, provider: Provider, model: OpenAIModel, caplog: pytest.LogCaptureFixture
) -> None:
    provider.script = [Answer([delta(content="Yes."), delta(finish="stop"), usage(1000, 0, 50)])]
    line = await line_of(reception(store, metered(model, Price(0.15, 0.075, 0.60))), caplog)
    assert "tokens 1000 in, 50 out, cost $0.0002, tools none" in line


async def test_an_unknown_price_is_not_made_up(
    store: Store, provider: Provider, model: OpenAIModel, caplog: pytest.LogCaptureFixture
) -> None:
    line = await line_of(reception(store, metered(model, None)), caplog)
    assert "tokens 10 in, 5 out, tools none" in line


async def test_an_estimate_is_called_one(
    store: Store, provider: Provider, model: OpenAIModel, caplog: pytest.LogCaptureFixture
) -> None:
    provider.script = [Answer([delta(content="Yes."), delta(finish="stop")])]
    assert "tokens about " in await line_of(reception(store, metered(model)), caplog)


# --- The table ---


async def test_a_turn_that_is_not_there_keeps_no_calls(store: Store) -> None:
    call = ModelCall(datetime.now(UTC), "h", "m", "left", 1.0, None, Usage(), True, "", (), "", None)
    number = await store.open_turn("c1", "Hello")
    [turn] = (await store.conversation("c1")).turns
    with pytest.raises(LookupError):
        await store.close_turn("c1", number + 1, turn, "answered", [call])
    assert await store.model_calls() == []
