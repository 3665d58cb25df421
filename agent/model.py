"""One streamed completion from any OpenAI-compatible provider: the only import of openai."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agent.conversation import Reply, WireMessage
from agent.reading import ProviderFault, Reading

if TYPE_CHECKING:
    import openai

log = logging.getLogger(__name__)

ToolChoice = Literal["auto", "none"]

CONNECT_TIMEOUT_S = 10.0
"""A provider that does not take the connection in this time is down."""


class ModelError(Exception):
    """The provider's fault, and nothing was shown yet. The message is for the owner's log: plain, without secrets."""


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

    async def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        import httpx2
        import openai
        from openai.types.chat import ChatCompletion

        request: dict[str, Any] = {
            "model": self.name,
            "messages": list(messages),
            "max_tokens": self._max_output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if tools:
            request |= {"tools": list(tools), "tool_choice": tool_choice}
        reading = Reading()
        try:
            create: Any = self._client.chat.completions.create
            chunks = await create(**request)
            async with chunks:
                if "json" in chunks.response.headers.get("content-type", ""):
                    # Some providers answer with one body although a stream was asked for, errors above all.
                    body = json.loads(await chunks.response.aread())
                    if text := reading.take(ChatCompletion.construct(**body)):
                        yield text
                async for chunk in chunks:
                    if text := reading.take(chunk):
                        yield text
        # httpx2's errors pass through the SDK unchanged while a body is read.
        except (openai.OpenAIError, httpx2.HTTPError, json.JSONDecodeError, ProviderFault) as error:
            reason = explain(error)
            if not reading.shown:
                raise ModelError(f"{self.name}: {reason}") from None
            log.warning("%s broke off in the middle of a reply: %s", self.name, reason)
            reading.finish = None
        if reading.finish is None and reading.empty:
            raise ModelError(f"{self.name}: the provider closed the stream without a word")
        yield reading.reply()

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
    model: str, api_key: str | None, base_url: str | None, *, max_output_tokens: int, timeout_s: float
) -> OpenAIModel:
    """A provider by its address and key. Local servers need no key, but the SDK does."""
    import httpx2
    import openai

    client = openai.AsyncOpenAI(
        api_key=api_key or "none",
        base_url=base_url,
        timeout=httpx2.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
    )
    return OpenAIModel(client, model, max_output_tokens)


def explain(error: Exception) -> str:
    """What went wrong and what the owner can do, in plain words: provider messages may repeat a key."""
    if isinstance(error, ProviderFault):
        return str(error)
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return f"HTTP {status}: {_MENDS.get(status, 'the provider has a fault; try again later')}"
    kind = type(error).__name__
    return _MENDS_BY_KIND.get(kind, f"the provider's answer could not be read ({kind})")


_MENDS: dict[int, str] = {
    400: "the provider refused the request; check OPENAI_MODEL and CONTEXT_TOKENS",
    401: "the key was refused; check OPENAI_API_KEY",
    402: "the account has no credit left",
    403: "the key may not use this model; check OPENAI_API_KEY and OPENAI_MODEL",
    404: "no such model or address; check OPENAI_MODEL and OPENAI_BASE_URL",
    413: "the request is too large; lower CONTEXT_TOKENS",
    429: "the provider's limit is reached; wait, or raise it in the provider's account",
}
_MENDS_BY_KIND = {
    "APITimeoutError": "no answer in time; check OPENAI_BASE_URL, or raise REPLY_TIMEOUT_S",
    "APIConnectionError": "cannot be reached; check OPENAI_BASE_URL and the network",
}
