"""What the store hands out and takes in, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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
