"""What is known of the owner, as values: documents, passages, and a report on each file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.passages import Passage


class Unreadable(Exception):
    """A file cannot be read. The text says why and what to do."""


@dataclass(frozen=True, slots=True)
class FileReport:
    """What came of one file."""

    file: str
    status: Literal["read", "skipped"]
    detail: str = ""
    """Why it was skipped and what to do; of a file that was read, what looks wrong with it."""
    words: int = 0
    pages: int | None = None

    @property
    def needs_care(self) -> bool:
        """There is something for the owner to do."""
        return self.status == "skipped" or bool(self.detail)

    def line(self) -> str:
        """For the log: one line for the owner."""
        if self.status == "skipped":
            return f"{self.file}: skipped: {self.detail}"
        pages = "" if self.pages is None else f"{self.pages} page{'s' if self.pages != 1 else ''}, "
        words = f"{self.words} word{'s' if self.words != 1 else ''}"
        return f"{self.file}: read, {pages}{words}{self.detail and f'; {self.detail}'}"


@dataclass(frozen=True, slots=True)
class Document:
    file: str
    text: str
    """Markdown or plain text."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader made of a file."""

    text: str
    pages: int | None = None
    """None: the kind of file has none."""
    detail: str = ""
    """What looks wrong with it."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Everything that was read, in an order that never changes: by path."""

    documents: tuple[Document, ...] = ()
    passages: tuple[Passage, ...] = ()
    reports: tuple[FileReport, ...] = ()
    picture: Path | None = None
    is_part: bool = False
    """There are more passages than these: the beginnings of files stand for what is too large to be held."""
    problem: str = ""
    """Why there is nothing to go by, in words that say what to do; empty when there is."""
