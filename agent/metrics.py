"""Numbers for Prometheus: counted along, without a word or an address of any visitor's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from agent.calls import ModelCall
from agent.events import StopReason

CONTENT_TYPE: str = CONTENT_TYPE_LATEST
"""Names the version of the text format."""

SECONDS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120)
"""Upper ends of the histograms' buckets."""


class Metrics:
    """Owns a registry of its own, so that nothing is shared with other users of the library in this process."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        prefix: dict[str, Any] = {"namespace": "carboncopy", "registry": registry}
        self._turns = Counter("turns", "Turns by how they ended.", ["stop"], **prefix)
        self._turn_seconds = Histogram("turn_seconds", "Whole turns.", buckets=SECONDS, **prefix)
        self._refusals = Counter("refusals", "Messages that were not taken, by limit.", ["kind"], **prefix)
        self._calls = Counter(
            "model_calls", "Requests to providers by how they ended.", ["provider", "model", "outcome"], **prefix
        )
        self._first_token_seconds = Histogram(
            "first_token_seconds", "From a request to its first text.", buckets=SECONDS, **prefix
        )
        self._tokens = Counter("tokens", "Tokens: read, of these cached, written.", ["kind"], **prefix)
        self._cost = Counter("cost_usd", "What tokens cost, where the price is known.", **prefix)
        self._unfounded = Counter("answers_without_source", "Answers to questions that name no source.", **prefix)
        self._running = Gauge("replies_running", "Replies under way.", **prefix)
        self._waiting = Gauge("replies_waiting", "Messages that wait for a reply to begin.", **prefix)
        self._alerts = Gauge("alerts", "Alerts to the owner by state.", ["state"], **prefix)

    def refused(self, kind: str) -> None:
        """A message was not taken."""
        self._refusals.labels(kind).inc()

    def finished(self, stop: StopReason, duration_s: float) -> None:
        """A turn has ended."""
        self._turns.labels(stop).inc()
        self._turn_seconds.observe(duration_s)

    def unfounded(self) -> None:
        """A question was answered without a source."""
        self._unfounded.inc()

    def called(self, call: ModelCall) -> None:
        """A request to a provider has ended."""
        self._calls.labels(call.provider, call.model, call.outcome).inc()
        for kind, tokens in (
            ("in", call.usage.prompt),
            ("cached", call.usage.cached),
            ("out", call.usage.completion),
        ):
            self._tokens.labels(kind).inc(max(0, tokens))
        self._cost.inc(call.cost or 0)
        if call.first_token_s is not None:
            self._first_token_seconds.observe(call.first_token_s)

    def watch_line(self, running: Callable[[], int], waiting: Callable[[], int]) -> None:
        """Asks for these two whenever somebody looks."""
        self._running.set_function(running)
        self._waiting.set_function(waiting)

    def text(self, alerts: Mapping[str, int]) -> str:
        """Everything in Prometheus' text format.

        Args:
            alerts: how many there are in each state.
        """
        for state, count in alerts.items():
            self._alerts.labels(state).set(count)
        return generate_latest(self._registry).decode()
