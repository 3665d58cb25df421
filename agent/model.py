"""One streamed completion from any OpenAI-compatible provider: the only import of openai."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from agent.contract import ChatModel, ModelError, ToolChoice, TooLong
from agent.conversation import Reply, WireMessage
from agent.toolless import FindAddresses, addresses_in, call_in_message, fields_of, without_tools
from agent.wire.chunks import chunks_in
from agent.wire.faults import (
    explain,
    is_broken,
    is_too_long,
    limit_retry_after,
    refuses_tools,
    rejected_text,
    tell_errors_by_status,
)
from agent.wire.reading import ProviderFault, Reading

if TYPE_CHECKING:
    import openai

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
"""A provider that does not take the connection in this time is down."""
SIGN_OF_LIFE_S = 1.0
"""So often a model that shows nothing shows that it is at work."""


class OpenAIModel:
    """A provider behind the chat-completions API; owns its HTTP client."""

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        model: str,
        max_output_tokens: int,
        find_addresses: FindAddresses = addresses_in,
    ) -> None:
        self.name = model
        self._client = client
        self._max_output_tokens = max_output_tokens
        self._find_addresses = find_addresses
        self._toolless = False
        """The provider refused tools once: it is not asked again in this process."""

    async def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        if not self._toolless:
            try:
                async with aclosing(self._once_or_twice(messages, tools, tool_choice, known=tools)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except _ToolsRefused as refused:
                log.warning("%s; addresses are taken from what visitors write instead", refused)
                self._toolless = True
        if tool_choice == "auto" and (call := call_in_message(messages, tools, self._find_addresses)):
            yield Reply(calls=(call,), finish="tool_calls")
            return
        async with aclosing(self._once_or_twice(without_tools(messages), (), "none", known=tools)) as pieces:
            async for piece in pieces:
                yield piece

    async def _once_or_twice(
        self,
        messages: Sequence[WireMessage],
        tools: Sequence[dict[str, Any]],
        tool_choice: ToolChoice,
        known: Sequence[dict[str, Any]],
    ) -> AsyncGenerator[str | Reply]:
        """One completion. The SDK tries again what fails before the body; one that breaks in it is tried once more."""
        tries = 2 if self._client.max_retries else 1
        for number in range(1, tries + 1):
            try:
                async with aclosing(self._complete(messages, tools, tool_choice, known)) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except _Broken as error:
                if number == tries:
                    raise
                log.info("Asked once more: %s", error)

    async def _complete(
        self,
        messages: Sequence[WireMessage],
        tools: Sequence[dict[str, Any]],
        tool_choice: ToolChoice,
        known: Sequence[dict[str, Any]],
    ) -> AsyncGenerator[str | Reply]:
        import httpx2
        import openai

        reading = Reading(fields_of(known), may_call=tool_choice == "auto")
        sign_of_life = time.monotonic()
        try:
            # Asked by its path, so that chunks stay plain JSON: to build its models of them costs the SDK
            # more than all the rest of a turn, and providers send what those do not hold.
            stream = await self._client.post(
                "/chat/completions",
                body=self._request(messages, tools, tool_choice),
                cast_to=object,
                stream=True,
                stream_cls=openai.AsyncStream[object],
                options={"security": {"bearer_auth": True}},  # and never OPENAI_ADMIN_KEY
            )
            async with stream, aclosing(chunks_in(stream.response.aiter_bytes())) as chunks:
                async for chunk in chunks:
                    if text := reading.take(chunk):
                        yield text
                    elif time.monotonic() - sign_of_life > SIGN_OF_LIFE_S and reading.grows():
                        sign_of_life = time.monotonic()
                        yield ""
        # httpx2's errors pass through the SDK unchanged while a body is read.
        except (openai.OpenAIError, httpx2.HTTPError, ValueError, TypeError, RecursionError, ProviderFault) as error:
            if said := rejected_text(error):
                reading.finish = "stop"
                yield reading.take_text(said)
            elif reading.shown:
                log.warning("%s broke off in the middle of a reply: %s", self.name, explain(error))
                reading.finish = None
            else:
                raise self._fault(error, with_tools=bool(tools)) from None
        reply = reading.reply()
        if reply.finish == "cut" and not reply.text.strip():
            raise _Broken(f"{self.name}: the provider closed the stream without a word")
        yield reply

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
        said = f"{self.name}: {explain(error)}"
        if is_too_long(error):
            return TooLong(said)
        return _Broken(said) if is_broken(error) else ModelError(said)

    async def close(self) -> None:
        await self._client.close()


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
        """What is still being built is waited for: whoever builds it has been told to stop."""
        if self._built is None:
            return
        try:
            model = await self._built
        except Exception as error:
            log.debug("What was not built need not be closed (%s)", type(error).__name__)
            return
        await model.close()


def open_provider(
    model: str,
    api_key: str | None,
    base_url: str | None,
    *,
    max_output_tokens: int,
    timeout_s: float,
    max_retries: int = 2,
    find_addresses: FindAddresses = addresses_in,
) -> OpenAIModel:
    """A provider by its address and key. Local servers need no key, but the SDK does.

    Args:
        model: its name there.
        api_key: None: it needs none.
        base_url: None: OpenAI's own.
        max_output_tokens: length of a completion.
        timeout_s: so long nothing at all may come.
        max_retries: of the SDK; 0: what breaks is not tried again at all.
        find_addresses: finds them in what a visitor wrote, for a model that takes no tools.
    """
    client = _client(api_key, base_url, timeout_s, max_retries)
    return OpenAIModel(client, model, max_output_tokens, find_addresses)


class Embedder:
    """A provider behind the embeddings API; owns its HTTP client."""

    def __init__(self, client: openai.AsyncOpenAI, model: str) -> None:
        self.name = model
        self._client = client

    async def __call__(self, texts: Sequence[str]) -> list[Any]:
        """The vectors of texts, in their order, as the provider sent them.

        Raises:
            ModelError: there are none.
        """
        import httpx2
        import openai

        try:
            answer: Any = await self._client.post(
                "/embeddings",
                body={"model": self.name, "input": list(texts)},
                cast_to=object,
                options={"security": {"bearer_auth": True}},
            )
            rows = sorted(answer["data"], key=lambda row: row.get("index") or 0)
            return [row["embedding"] for row in rows]
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            raise ModelError(f"{self.name}: {explain(error)}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{self.name}: the provider sent no vectors ({type(error).__name__})") from None

    async def close(self) -> None:
        await self._client.close()


def open_embedder(
    model: str, api_key: str | None, base_url: str | None, *, timeout_s: float, max_retries: int = 2
) -> Embedder:
    """A provider's model for embeddings. The arguments are those of `open_provider`."""
    return Embedder(_client(api_key, base_url, timeout_s, max_retries), model)


def _client(api_key: str | None, base_url: str | None, timeout_s: float, max_retries: int) -> openai.AsyncOpenAI:
    import httpx2
    import openai

    timeout = httpx2.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S)
    hooks = {"response": [tell_errors_by_status, limit_retry_after]}
    return openai.AsyncOpenAI(
        api_key=api_key or "none",
        base_url=base_url,
        max_retries=max_retries,
        http_client=openai.DefaultAsyncHttpxClient(timeout=timeout, event_hooks=hooks),
    )


class _Broken(ModelError):
    """What came could not be read, or was nothing, and broke off at once: the next try may do better."""


class _ToolsRefused(ModelError):
    """The provider takes no tools with this model."""
