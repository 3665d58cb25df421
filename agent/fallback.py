"""Two providers for one reply: the second is asked while nothing of the first was shown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agent.contract import ChatModel, ModelError, ToolChoice, TooLong
from agent.conversation import Reply, WireMessage

log = logging.getLogger(__name__)

PATIENCE_S = 20.0
SECOND = "@second"
"""Marks what the second provider wants back: the first gets none of it, nor the second what is the first's."""
_PLAIN = ("role", "content", "tool_calls", "tool_call_id")
_PLAIN_IN_CALL = ("id", "type", "function")


class WithFallback:
    """Asks a second provider when the first fails before anything was shown.

    Args:
        first: asked each time.
        second: asked in its place.
        patience_s: so long the first may show no sign of life; twice as long it may show no text.
    """

    def __init__(self, first: ChatModel, second: ChatModel, patience_s: float = PATIENCE_S) -> None:
        self.name = first.name
        self._first = first
        self._second = second
        self._patience_s = patience_s

    async def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        shown = False
        try:
            pieces = self._first.stream(_for_first(messages), tools, tool_choice)
            async with aclosing(_impatient(pieces, self._first.name, self._patience_s)) as first:
                async for piece in first:
                    if not shown and isinstance(piece, Reply) and _says_nothing(piece, may_call=tool_choice == "auto"):
                        raise ModelError(f"{self._first.name}: the reply is blank")
                    shown = shown or bool(piece)
                    yield piece
            return
        except TooLong as error:
            # A shorter request is tried first; whoever shortens it knows when that has been done.
            raise TooLong(str(error), instead=_Second(self._second)) from None
        except ModelError as error:
            log.warning("The fallback provider is asked: %s", error)
        async with aclosing(_Second(self._second).stream(messages, tools, tool_choice)) as second:
            async for piece in second:
                yield piece

    async def close(self) -> None:
        for model in (self._first, self._second):
            await model.close()


class _Second:
    """The second provider alone, for the rest of a turn."""

    def __init__(self, model: ChatModel) -> None:
        self.name = model.name
        self._model = model

    async def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        async with aclosing(self._model.stream(_for_second(messages), tools, tool_choice)) as pieces:
            async for piece in pieces:
                yield _marked(piece) if isinstance(piece, Reply) else piece

    async def close(self) -> None:
        await self._model.close()


async def _impatient(pieces: AsyncGenerator[str | Reply], name: str, patience_s: float) -> AsyncGenerator[str | Reply]:
    """The same pieces. The clock stops when something is shown: a reply that has begun may take its time.

    Raises:
        ModelError: the first piece did not come in time.
    """
    now = asyncio.get_running_loop().time
    latest, shown = now() + 2 * patience_s, False
    async with aclosing(pieces):
        while True:
            try:
                async with asyncio.timeout_at(None if shown else min(now() + patience_s, latest)):
                    piece = await anext(pieces, None)
            except TimeoutError:
                raise ModelError(f"{name}: no word in time") from None
            if piece is None:
                return
            shown = shown or bool(piece)
            yield piece


def _says_nothing(reply: Reply, *, may_call: bool) -> bool:
    """Where a call was possible a blank reply is asked for once more by whoever reads it, before it comes to this."""
    return not may_call and not reply.text.strip()


def _marked(reply: Reply) -> Reply:
    calls = tuple(replace(call, extra=_under_mark(call.extra)) for call in reply.calls)
    return replace(reply, calls=calls, extra=_under_mark(reply.extra))


def _under_mark(extra: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    return ((SECOND, dict(extra)),) if extra else ()


def _for_first(messages: Sequence[WireMessage]) -> list[WireMessage]:
    """Without what the second provider added."""
    return [_with_calls({k: v for k, v in message.items() if k != SECOND}, _unmarked) for message in messages]


def _for_second(messages: Sequence[WireMessage]) -> list[WireMessage]:
    """With what the second provider added, and nothing of the first's."""
    return [_with_calls(_revealed(message, _PLAIN), _revealed_call) for message in messages]


def _with_calls(message: WireMessage, change: Any) -> WireMessage:
    calls: list[WireMessage] = message.get("tool_calls", [])
    return message | {"tool_calls": [change(call) for call in calls]} if calls else message


def _unmarked(call: WireMessage) -> WireMessage:
    return {name: value for name, value in call.items() if name != SECOND}


def _revealed(fields: WireMessage, plain: Sequence[str]) -> WireMessage:
    return {**fields.get(SECOND, {}), **{name: value for name, value in fields.items() if name in plain}}


def _revealed_call(call: WireMessage) -> WireMessage:
    return _revealed(call, _PLAIN_IN_CALL)
