"""Which model answers: the provider with its fallback, or the one that quotes the notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import SecretStr

from agent.answers import Answers
from agent.calls import Metered, ModelCall, OnCall, host_of
from agent.fallback import WithFallback
from agent.finding.encoder import LocalEncoder
from agent.library import Library
from agent.limits import Allowance
from agent.model import ChatModel, Warming, open_provider
from agent.prices import price_of
from agent.settings import Settings
from agent.toolless import FindAddresses, addresses_in

if TYPE_CHECKING:
    from agent.metrics import Metrics


def chat_model(
    settings: Settings,
    library: Library,
    answers: Answers,
    encoder: LocalEncoder,
    on_call: OnCall,
    find_addresses: FindAddresses = addresses_in,
) -> Warming:
    """The provider, with its fallback when there is one; without any, the model that quotes the notes.

    It is built in the background: the SDK and the search take a second that the first page need not wait for.
    """

    def provider(name: str, key: SecretStr | None, base_url: str | None) -> Metered:
        model = open_provider(
            name,
            key.get_secret_value() if key else None,
            base_url,
            max_output_tokens=settings.max_output_tokens,
            timeout_s=settings.reply_timeout_s,
            find_addresses=find_addresses,
        )
        return Metered(model, host_of(base_url), price_of(name, settings.model_prices), on_call)

    def build() -> ChatModel:
        if not settings.has_provider:
            return notes_model(library, answers, encoder, find_addresses)
        first = provider(settings.openai_model, settings.openai_api_key, settings.openai_base_url)
        if not settings.has_fallback or not settings.fallback_model:
            return first
        second = provider(settings.fallback_model, settings.fallback_api_key, settings.fallback_base_url)
        return WithFallback(first, second, patience_s=settings.reply_timeout_s / 3)

    return Warming(settings.openai_model if settings.has_provider else "notes", build)


def notes_model(
    library: Library, answers: Answers, encoder: LocalEncoder, find_addresses: FindAddresses, *, resting: bool = False
) -> ChatModel:
    """The model that quotes the notes, and says why."""
    from agent.notes import Notes
    from agent.offline import NOTICE, NOTICE_RESTING, OfflineModel

    shown = library.shelf.profile
    # Vectors of this encoder are made where no provider answers.
    notes = Notes(library, answers, encoder.load, by_meaning=not resting).open()
    return OfflineModel(shown.name, shown.line, notes, NOTICE_RESTING if resting else NOTICE, find_addresses)


def resting_model(
    library: Library, answers: Answers, encoder: LocalEncoder, find_addresses: FindAddresses = addresses_in
) -> Warming:
    """Who answers when the day's tokens are used up. Most days nobody does: it is built when it is asked."""
    return Warming("notes", lambda: notes_model(library, answers, encoder, find_addresses, resting=True))


def counting(allowance: Allowance | None, metrics: Metrics | None) -> OnCall:
    """Counts each request to a provider; without an allowance it is none of a visitor's."""

    def count(call: ModelCall) -> None:
        if allowance:
            allowance.spend(call.tokens)
        if metrics:
            metrics.called(call)

    return count
