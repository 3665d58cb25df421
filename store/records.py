"""What the store hands out and takes in, as frozen values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agent.conversation import OwnerWords, Usage

__all__ = [
    "Alert", "Answer", "CallRow", "Contact", "KeptCall", "NotStorable", "Origin", "OwnerWords", "Question", "Sent",
    "Stats", "StoreError", "Target", "Written",
]  # fmt: skip


class StoreError(Exception):
    """The store cannot be used. The message is for the owner and holds neither a password nor a visitor's words."""


class NotStorable(StoreError):
    """The database works, and will never take this: to try again is of no use."""


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
    """`contact`, `question`, `trouble`, or `reply`: what the bot answers to the owner's own message."""
    reference: str
    """Names the alert to people, such as `C-7KQ2M`."""
    text: str
    created: datetime
    attempts: int
    """Tries so far, the one that it was just claimed for among them."""
    conversation_id: str | None = None
    """Of the visitor that it is about."""
    reply_to: int | None = None
    """The owner's message that a `reply` answers."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Where an alert went, so that the owner's reply to it is understood."""

    chat_id: str
    message_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """What an alert is about, for a reply to it."""

    kind: str
    """`contact`, `question`, `trouble`, or `answer`: one whose question is no longer kept."""
    reference: str
    """Of the contact or question itself, even if the alert only told more of it."""
    conversation_id: str | None
    question: str
    email: str
    """Of the contact; with a question, the newest that its visitor left, if any."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the owner answered to a question that the knowledge did not answer."""

    reference: str
    """Such as `A-7KQ2M`."""
    question: str
    text: str
    changed: datetime


@dataclass(frozen=True, slots=True)
class Origin:
    """The owner's message that an answer or words came from."""

    chat_id: str
    message_id: int


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a message of the owner's, as it stands."""

    reference: str
    """Of the answer; empty: it is words to one visitor."""
    conversation_id: str | None
    """Of that visitor."""
    text: str


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of what happened since some moment."""

    conversations: int
    messages: int
    contacts: int
    questions: int
    open_questions: int
    """Without an answer at present, whenever they were asked."""
    answers: int
    thumbs_up: int
    thumbs_down: int
    cost: float
    """In USD, as far as prices are known."""


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
