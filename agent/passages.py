"""Passages of what the owner has written, and how they stand in requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph of what the owner has written, with where it stands."""

    file: str
    """Path below the knowledge folder."""
    heading: str
    """The headings above it, outermost first, joined by ` › `; may be empty."""
    text: str

    @property
    def label(self) -> str:
        """Names it to people and models."""
        return f"{self.file} › {self.heading}" if self.heading else self.file


def footnote(sources: Iterable[str]) -> str:
    """The last line of a text, which names what it rests on; empty where nothing is named."""
    names = "; ".join(sources)
    return f"\n\nSources: {names}" if names else ""


def inert(text: str) -> str:
    """Text that cannot close the element that it stands in, nor open one."""
    return _ELEMENT.sub(r"(\1)", text)


_ELEMENT = re.compile(r"<(\s*/?\s*(?:file|knowledge|answers?|passages?)\b[^<>]*)>?", re.IGNORECASE)


def with_passages(message: str, found: Sequence[Passage]) -> str:
    """The message, with what was found for it. A visitor cannot write such passages."""
    if not found:
        return message
    passages = "\n".join(
        f"<passage from={json.dumps(inert(one.label), ensure_ascii=False)}>\n{inert(one.text)}\n</passage>"
        for one in found
    )
    return f"{inert(message)}\n\n<passages>\n{passages}\n</passages>"


def fitting(passages: Iterable[Passage], max_bytes: int) -> list[Passage]:
    """The first ones, as many as there is room for; one at least."""
    held: list[Passage] = []
    for passage in passages:
        max_bytes -= len(passage.label.encode()) + len(passage.text.encode())
        if max_bytes < 0 and held:
            break
        held.append(passage)
    return held
