"""The last lines of a conversation, for an owner who has to know what it is about."""

from __future__ import annotations

from agent.toolkit import Visit

LINES = 3
LINE_CHARS = 200


def excerpt(visit: Visit) -> tuple[str, ...]:
    """Up to `LINES` lines, oldest first, each with who said it and cut to `LINE_CHARS` characters of what was said."""
    said: list[tuple[str, str]] = []
    for turn in visit.conversation.turns[-LINES:]:
        said += [("Visitor", turn.message), ("Replica", turn.text)]
    said.append(("Visitor", visit.message))
    lines = [f"{who}: {line}" for who, text in said if (line := _on_one_line(text))]
    return tuple(lines[-LINES:])


def _on_one_line(text: str) -> str:
    line = " ".join(text.replace("*", "").split())  # marks for a page, which a message shows as they are
    return line if len(line) <= LINE_CHARS else f"{line[: LINE_CHARS - 1].rstrip()}…"
