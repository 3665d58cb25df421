"""What replies rest on, as the page shows it: the passages behind their labels."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypedDict

from agent.answers import SOURCE, Answers
from agent.passages import Passage
from agent.sources import JOINT
from pages.markup import blocks_of

log = logging.getLogger(__name__)

MAX_CHARS = 1500
"""Of the text behind one label."""

MAX_TEXTS = 40
"""So many labels of a conversation have their text with them, the last ones: some texts take long to render."""

PassagesOf = Callable[[str], Sequence[Passage]]
"""The passages behind a label; none where nothing is known of it. Called in a thread."""


class Shown(TypedDict):
    """What opens behind a label."""

    title: str
    in_person: bool
    """The owner answered it, and the title is the question."""
    blocks: list[str]


def nothing(label: str) -> Sequence[Passage]:
    """For a page without passages."""
    return ()


@dataclass(frozen=True, slots=True)
class Sources:
    """Finds what stands behind labels.

    Args:
        passages_of: looks in the files.
        answers: what the owner has answered in person.
    """

    passages_of: PassagesOf = nothing
    answers: Answers | None = None

    async def behind(self, labels: Iterable[str]) -> dict[str, Shown]:
        """The last labels with a text. A reply is worth reading without them, so a fault costs only the texts."""
        wanted = list(dict.fromkeys(reversed(list(labels))))[:MAX_TEXTS]
        if not wanted:
            return {}
        try:
            answered = await self._answered(wanted)
            return await asyncio.to_thread(self._looked_up, wanted, answered)
        except Exception as error:
            log.warning("The passages behind a reply could not be read (%s)", type(error).__name__)
            return {}

    async def _answered(self, labels: Sequence[str]) -> dict[str, Passage]:
        """The owner's answers by their labels."""
        if self.answers is None or not any(label.partition(JOINT)[0] == SOURCE for label in labels):
            return {}
        return {one.label: one for one in (await self.answers.book()).passages}

    def _looked_up(self, labels: Sequence[str], answered: dict[str, Passage]) -> dict[str, Shown]:
        found: dict[str, Shown] = {}
        for label in labels:
            answer = answered.get(label)
            text = answer.text if answer else _text_of(label, self.passages_of(label))
            if text:
                title = answer.heading if answer else label
                found[label] = {"title": title, "in_person": answer is not None, "blocks": list(_blocks(text))}
        return found


def _text_of(label: str, passages: Sequence[Passage]) -> str:
    """The passages under each other, each with the heading that the label does not name."""
    parts: list[str] = []
    heading = label.partition(JOINT)[2]
    for passage in passages:
        if passage.heading != heading:
            heading = passage.heading
            parts.append(f"**{heading}**")
        parts.append(passage.text)
        if sum(map(len, parts)) > MAX_CHARS:
            break
    return "\n\n".join(part for part in parts if part.strip())


@lru_cache(256)
def _blocks(text: str) -> tuple[str, ...]:
    return tuple(block.html for block in blocks_of(shortened(text)))


def shortened(text: str) -> str:
    """At most MAX_CHARS characters, with an ellipsis where words are left out."""
    if len(text) <= MAX_CHARS:
        return text
    kept = text[: MAX_CHARS - 1]
    at = max(kept.rfind(" "), kept.rfind("\n"))
    return f"{kept[: at if at > MAX_CHARS / 2 else None].rstrip()}…"
