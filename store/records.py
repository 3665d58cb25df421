"""What the store hands out and takes in, as frozen values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agent.conversation import Usage


class StoreError(Exception):
    """The store cannot be used. The message is for the owner and holds neither a password nor a visitor's words."""


@dataclass(frozen=True, slots=True)
class Contact:
    """A visitor who left an address."""

    conversation_id: str
    email: str
    """As a person writes it."""
    ascii_email: str
    """As a mail server takes it: the domain in its ASCII form."""
    notes: str
    """What the visitor wants."""
    name: str = ""
    disposable: bool = False
    """The domain gives out throw-away addresses."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question that the knowledge does not answer."""

    conversation_id: str
    question: str


@dataclass(frozen=True, slots=True)
class Alert:
    """A message to the owner that is due."""

    id: int
    kind: str
    """`contact`, `question` or `trouble`."""
    reference: str
    """Names the alert to people, such as `C-7KQ2M`."""
    text: str
    created: datetime
    attempts: int
    """Tries so far, the one that it was just claimed for among them."""


class CallRow(Protocol):
    """A request to a provider, as the store takes it in."""

    @property
    def at(self) -> datetime: ...
    @property
    def provider(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def first_token_s(self) -> float | None: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def estimated(self) -> bool: ...
    @property
    def finish(self) -> str: ...
    @property
    def tools(self) -> Sequence[str]: ...
    @property
    def error(self) -> str: ...
    @property
    def cost(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class KeptCall:
    """A request to a provider, as the store hands it out."""

    conversation_id: str
    number: int
    """Of the turn that it belongs to."""
    at: datetime
    provider: str
    """Its host."""
    model: str
    outcome: str
    duration_s: float
    first_token_s: float | None
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    estimated: bool
    """The provider sent no counts."""
    finish: str
    tools: str
    """Names, separated by commas."""
    error: str
    cost: float | None
    """In USD; None where the price is not known."""
