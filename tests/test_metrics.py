"""`/metrics`: numbers alone, off unless they are wanted."""

from __future__ import annotations

import asyncio
import re
from typing import Any, cast

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families
from starlette.requests import Request

from agent.calls import Metered
from agent.limits import Gate
from agent.loop import Replica
from agent.metrics import CONTENT_TYPE, Metrics
from agent.model import OpenAIModel
from agent.prices import Price
from agent.reception import Opened, Reception, Refused
from agent.settings import load_settings
from alerts.outbox import Outbox
from app import numbers, open_metrics
from pages.probes import metrics_route
from store.store import Store
from tests.fakes.provider import Answer, Provider, delta, says
from tools.registry import toolkit


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def reception(model: OpenAIModel, store: Store, metrics: Metrics) -> Reception:
    metered = Metered(model, "provider.test", Price(1000, 500, 2000), metrics.called)
    replica = Replica(metered, toolkit(Outbox(store, [])), "You are Ada.")
    return Reception(replica, store, max_replies=1, max_message_chars=50, gate=Gate(3), watch=metrics)


async def said(reception: Reception, message: str, address: str = "203.0.113.77") -> None:
    async for _ in reception.answer("conversation-id", message, address):
        pass


async def scraped(metrics: Metrics, reception: Reception, store: Store) -> tuple[str, str]:
    """What a Prometheus server gets: the type of the content, and the content."""
    route = metrics_route(numbers(metrics, reception, store), CONTENT_TYPE)
    assert route.path == "/metrics"
    response: Any = await cast(Any, route.endpoint)(Request({"type": "http"}))
    return response.headers["content-type"], response.body.decode()


async def samples(metrics: Metrics, reception: Reception, store: Store) -> dict[str, float]:
    """Values by name and labels."""
    _, text = await scraped(metrics, reception, store)
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name.removeprefix('carboncopy_')}{{{labels}}}"] = sample.value
    return found


async def test_turns_calls_tokens_and_money_are_counted(
    reception: Reception, metrics: Metrics, store: Store, provider: Provider
) -> None:
    await said(reception, "Hello")
    provider.script = [Answer(status=500)]
    await said(reception, "And now?")
    found = await samples(metrics, reception, store)
    assert found["turns_total{stop=answered}"] == 1
    assert found["turns_total{stop=failed}"] == 1
    assert found["model_calls_total{model=scripted,outcome=answered,provider=provider.test}"] == 1
    assert found["model_calls_total{model=scripted,outcome=failed,provider=provider.test}"] == 1
    assert (found["tokens_total{kind=in}"], found["tokens_total{kind=out}"]) == (10, 5)
    assert found["tokens_total{kind=cached}"] == 0
    assert found["cost_usd_total{}"] == pytest.approx(0.02)
    assert found["first_token_seconds_count{}"] == 1
    assert found["turn_seconds_count{}"] == 2


async def test_refusals_are_counted_by_limit(reception: Reception, metrics: Metrics, store: Store) -> None:
    for message in ("", "x" * 51, "1", "2", "3", "4", "5"):
        try:
            await said(reception, message)
        except Refused:
            continue
    found = await samples(metrics, reception, store)
    assert {name: value for name, value in found.items() if name.startswith("refusals_total")} == {
        "refusals_total{kind=blank}": 1,
        "refusals_total{kind=too_long}": 1,
        "refusals_total{kind=pace_conversation}": 2,
    }


async def test_the_line_is_shown_as_it_stands(
    reception: Reception, metrics: Metrics, store: Store, provider: Provider
) -> None:
    provider.answer = lambda asked: Answer([delta(content="Hm")], hold=asyncio.Event())
    first = reception.answer("c1", "Hi")
    assert isinstance(await anext(first), Opened)
    second = asyncio.ensure_future(anext(reception.answer("c2", "Hi")))
    await asyncio.sleep(0)
    found = await samples(metrics, reception, store)
    assert (found["replies_running{}"], found["replies_waiting{}"]) == (1, 1)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    await first.aclose()
    found = await samples(metrics, reception, store)
    assert (found["replies_running{}"], found["replies_waiting{}"]) == (0, 0)


async def test_alerts_are_shown_by_state(reception: Reception, metrics: Metrics, store: Store) -> None:
    await Outbox(store, []).trouble("reply", "The key was refused")
    found = await samples(metrics, reception, store)
    assert found["alerts{state=pending}"] == 1
    assert found["alerts{state=sent}"] == 0


async def test_nothing_of_a_visitor_stands_there(
    reception: Reception, metrics: Metrics, store: Store, provider: Provider
) -> None:
    provider.script = [says("Thank you, Jane.")]
    await said(reception, "I am Jane, jane@example.org")
    kind, text = await scraped(metrics, reception, store)
    assert kind == CONTENT_TYPE
    assert kind.startswith("text/plain; version=")
    assert "carboncopy_turns_total" in text
    for secret in ("Jane", "jane@", "203.0.113.77", "conversation-id", "Thank"):
        assert secret not in text


async def test_two_houses_in_one_process_do_not_share_numbers(metrics: Metrics) -> None:
    metrics.refused("blank")
    assert 'kind="blank"' not in Metrics().text({})
    assert not [family for family in REGISTRY.collect() if family.name.startswith("carboncopy")]


@pytest.mark.parametrize(("written", "wanted"), [("", False), ("0", False), ("1", True), ("true", True)])
async def test_the_numbers_are_off_unless_they_are_wanted(written: str, wanted: bool) -> None:
    metrics = open_metrics(load_settings({"METRICS": written}))
    assert bool(metrics) is wanted


def test_every_number_says_what_it_is(metrics: Metrics) -> None:
    described = re.findall(r"^# HELP (\w+) (.+)$", metrics.text({}), re.MULTILINE)
    assert len(described) >= 10
    assert all(len(text) > 10 for _, text in described)
