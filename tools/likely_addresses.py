"""Addresses in a visitor's message, for models that take no tools: here nobody but this reads the message."""

from __future__ import annotations

import re

from tools.find_emails import addresses_in, spelled_out_in
from tools.legible import legible

_OF_MACHINES = re.compile(
    r"[a-z][a-z0-9+.-]{0,20}://\S+|\bgit@\S+|[\w.-]{1,64}@[\w.-]{1,255}:[\w.~-]{0,255}/\S*", re.IGNORECASE
)
"""Web addresses, some with a password in them, and places where code lies."""
_SPELLED_OUT = re.compile(
    r"[(\[{<] ?(?:at|ät|arroba|arobase|@) ?[)\]}>]"
    r"|\b(?:at|ät|arroba|arobase)\b.{1,100}(?:\bdot\b|\bpunkt\b|\bpunto\b|\bpoint\b)",
    re.IGNORECASE,
)


def likely_addresses_in(text: str) -> tuple[str, ...]:
    """The addresses that a visitor wrote; where there is none, those that they spelled out."""
    plain = _OF_MACHINES.sub(" ", legible(text))
    return addresses_in(plain) or (spelled_out_in(plain) if _SPELLED_OUT.search(plain) else ())
