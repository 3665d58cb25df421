"""HTML to Markdown: headings, lists and tables stay; scripts, styles and navigation go."""

from __future__ import annotations

import re
from typing import Any

from agent.knowledge.text import clean, decode
from agent.knowledge.values import Reading

UNSHOWN = {
    *("script", "style", "template", "noscript", "head", "nav", "svg", "math", "iframe", "object", "embed"),
    *("canvas", "audio", "video", "form", "button", "select", "textarea", "input", "dialog", "#comment", "!doctype"),
}
"""Elements that hold nothing to read about a person."""

BLOCKS = {
    *("address", "article", "aside", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt", "fieldset"),
    *("figcaption", "figure", "footer", "header", "hr", "html", "main", "ol", "p", "pre", "section", "summary", "ul"),
    *("table", "tbody", "thead", "tfoot", "tr", "caption", "li", "h1", "h2", "h3", "h4", "h5", "h6"),
}
"""Elements that begin and end a line."""

CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w-]{2,30})", re.IGNORECASE)
HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
MAX_INDENTS = 6
CELLS = ("td", "th")


def read_html(data: bytes) -> Reading:
    """A page that was saved."""
    return Reading(clean(to_markdown(_decode(data))))


def to_markdown(html: str) -> str:
    """What a page shows, as Markdown."""
    from justhtml import JustHTML

    return "".join(_Writer().write(JustHTML(html, sanitize=False).root))


def _decode(data: bytes) -> str:
    """By its mark, as UTF-8, in the encoding that it names, or in the likeliest one."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    if (named := CHARSET.search(data[:2048])) and b"\0" not in data[:100]:
        try:
            # Browsers take Latin-1 to mean Windows' code page, since it is a part of it.
            name = named[1].decode().lower()
            return data.decode("cp1252" if name in ("iso-8859-1", "latin1", "us-ascii") else name)
        except (LookupError, UnicodeDecodeError):
            pass
    return decode(data)


class _Writer:
    """Walks a tree without recursion, which a page of a hundred thousand open tags would exhaust."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.lists: list[int] = []
        """For each open list the number of its next item; 0: without numbers."""
        self.gap = 0
        """Line ends owed before the next text."""
        self.spaced = False
        """Whether a space is owed before it."""
        self.begun = False
        """Whether an item's mark stands, and its text does not yet."""
        self.verbatim = 0
        self.row: list[list[str]] = []
        """The cells of the open row. While one is open, text goes into it."""
        self.tables: list[int] = []
        """For each open table, how many rows are written."""

    def write(self, root: Any) -> list[str]:
        todo: list[tuple[Any, bool]] = [(root, False)]
        while todo:
            node, done = todo.pop()
            name: str = node.name
            if name == "#text":
                self._text(node.data or "")
            elif done:
                self._close(name)
            elif name not in UNSHOWN and not _is_hidden(node):
                self._open(name)
                todo.append((node, True))
                todo.extend((child, False) for child in reversed(node.children or []))
        return self.out

    def _text(self, text: str) -> None:
        if self.verbatim and not self.row:
            self._put(text.strip("\n"))
            return
        self.spaced = self.spaced or text[:1].isspace()
        if flat := " ".join(text.split()):
            self._put(flat)
            self.spaced = text[-1:].isspace()

    def _put(self, text: str) -> None:
        target = self.row[-1] if self.row else self.out
        if self.gap and self.out and not self.row:
            indent = "  " * min(MAX_INDENTS, max(0, len(self.lists) - 1)) if self.gap == 1 else ""
            target.append("\n" * self.gap + indent)
        elif self.spaced and target and not target[-1].endswith((" ", "\n")):
            target.append(" ")
        target.append(text)
        self.spaced = self.begun = False
        if not self.row:
            self.gap = 0

    def _open(self, name: str) -> None:
        if name == "br":
            self._break(1)
        if name in BLOCKS:
            self._break(1 if name in ("li", "tr", "dd", "dt") or self.lists else 2)
        if name in ("ul", "ol"):
            self.lists.append(1 if name == "ol" else 0)
        elif name == "table":
            self.tables.append(0)
        elif name in CELLS:
            self.row.append([])
        elif name == "pre":
            self.verbatim += 1
        elif name == "li":
            self._item()
        elif re.fullmatch("h[1-6]", name) and not self.row:
            self._break(2)
            self._put("#" * int(name[1]) + " ")

    def _item(self) -> None:
        number = self.lists[-1] if self.lists else 0
        if self.lists and number:
            self.lists[-1] += 1
        if not self.row:
            self._put(f"{number}. " if number else "- ")
            self.begun = True

    def _close(self, name: str) -> None:
        if name in ("ul", "ol"):
            del self.lists[-1:]
        elif name == "pre":
            self.verbatim -= 1
        elif name == "tr" and self.row:
            self._write_row()
        elif name == "table":
            del self.tables[-1:]
        if name in BLOCKS:
            self._break(1 if name in ("li", "tr", "dd", "dt") or self.lists else 2)

    def _write_row(self) -> None:
        cells = [" ".join("".join(parts).split()).replace("|", "/") for parts in self.row]
        self.row = []
        self.spaced = False
        if not any(cells):
            return
        self._put(f"| {' | '.join(cells)} |")
        if self.tables and not self.tables[-1]:
            self.out.append("\n|" + " --- |" * len(cells))
        if self.tables:
            self.tables[-1] += 1
        self.gap = 1

    def _break(self, lines: int) -> None:
        if self.row:
            self.spaced = True
        elif not self.begun:
            self.gap = max(self.gap, lines)


def _is_hidden(node: Any) -> bool:
    attributes: dict[str, str | None] = node.attrs or {}
    return "hidden" in attributes or bool(HIDDEN.search(attributes.get("style") or ""))
