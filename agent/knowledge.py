"""The owner's files: read honestly, cut into passages, with a report on each file."""

from __future__ import annotations

import codecs
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from markdown_it import MarkdownIt

log = logging.getLogger(__name__)

MAX_FILE_BYTES = 20 * 1024 * 1024
"""A larger file is no text that a person wrote about themselves."""

LEFT_ALONE = "readme"
"""A file of this name speaks to the owner, not about them."""

UNREAD = (".docx", ".doc", ".odt", ".rtf", ".pages", ".html", ".htm", ".csv", ".json", ".xlsx", ".pptx", ".epub")
"""Files that an owner means to be read, and that are not."""

LOCKED = "locked with a password; save a copy without one"

PICTURES = ("picture.jpg", "picture.jpeg", "picture.png", "picture.webp", "picture.svg")
"""The owner's picture, the first of these that is there. Browsers name the types."""


class Unreadable(Exception):
    """A file cannot be read. The text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph with where it stands."""

    file: str
    """Path below the knowledge folder."""
    heading: str
    """The headings above it, outermost first, joined by ` › `; may be empty."""
    text: str


@dataclass(frozen=True, slots=True)
class FileReport:
    """What came of one file."""

    file: str
    status: Literal["read", "skipped"]
    detail: str = ""
    """Why it was skipped, or what is worth knowing."""
    words: int = 0
    pages: int | None = None

    def line(self) -> str:
        """For the log: one line for the owner."""
        if self.status == "skipped":
            return f"{self.file}: skipped: {self.detail}"
        pages = "" if self.pages is None else f"{self.pages} page{'s' if self.pages != 1 else ''}, "
        return f"{self.file}: read, {pages}{self.words} words"


@dataclass(frozen=True, slots=True)
class Document:
    file: str
    text: str
    """Markdown or plain text."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Everything that was read, in an order that never changes: by path."""

    documents: tuple[Document, ...] = ()
    passages: tuple[Passage, ...] = ()
    reports: tuple[FileReport, ...] = ()
    picture: Path | None = None
    problem: str = ""
    """Why there is nothing to go by, in words that say what to do; empty when there is."""


def load_knowledge(folder: Path) -> Knowledge:
    """Reads every file below a folder. Never raises: what cannot be read is reported."""
    try:
        paths = sorted((path for path in folder.rglob("*") if _is_candidate(path, folder)), key=lambda p: p.as_posix())
    except OSError as error:
        return Knowledge(problem=f"the folder {str(folder)!r} cannot be opened ({error.strerror}); check KNOWLEDGE_DIR")
    if not folder.is_dir():
        return Knowledge(problem=f"there is no folder {str(folder)!r}; make it or set KNOWLEDGE_DIR, and add a file")
    documents: list[Document] = []
    reports: list[FileReport] = []
    for path in paths:
        name = path.relative_to(folder).as_posix().encode("utf-8", "replace").decode()
        try:
            text, pages = READERS.get(path.suffix.lower(), _not_read)(path)
        except Unreadable as error:
            reports.append(FileReport(name, "skipped", str(error)))
        except Exception as error:
            # A reader may fail in any way on a damaged file; the others must still be read.
            log.debug("Reading %s failed", name, exc_info=True)
            reports.append(FileReport(name, "skipped", f"damaged or not readable ({type(error).__name__})"))
        else:
            documents.append(Document(name, text))
            reports.append(FileReport(name, "read", words=len(text.split()), pages=pages))
    passages = tuple(passage for document in documents for passage in cut(document))
    picture = next((folder / name for name in PICTURES if (folder / name).is_file()), None)
    problem = "" if passages else f"no readable text in {str(folder)!r}; add a .md, .txt or .pdf file about yourself"
    return Knowledge(tuple(documents), passages, tuple(reports), picture, problem)


def cut(document: Document) -> Iterator[Passage]:
    """The passages of a document: its paragraphs, lists and tables, each with the headings above it."""
    lines = document.text.splitlines()
    headings: list[tuple[int, str]] = []
    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(document.text)
    for position, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        if token.type == "heading_open":
            depth = int(token.tag[1:])
            headings = [*(item for item in headings if item[0] < depth), (depth, tokens[position + 1].content)]
        elif text := _flat("\n".join(lines[token.map[0] : token.map[1]])):
            yield Passage(document.file, " › ".join(title for _, title in headings), text)


def _flat(block: str) -> str:
    """A paragraph on one line; a list or a table keeps its lines."""
    block = block.strip()
    if re.match(r"([-*+|>]|\d+[.)])\s", block) or block.startswith(("```", "~~~", "|")):
        return block
    return " ".join(block.split())


def _is_candidate(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "~$")) for part in path.relative_to(folder).parts)
    return (
        not hidden
        and path.suffix.lower() in (*READERS, *UNREAD)
        and path.stem.lower() != LEFT_ALONE
        and path.is_file()
        and path.resolve().is_relative_to(folder.resolve())
    )


def _not_read(path: Path) -> tuple[str, None]:
    raise Unreadable(f"{path.suffix.lower()} files are not read; save it as .pdf, .md or .txt")


def _read_text(path: Path) -> tuple[str, None]:
    return _clean(_decode(_bytes(path))), None


def _read_pdf(path: Path) -> tuple[str, int]:
    import pypdf  # a tenth of a second that owners without a PDF need not wait for
    from pypdf.errors import DependencyError, PdfReadError

    data = _bytes(path)
    if b"%PDF-" not in data[:1024]:
        raise Unreadable("not a PDF, whatever its name says; save it again as PDF")
    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable(LOCKED)
        pages = [page.extract_text() for page in reader.pages]
    except DependencyError as error:
        # AES needs a cryptography package: an owner saves a copy without a password sooner than installs one.
        raise Unreadable(LOCKED) from error
    except PdfReadError as error:
        raise Unreadable("damaged; open it and save it again as PDF") from error
    text = "\n\n".join(pages)
    if not text.strip():
        raise Unreadable("no text on any page (a scan?); save it with text recognition, or write the facts down")
    return _clean(text), len(pages)


def _bytes(path: Path) -> bytes:
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise Unreadable(f"larger than {MAX_FILE_BYTES // 1024 // 1024} MB; keep the parts that are about you")
    if data := path.read_bytes():
        return data
    raise Unreadable("empty")


def _decode(data: bytes) -> str:
    """Text in UTF-8, in UTF-16 with its mark, or in Windows' Western code page."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _clean(text: str) -> str:
    """In composed form, without control characters and other things that a reader cannot see."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"))
    if not text.strip():
        raise Unreadable("empty")
    return text.strip() + "\n"


READERS: dict[str, Callable[[Path], tuple[str, int | None]]] = {
    ".md": _read_text,
    ".markdown": _read_text,
    ".txt": _read_text,
    ".pdf": _read_pdf,
}
"""How to read a file, by its suffix; others are left alone."""
