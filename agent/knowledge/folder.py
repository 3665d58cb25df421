"""A folder of files to knowledge, with a report on each file."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

from agent.knowledge.child import Child
from agent.knowledge.cutting import cut
from agent.knowledge.readers import KNOWN, RISKY, read_bounded
from agent.knowledge.values import Document, FileReport, Knowledge, Reading, Unreadable

log = logging.getLogger(__name__)

LEFT_ALONE = "readme"
"""A file of this name speaks to the owner, not about them."""

PICTURES = ("picture.jpg", "picture.jpeg", "picture.png", "picture.webp", "picture.svg")
"""The owner's picture, the first of these that is there. Browsers name the types."""

KINDS = ".md, .txt, .pdf, .docx or .html"


def load_knowledge(folder: Path) -> Knowledge:
    """Reads every file below a folder. Never raises: what cannot be read is reported."""
    try:
        paths = files_in(folder)
    except OSError as error:
        return Knowledge(problem=f"the folder {str(folder)!r} cannot be opened ({error.strerror}); check KNOWLEDGE_DIR")
    if not folder.is_dir():
        return Knowledge(problem=f"there is no folder {str(folder)!r}; make it or set KNOWLEDGE_DIR, and add a file")
    with Child() as child:
        found = [read_file(path, name_in(folder, path), child.read) for path in paths]
    documents = tuple(document for document, _ in found if document)
    passages = tuple(passage for document in documents for passage in cut(document))
    return Knowledge(
        documents,
        passages,
        tuple(report for _, report in found),
        picture_in(folder),
        problem="" if passages else no_text_in(folder),
    )


def no_text_in(folder: Path) -> str:
    """What to do about a folder without a word in it."""
    return f"no readable text in {str(folder)!r}; add a {KINDS} file about yourself"


def files_in(folder: Path) -> list[Path]:
    """What of a folder is read or reported, in an order that never changes."""
    return sorted((path for path in folder.rglob("*") if _is_candidate(path, folder)), key=lambda p: p.as_posix())


def name_in(folder: Path, path: Path) -> str:
    """How a file is called: its path below the folder, which need not be valid text."""
    name = path.relative_to(folder).as_posix().encode("utf-8", "replace").decode()
    return "".join(character if character.isprintable() else "?" for character in name)


def picture_in(folder: Path) -> Path | None:
    return next((folder / name for name in PICTURES if (folder / name).is_file()), None)


def read_file(
    path: Path, name: str, read_risky: Callable[[Path], Reading] | None = None
) -> tuple[Document | None, FileReport]:
    """One file, by itself: what it says, and the report on it. Never raises.

    Kinds that can be hostile are read in another process, a new one unless one is given: see Child.
    """
    try:
        if path.suffix.lower() not in RISKY:
            reading = read_bounded(path)
        elif read_risky:
            reading = read_risky(path)
        else:
            with Child() as child:
                reading = child.read(path)
    except Unreadable as error:
        return None, FileReport(name, "skipped", str(error))
    except Exception as error:
        # A reader may fail in any way on a damaged file; the others must still be read.
        log.debug("Reading %s failed", name, exc_info=True)
        return None, FileReport(name, "skipped", f"damaged or not readable ({type(error).__name__}); save it again")
    words = sum(1 for _ in re.finditer(r"\S+", reading.text))
    return Document(name, reading.text), FileReport(name, "read", reading.detail, words, reading.pages)


def _is_candidate(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "~$")) for part in path.relative_to(folder).parts)
    return (
        not hidden
        and path.suffix.lower() in KNOWN
        and path.stem.lower() != LEFT_ALONE
        and path.is_file()
        and path.resolve().is_relative_to(folder.resolve())
    )
