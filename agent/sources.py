"""What a reply rests on: the model names it in a last line, which is read and not shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from agent.conversation import Reply

JOINT = " › "
"""Between a file and its headings, outermost first."""

MAX_SOURCES = 5

_OPENING = re.compile(r"[\s>*_(\[#-]{0,8}(?:s(?:o(?:u(?:r(?:c(?:es?[*_]{0,2}(?::.*)?)?)?)?)?)?)?", re.IGNORECASE)
"""A line that is, or may become, the one that names sources."""
_LAST_LINE = re.compile(r"(?:^|\n)[\s>*_(\[#-]{0,8}sources?[*_]{0,2}:[*_]{0,2}[ \t]*([^\n]*)\s*$", re.IGNORECASE)
_BETWEEN_PARTS = re.compile(r"\s*(?:›|>|»|→|\||#|::)+\s*")
_AROUND = " \t\"'`*_“”‘’()[]<>.,"


class Footnote:
    """Lets a reply through as it comes, save for a last line that names sources."""

    def __init__(self) -> None:
        self._held = ""
        """A line that may be that one, with the blanks behind it."""
        self._at_line_start = True

    def let_through(self, piece: str) -> str:
        """Adds a piece. Returns what can be shown now."""
        text = self._held + piece
        words = text.rstrip()
        start = words.rfind("\n") + 1
        may_be_last = (start > 0 or self._at_line_start) and _OPENING.fullmatch(words[start:])
        shown, self._held = (text[:start], text[start:]) if may_be_last else (text, "")
        if shown:
            self._at_line_start = shown.endswith("\n")
        return shown


def without_footnote(reply: Reply) -> Reply:
    """The reply with its sources, as the model named them, out of its text."""
    found = _LAST_LINE.search(reply.text)
    if not found:
        return reply
    names = tuple(name for name in (part.strip(_AROUND) for part in found[1].split(";")) if name)
    return replace(reply, text=reply.text[: found.start()].rstrip(), sources=names)


def given(names: Iterable[str], labels: Collection[str]) -> tuple[str, ...]:
    """The labels that were meant, of those that the model was given: what it made up is left out.

    A label is a file, or a file with its headings. A name may leave parts out, such as a file's ending or the
    headings between, and may join them in another way.
    """
    found: list[str] = []
    for name in names:
        matching = _meant(name, labels) or _meant(name.replace("/", JOINT), labels)
        if not matching and "," in name:
            matching = [label for part in name.split(",") for label in _meant(part, labels)]
        found += matching
    return tuple(dict.fromkeys(found))[:MAX_SOURCES]


def _meant(name: str, labels: Collection[str]) -> list[str]:
    if name in labels:
        return [name]
    parts = [part for part in (part.strip(_AROUND).casefold() for part in _BETWEEN_PARTS.split(name)) if part]
    fitting = sorted((label for label in labels if parts and _fits(parts, label)), key=lambda label: label.count(JOINT))
    if len(fitting) > 1 and fitting[0].count(JOINT) == fitting[1].count(JOINT):
        return []  # "Experience" alone may stand in two files: nobody can tell which was meant
    return fitting[:1]


def _fits(parts: list[str], label: str) -> bool:
    """Whether the last part is the label's last heading, and the parts before it come in the same order."""
    headings = label.casefold().split(JOINT)[1:]
    rest = parts[1:] if parts[0] in _names_of_file(label) else parts
    if not rest:
        return not headings
    above = iter(headings[:-1])
    return bool(headings) and rest[-1] == headings[-1].strip(_AROUND) and all(part in above for part in rest[:-1])


def _names_of_file(label: str) -> tuple[str, ...]:
    file = label.casefold().split(JOINT)[0]
    short = file.rpartition("/")[2]
    return file, short, short.rpartition(".")[0] or short
