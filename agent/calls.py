"""What each request to a provider took and cost, however it ended: one row a call, collected by the turn."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from agent.conversation import Reply, Usage, WireMessage
from agent.model import ChatModel, ModelError, ToolChoice
from agent.prices import Price
from agent.room import BYTES_PER_TOKEN

Event = TypeVar("Event")

Outcome = Literal["answered", "cut", "failed", "left"]
"""`cut`: the stream broke off; `failed`: there was no reply; `left`: nobody waited for its end any more."""

LEFT = "nobody waited for the end"


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a provider."""

    at: datetime
    provider: str
    """Its host."""
    model: str
    outcome: Outcome
    duration_s: float
    first_token_s: float | None
    """Until the first text that may be shown, in seconds; None when there was none."""
    usage: Usage
    estimated: bool
    """The provider sent no counts."""
    finish: str
    """Why the completion ended; empty when it did not."""
    tools: tuple[str, ...]
    """Names of the tools that it called, as the model wrote them."""
    error: str
    """What went wrong, in plain words; empty when nothing did."""
    cost: float | None
    """In USD; None where the price is not known."""

    @property
    def tokens(self) -> int:
        return self.usage.prompt + self.usage.completion


OnCall = Callable[[ModelCall], None]

_collected: ContextVar[list[ModelCall] | None] = ContextVar("collected", default=None)
"""Where the calls of the turn at hand go. A model is shared by all turns, and a fallback asks two models for one
reply: so what a call belongs to cannot be told from the model."""


@contextmanager
def collecting(calls: list[ModelCall]) -> Generator[None]:
    """Calls that metered models begin inside go into `calls` when they end."""
    token = _collected.set(calls)
    try:
        yield
    finally:
        _collected.reset(token)


async def collected(events: AsyncGenerator[Event], calls: list[ModelCall]) -> AsyncGenerator[Event]:
    """The same events; what their source asks of metered models goes into `calls`.

    It is set for each step anew, since whoever reads a generator may do so from one task after the other.
    """
    async with aclosing(events):
        while True:
            with collecting(calls):
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
            yield event


class Metered:
    """A model whose every call leaves a ModelCall.

    Args:
        model: who is asked.
        provider: its host.
        price: of its tokens; None: not known.
        on_call: told of each call when it has ended, beside the turn.
    """

    def __init__(self, model: ChatModel, provider: str, price: Price | None, on_call: OnCall) -> None:
        self.name = model.name
        self._model = model
        self._provider = provider
        self._price = price
        self._on_call = on_call

    async def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        calls = _collected.get()
        meter = _Meter()
        try:
            async with aclosing(self._model.stream(messages, tools, tool_choice)) as pieces:
                async for piece in pieces:
                    meter.take(piece)
                    yield piece
        except ModelError as error:
            meter.failed(str(error))
            raise
        except Exception as error:
            meter.failed(type(error).__name__)
            raise
        finally:
            # Also when the visitor has left or the time is over: what was asked has to be paid.
            call = self._read(meter, messages, tools)
            self._on_call(call)
            if calls is not None:
                calls.append(call)

    def _read(self, meter: _Meter, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]]) -> ModelCall:
        counted = meter.counted
        usage = counted or meter.estimate(messages, tools)
        return ModelCall(
            at=meter.at,
            provider=self._provider,
            model=self.name,
            outcome=meter.outcome,
            duration_s=time.monotonic() - meter.began,
            first_token_s=meter.first_token_s,
            usage=usage,
            estimated=counted is None,
            finish=meter.reply.finish if meter.reply else "",
            tools=tuple(call.name for call in meter.reply.calls) if meter.reply else (),
            error=meter.error,
            cost=self._price.of(usage) if self._price else None,
        )

    async def close(self) -> None:
        await self._model.close()


class _Meter:
    """What is seen of one call while it runs."""

    def __init__(self) -> None:
        self.at = datetime.now(UTC)
        self.began = time.monotonic()
        self.first_token_s: float | None = None
        self.reply: Reply | None = None
        self.outcome: Outcome = "left"
        self.error = LEFT
        self._shown: list[str] = []

    def take(self, piece: str | Reply) -> None:
        if isinstance(piece, Reply):
            self.reply = piece
            cut = piece.finish == "cut"
            self.outcome, self.error = ("cut", "the stream broke off") if cut else ("answered", "")
            return
        if piece and self.first_token_s is None:
            self.first_token_s = time.monotonic() - self.began
        self._shown.append(piece)

    @property
    def counted(self) -> Usage | None:
        """What the provider counted. Some send nothing but zeros."""
        usage = self.reply.usage if self.reply else None
        return usage if usage and (usage.prompt or usage.completion) else None

    def failed(self, error: str) -> None:
        self.outcome, self.error = "failed", error

    def estimate(self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]]) -> Usage:
        """Tokens by their bytes. A request that failed is taken to cost nothing, as with every known provider."""
        if self.outcome == "failed":
            return Usage()
        return Usage(prompt=_tokens([messages, tools]), completion=_tokens(self._written()))

    def _written(self) -> str:
        if self.reply is None:
            return "".join(self._shown)
        calls = (call.name + call.arguments for call in self.reply.calls)
        return self.reply.text + self.reply.reasoning + "".join(calls)


def _tokens(value: Any) -> int:
    """What a value takes on the wire, in tokens; halves of surrogate pairs included."""
    return -(-len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def host_of(base_url: str | None) -> str:
    """The provider by its host, and the port of a local one; nothing else of an address, which may hold a key."""
    if not base_url:
        return "api.openai.com"
    parts = urlsplit(base_url)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    return f"{parts.hostname or 'unknown'}{port}"


def money(calls: Sequence[ModelCall]) -> str:
    """What calls cost together, for a person; empty where a price is not known."""
    costs = [call.cost for call in calls]
    if not calls or any(cost is None for cost in costs):
        return ""
    total = sum(cost for cost in costs if cost is not None)
    return f"${total:.4f}" if total < 1 else f"${total:.2f}"
