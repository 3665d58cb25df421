"""One streamed completion from any OpenAI-compatible provider: the only import of openai."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agent.conversation import Reply, WireMessage
from agent.faults import (
    explain,
    is_too_long,
    limit_retry_after,
    refuses_tools,
    rejected_text,
    tell_errors_by_status,
)
from agent.reading import ProviderFault, Reading
from agent.toolless import call_in_message, without_tools

if TYPE_CHECKING:
    import openai

log = logging.getLogger(__name__)

ToolChoice = Literal["auto", "none"]

CONNECT_TIMEOUT_S = 10.0
"""A provider that does not take the connection in this time is down."""


class ModelError(Exception):
    """The provider's fault, and nothing was shown yet. The message is for the owner's log: plain, without secrets."""


class TooLong(ModelError):
    """The request is longer than the model can read: a shorter one may succeed."""


class ChatModel(Protocol):
    """Whatever can complete a conversation: a provider, two in turn, or none."""

    name: str

    def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        """Yields pieces of text as they come, and last of all the whole Reply.

        Raises:
            ModelError: there is no reply. Once a piece was yielded a broken stream does not
                raise: its Reply says `cut`.
        """
        ...

    async def close(self) -> None:
        """Gives back connections. The model cannot be used afterwards."""
        ...


class OpenAIModel:
    """A provider behind the chat-completions API; owns its HTTP client."""

    def __init__(self, client: openai.AsyncOpenAI, model: str, max_output_tokens: int) -> None:
        self.name = model
        self._client = client
        self._max_output_tokens = max_output_tokens
        self._toolless = False
        """The provider refused tools once: it is not asked again in this process."""

    async def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        if not self._toolless:
            try:
                async with aclosing(self._complete(messages, tools, tool_choice)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except _ToolsRefused as refused:
                log.warning("%s; addresses are taken from what visitors write instead", refused)
                self._toolless = True
        if tool_choice == "auto" and (call := call_in_message(messages, tools)):
            yield Reply(calls=(call,), finish="tool_calls")
            return
        async with aclosing(self._complete(without_tools(messages), (), "none")) as pieces:
            async for piece in pieces:
                yield piece

    async def _complete(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice
    ) -> AsyncGenerator[str | Reply]:
        import httpx2
        import openai

        reading = Reading()
        try:
            # Asked by its path, so that chunks stay plain JSON: to build its models of them costs the SDK
            # more than all the rest of a turn, and providers send what those do not hold.
            chunks = await self._client.post(
                "/chat/completions",
                body=self._request(messages, tools, tool_choice),
                cast_to=object,
                stream=True,
                stream_cls=openai.AsyncStream[object],
                options={"security": {"bearer_auth": True}},  # and never OPENAI_ADMIN_KEY
            )
            async with chunks:
                async for chunk in _chunks_of(chunks):
                    if text := reading.take(chunk):
                        yield text
        # httpx2's errors pass through the SDK unchanged while a body is read.
        except (openai.OpenAIError, httpx2.HTTPError, json.JSONDecodeError, ProviderFault) as error:
            if said := rejected_text(error):
                reading.finish = "stop"
                yield reading.take_text(said)
            elif reading.shown:
                log.warning("%s broke off in the middle of a reply: %s", self.name, explain(error))
                reading.finish = None
            else:
                raise self._fault(error, with_tools=bool(tools)) from None
        if reading.finish is None and reading.empty:
            raise ModelError(f"{self.name}: the provider closed the stream without a word")
        yield reading.reply()

    def _request(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice
    ) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.name,
            "messages": list(messages),
            "max_tokens": self._max_output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return request | {"tools": list(tools), "tool_choice": tool_choice} if tools else request

    def _fault(self, error: Exception, *, with_tools: bool) -> ModelError:
        if with_tools and refuses_tools(error):
            return _ToolsRefused(f"{self.name} does not support tools")
        kind = TooLong if is_too_long(error) else ModelError
        return kind(f"{self.name}: {explain(error)}")

    async def close(self) -> None:
        await self._client.close()


class WithFallback:
    """Asks a second provider when the first fails before anything was shown."""

    def __init__(self, first: ChatModel, second: ChatModel) -> None:
        self.name = first.name
        self._models = (first, second)

    async def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        first, second = self._models
        try:
            async with aclosing(first.stream(messages, tools, tool_choice)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except TooLong:
            raise
        except ModelError as error:
            log.warning("The fallback provider is asked: %s", error)
        async with aclosing(second.stream(messages, tools, tool_choice)) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        for model in self._models:
            await model.close()


class Warming:
    """A model that is built in the background, so that the page need not wait for its imports."""

    def __init__(self, name: str, build: Callable[[], ChatModel]) -> None:
        self.name = name
        self._build = build
        self._built: asyncio.Future[ChatModel] | None = None

    def start(self) -> asyncio.Future[ChatModel]:
        """Begins to build, once; the first reply waits for the end of it."""
        if self._built is None:
            self._built = asyncio.ensure_future(asyncio.to_thread(self._build))
        return self._built

    async def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        model = await asyncio.shield(self.start())
        async with aclosing(model.stream(messages, tools, tool_choice)) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        if self._built is not None:
            await (await self._built).close()


def open_provider(
    model: str,
    api_key: str | None,
    base_url: str | None,
    *,
    max_output_tokens: int,
    timeout_s: float,
    max_retries: int = 2,
) -> OpenAIModel:
    """A provider by its address and key. Local servers need no key, but the SDK does."""
    import httpx2
    import openai

    timeout = httpx2.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S)
    hooks = {"response": [tell_errors_by_status, limit_retry_after]}
    client = openai.AsyncOpenAI(
        api_key=api_key or "none",
        base_url=base_url,
        max_retries=max_retries,
        http_client=openai.DefaultAsyncHttpxClient(timeout=timeout, event_hooks=hooks),
    )
    return OpenAIModel(client, model, max_output_tokens)


async def _chunks_of(stream: Any) -> AsyncGenerator[Any]:
    """The chunks of a stream. Some providers answer with one body although a stream was asked for."""
    if "json" in stream.response.headers.get("content-type", ""):
        yield json.loads(await stream.response.aread())
        return
    async for chunk in stream:
        yield chunk


class _ToolsRefused(ModelError):
    """The provider takes no tools with this model."""
