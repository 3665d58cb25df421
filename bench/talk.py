"""Earlier turns of a conversation, the same for everything that is measured."""

from __future__ import annotations

REPLY = (
    "That is a fair question, and here is what I can say about point {0}.\n\n"
    "The engine has **two parts**: a store for the numbers and a mill for the work on them, and cards tell it what to "
    "do next. So one may repeat a group of cards, and the engine goes through it again.\n\n"
    "- first the numbers are set,\n- then the cards are read."
)


def earlier(turns: int) -> list[tuple[str, str]]:
    """Pairs of what a visitor asked and what was answered."""
    return [(f"What do you think about point number {n} of my list?", REPLY.format(n)) for n in range(turns)]
