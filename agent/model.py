"""One streamed completion from any OpenAI-compatible provider: the only import of openai."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from agent.conversation import Finish, Reply, ToolCall, Usage, WireMessage

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
                    if text := reading.take(openai.types.chat.ChatCompletion.construct(**body)):
                        yield text
                async for chunk in chunks:
                    if text := reading.take(chunk):
                        yield text
        # httpx2's errors pass through the SDK unchanged while a body is read.
        except (openai.OpenAIError, httpx2.HTTPError, json.JSONDecodeError, ModelError) as error:
            reason = explain(error)
            if not reading.text:
                raise ModelError(f"{self.name}: {reason}") from None
            log.warning("%s broke off in the middle of a reply: %s", self.name, reason)
            reading.finish = None
        if reading.finish is None and not reading.text and not reading.calls:
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


class Reading:
    """A reply as its chunks arrive. A call is recognised by its presence when the stream has ended."""

    def __init__(self) -> None:
        self.finish: str | None = None
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_CallInPieces] = []
        self._usage: Usage | None = None

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def calls(self) -> bool:
        return bool(self._calls)

    def take(self, chunk: Any) -> str:
        """Adds a chunk and returns the text in it that may be shown."""
        if usage := getattr(chunk, "usage", None):
            self._usage = _read_usage(usage)
        choices = getattr(chunk, "choices", None)
        if choices is None:
            raise ModelError(_say_error_body(chunk))
        if not choices:
            return ""
        choice = choices[0]
        self.finish = getattr(choice, "finish_reason", None) or self.finish
        whole = getattr(choice, "message", None)
        delta = whole or getattr(choice, "delta", None)
        if delta is None:
            return ""
        thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        if isinstance(thought, str):
            self._reasoning.append(thought)
        for piece in getattr(delta, "tool_calls", None) or ():
            self._take_call(piece, new=whole is not None)
        text = getattr(delta, "content", None)
        if not isinstance(text, str) or not text:
            return ""
        self._texts.append(text)
        return text

    def reply(self) -> Reply:
        """What has arrived. A stream without a finish reason was cut, and its last call may be half a call."""
        cut = self.finish is None
        calls = () if cut and self.text else _with_unique_ids([call.call() for call in self._calls])
        finish: Finish = "cut" if cut and not calls else _finish(self.finish)
        return Reply(self.text, calls, finish, self._usage, "".join(self._reasoning))

    def _take_call(self, piece: Any, *, new: bool) -> None:
        index, call_id = getattr(piece, "index", None), getattr(piece, "id", None) or ""
        call = None if new else self._find_call(index, call_id)
        if call is None:
            call = _CallInPieces(index)
            self._calls.append(call)
        call.take(piece, call_id)

    def _find_call(self, index: int | None, call_id: str) -> _CallInPieces | None:
        """The call that a piece belongs to. Without an index a new id begins a new call; with one, too,
        since some providers give every call the index 0."""
        last = self._calls[-1] if self._calls else None
        if index is None:
            return None if call_id and last and last.id != call_id else last
        for call in reversed(self._calls):
            if call.index == index:
                return None if call_id and call.id and call.id != call_id else call
        return None


class _CallInPieces:
    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self._name = ""
        self._arguments: list[str] = []
        self._extra: dict[str, Any] = {}

    def take(self, piece: Any, call_id: str) -> None:
        self.id = self.id or call_id
        function = getattr(piece, "function", None)
        self._name = self._name or getattr(function, "name", None) or ""
        arguments = getattr(function, "arguments", None)
        if arguments is not None:
            self._arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))
        self._extra |= getattr(piece, "model_extra", None) or {}

    def call(self) -> ToolCall:
        return ToolCall(self.id, self._name, "".join(self._arguments), tuple(self._extra.items()))


def _with_unique_ids(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    taken: set[str] = set()
    unique: list[ToolCall] = []
    for number, call in enumerate(calls):
        call_id = call.id
        while not call_id or call_id in taken:
            call_id = f"{call.id or 'call'}_{number}_{len(taken)}"
        taken.add(call_id)
        unique.append(ToolCall(call_id, call.name, call.arguments, call.extra))
    return tuple(unique)


def _finish(reason: str | None) -> Finish:
    return reason if reason in ("stop", "length", "content_filter", "tool_calls") else "stop"


def _read_usage(usage: Any) -> Usage:
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        prompt=getattr(usage, "prompt_tokens", None) or 0,
        cached=getattr(details, "cached_tokens", None) or 0,
        completion=getattr(usage, "completion_tokens", None) or 0,
    )


def _say_error_body(chunk: Any) -> str:
    extra: dict[str, Any] = getattr(chunk, "model_extra", None) or {}
    error = extra.get("error")
    code = cast(dict[str, Any], error).get("code") if isinstance(error, dict) else None
    return f"the provider sent an error (code {code!r}) instead of a reply"


def explain(error: Exception) -> str:
    """What went wrong and what the owner can do, in plain words: provider messages may repeat a key."""
    if isinstance(error, ModelError):
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
