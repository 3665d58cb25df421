"""What makes vectors of the knowledge: the provider's model, the local encoder of the keyless one, or nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.calls import ModelCall, OnCall, Outcome, host_of
from agent.contract import ModelError
from agent.conversation import Usage
from agent.finding.embeddings import MOST_LOCAL, Embed, Embeddings, local
from agent.finding.encoder import LocalEncoder
from agent.finding.index import Index
from agent.model import Embedder, open_embedder
from agent.prices import Price, price_of
from agent.room import estimate_tokens
from agent.settings import Settings

LOCAL_SPACE = "all-MiniLM-L6-v2"


class Remote:
    """A provider's model for embeddings: owns its client, which is opened when the first text comes, in a thread.

    Args:
        open_it: opens the client.
        provider: its host.
        model: its name there.
        price: of its tokens; None: not known.
    """

    def __init__(self, open_it: Callable[[], Embedder], provider: str, model: str, price: Price | None) -> None:
        self._open = open_it
        self._provider = provider
        self._model = model
        self._price = price
        self._opened: asyncio.Future[Embedder] | None = None

    def counted(self, on_call: OnCall) -> Embed:
        """Makes vectors, and tells of each request when it has ended. Tokens are counted by their bytes."""

        async def embed(texts: Sequence[str]) -> object:
            began, at = time.monotonic(), datetime.now(UTC)
            outcome, error, tokens = "left", "nobody waited for the end", 0
            try:
                vectors = await (await self._embedder())(texts)
                outcome, error, tokens = "answered", "", sum(map(estimate_tokens, texts))
                return vectors
            except ModelError as fault:
                outcome, error = "failed", str(fault)
                raise
            finally:
                on_call(self._call(at, time.monotonic() - began, outcome, error, tokens))

        return embed

    async def close(self) -> None:
        if self._opened is not None:
            await (await self._opened).close()

    async def _embedder(self) -> Embedder:
        if self._opened is None:
            # The SDK takes a second to import, which the page need not wait for.
            self._opened = asyncio.ensure_future(asyncio.to_thread(self._open))
        return await asyncio.shield(self._opened)

    def _call(self, at: datetime, duration_s: float, outcome: Outcome, error: str, tokens: int) -> ModelCall:
        usage = Usage(prompt=tokens)
        return ModelCall(
            at=at,
            provider=self._provider,
            model=self._model,
            outcome=outcome,
            duration_s=duration_s,
            first_token_s=None,
            usage=usage,
            estimated=True,
            finish="",
            tools=(),
            error=error,
            cost=self._price.of(usage) if self._price else None,
        )


@dataclass(frozen=True, slots=True)
class Meaning:
    """The search by meaning, with what it owns."""

    search: Embeddings | None
    """None: knowledge is searched by words alone."""
    remote: Remote | None = None

    async def close(self) -> None:
        if self.remote:
            await self.remote.close()


def open_meaning(
    settings: Settings, index: Index | None, encoder: LocalEncoder, on_question: OnCall, on_passages: OnCall
) -> Meaning:
    """What the settings ask for. Nothing is loaded or connected yet.

    Args:
        settings: name the provider and its model.
        index: where passages and vectors are kept; None: there is no search.
        encoder: of the keyless model.
        on_question: told of each request for the vector of a question.
        on_passages: told of each request for vectors of passages, which are made once and for no visitor.
    """
    if index is None:
        return Meaning(None)
    if not settings.has_provider:
        return Meaning(Embeddings(index, local(encoder.load), LOCAL_SPACE, most=MOST_LOCAL))
    if not (model := settings.embeddings_model):
        return Meaning(None)
    key, url = settings.openai_api_key, settings.openai_base_url

    def open_it() -> Embedder:
        secret = key.get_secret_value() if key else None
        return open_embedder(model, secret, url, timeout_s=settings.reply_timeout_s)

    host = host_of(url)
    remote = Remote(open_it, host, model, price_of(model, settings.model_prices))
    embed, embed_question = remote.counted(on_passages), remote.counted(on_question)
    return Meaning(Embeddings(index, embed, f"{model} at {host}", embed_question=embed_question), remote)
