"""What tokens cost: a small table of list prices, over which an owner can write their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent.conversation import Usage

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """USD for a million tokens."""

    read: float
    """Of the prompt."""
    cached: float
    """Of the prompt, where the provider had it in its cache."""
    written: float
    """Of the reply."""

    def of(self, usage: Usage) -> float:
        """The cost of one completion, in USD. Cached tokens are a part of the prompt's."""
        cached = min(usage.cached, usage.prompt)
        return ((usage.prompt - cached) * self.read + cached * self.cached + usage.completion * self.written) / MILLION


PRICES = {
    "gpt-4o-mini": Price(0.15, 0.075, 0.60),
    "gpt-4o": Price(2.50, 1.25, 10.00),
    "gpt-4.1": Price(2.00, 0.50, 8.00),
    "gpt-4.1-mini": Price(0.40, 0.10, 1.60),
    "gpt-4.1-nano": Price(0.10, 0.025, 0.40),
    "gpt-5-mini": Price(0.25, 0.025, 2.00),
    "gpt-5-nano": Price(0.05, 0.005, 0.40),
    "gpt-5.4-mini": Price(0.75, 0.075, 4.50),
    "gpt-5.6-luna": Price(0.20, 0.02, 1.20),
    "llama-3.1-8b-instant": Price(0.05, 0.05, 0.08),
}
"""List prices as of November 2026. They change; `MODEL_PRICES` has the last word."""

_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")
"""Ends the name of a fixed version of a model, which costs what the model costs."""


def price_of(model: str, own: Mapping[str, Price]) -> Price | None:
    """What a model costs; None where nobody said. A router's `openai/gpt-4o-mini` costs what `gpt-4o-mini` costs."""
    table = {**PRICES, **own}
    bare = _DATE.sub("", model)
    return next((table[name] for name in (model, bare, bare.rpartition("/")[2]) if name in table), None)


def read_prices(written: str) -> dict[str, Price]:
    """Prices as an owner writes them: `my-model=0.15/0.075/0.60, other=0/0/0`.

    Raises:
        ValueError: an entry has another form. The message holds nothing of it.
    """
    prices: dict[str, Price] = {}
    for entry in filter(None, (part.strip() for part in written.split(","))):
        name, _, figures = entry.rpartition("=")
        amounts = [_amount(figure) for figure in figures.split("/")]
        if not name.strip() or len(amounts) != 3:
            raise ValueError(FORM)
        prices[name.strip()] = Price(*amounts)
    return prices


FORM = "needs entries such as my-model=0.15/0.075/0.60: USD for a million tokens read, cached and written"


def _amount(figure: str) -> float:
    if not re.fullmatch(r"\s*\d{1,6}(\.\d{1,6})?\s*", figure):
        raise ValueError(FORM)
    return float(figure)
