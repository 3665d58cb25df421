"""Prices: by name, by version, through a router, and the owner's own."""

from __future__ import annotations

import pytest

from agent.calls import host_of, money
from agent.conversation import Usage
from agent.prices import Price, price_of, read_prices

PRICE = Price(1.0, 0.5, 2.0)


@pytest.mark.parametrize(
    ("model", "known_as"),
    [
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("openai/gpt-4o-mini", "gpt-4o-mini"),
        ("openai/gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
    ],
)
def test_a_model_is_known_by_its_versions_and_through_a_router(model: str, known_as: str) -> None:
    assert price_of(model, {}) == price_of(known_as, {}) == Price(0.15, 0.075, 0.60)


@pytest.mark.parametrize("model", ["gpt-4o-mini-audio", "gpt-4", "llama3", ""])
def test_another_model_has_no_price(model: str) -> None:
    assert price_of(model, {}) is None


def test_the_owners_price_has_the_last_word() -> None:
    own = read_prices(" gpt-4o-mini = 1/0.5/2 , meta/llama:free=0/0/0,")
    assert price_of("gpt-4o-mini", own) == PRICE
    assert price_of("meta/llama:free", own) == Price(0, 0, 0)


@pytest.mark.parametrize("written", ["x", "x=1", "x=1/2", "x=1/2/3/4", "=1/2/3", "x=1/2/-3", "x=1/2/nan", "x=1/2/1e9"])
def test_a_price_of_another_form_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="needs entries such as"):
        read_prices(written)


def test_more_cached_tokens_than_tokens_cost_no_negative_money() -> None:
    assert PRICE.of(Usage(prompt=10, cached=99, completion=0)) == pytest.approx(5e-6)


def test_nothing_costs_nothing() -> None:
    assert money([]) == ""


@pytest.mark.parametrize(
    ("address", "host"),
    [
        (None, "api.openai.com"),
        ("https://api.groq.com/openai/v1", "api.groq.com"),
        ("http://localhost:11434/v1", "localhost:11434"),
        ("https://user:sk-secret@host.test/v1?key=sk-secret", "host.test"),
        ("http://host.test:99999/v1", "host.test"),
    ],
)
def test_of_a_providers_address_the_host_alone_is_kept(address: str | None, host: str) -> None:
    assert host_of(address) == host
