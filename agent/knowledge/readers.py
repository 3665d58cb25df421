"""How to read a file, by the end of its name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from agent.knowledge.text import clean, damage, decode
from agent.knowledge.values import Reading, Unreadable

MAX_FILE_BYTES = 20 * 1024 * 1024
"""A larger file is no text that a person wrote about themselves."""
MAX_CHARS = 20_000_000
"""Of what a file unpacks to."""

Read = Callable[[bytes], Reading]

PLAIN = (".md", ".markdown", ".txt", ".text", ".rst", ".org", ".yaml", ".yml")
"""Read as they are, here and now."""

UNREAD = {
    ".doc": "save it as .docx or .pdf", ".odt": "save it as .docx or .pdf", ".pages": "export it as .docx or .pdf",
    ".wpd": "save it as .docx or .pdf", ".xlsx": "save it as .csv", ".xls": "save it as .csv",
    ".ods": "save it as .csv",
    ".numbers": "export it as .csv", ".pptx": "save it as .pdf", ".ppt": "save it as .pdf", ".odp": "save it as .pdf",
    ".key": "export it as .pdf", ".epub": "save it as .html or .txt", ".mobi": "save it as .html or .txt",
    ".tex": "save the .pdf that it makes", ".xml": "save it as .txt, .csv or .json", ".zip": "unpack it here",
    ".eml": "save it as .txt", ".msg": "save it as .txt", ".mhtml": "save it as .html or .pdf",
    ".webarchive": "save it as .html or .pdf", ".gdoc": "download it as .docx or .pdf",
}  # fmt: skip
"""Files that an owner means to be read, and that are not, with what to do."""


def read_bounded(path: Path) -> Reading:
    """Reads one file. Raises Unreadable, or whatever a reader raises on a damaged file."""
    suffix = path.suffix.lower()
    if suffix in UNREAD:
        raise Unreadable(f"{suffix} files are not read; {UNREAD[suffix]}")
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise Unreadable(f"larger than {MAX_FILE_BYTES // 1024 // 1024} MB; keep the parts that are about you")
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"cannot be opened ({error.strerror}); check who may read it") from error
    if not data:
        raise Unreadable("empty; write something in it, or delete it")
    reading = (_read_plain if suffix in PLAIN else RISKY[suffix])(data)
    if len(reading.text) > MAX_CHARS:
        raise Unreadable("holds far more text than a person writes; keep the parts that are about you")
    detail = "; ".join(filter(None, (reading.detail, damage(reading.text))))
    return Reading(reading.text, reading.pages, detail)


def _read_plain(data: bytes) -> Reading:
    if data.startswith((b"%PDF-", b"PK\x03\x04", b"\x89PNG", b"\xff\xd8\xff", b"GIF8")):
        raise Unreadable("not text, whatever its name says; give it the name that belongs to it")
    return Reading(clean(decode(data)))


def _read_pdf(data: bytes) -> Reading:
    from agent.knowledge.pdf import read_pdf

    return read_pdf(data)


def _read_docx(data: bytes) -> Reading:
    from agent.knowledge.word import read_docx

    return read_docx(data)


def _read_html(data: bytes) -> Reading:
    from agent.knowledge.markup import read_html

    return read_html(data)


def _read_csv(data: bytes) -> Reading:
    from agent.knowledge.records import read_csv

    return read_csv(data)


def _read_json(data: bytes) -> Reading:
    from agent.knowledge.records import read_json

    return read_json(data)


def _read_card(data: bytes) -> Reading:
    from agent.knowledge.records import read_card

    return read_card(data)


def _read_rtf(data: bytes) -> Reading:
    if not data.lstrip().startswith(b"{\\rtf"):
        raise Unreadable("not RTF, whatever its name says; save it again as .docx or .txt")
    striprtf: Any = import_module("striprtf.striprtf")
    return Reading(clean(striprtf.rtf_to_text(data.decode("latin-1"), errors="replace")))


RISKY: dict[str, Read] = {
    ".pdf": _read_pdf,
    ".docx": _read_docx,
    ".html": _read_html,
    ".htm": _read_html,
    ".xhtml": _read_html,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".json": _read_json,
    ".jsonl": _read_json,
    ".vcf": _read_card,
    ".vcard": _read_card,
    ".ics": _read_card,
    ".rtf": _read_rtf,
}
"""Kinds that a small file can make large or slow: they are read in a process of their own."""

KNOWN = (*PLAIN, *RISKY, *UNREAD)
"""Files with another name are left alone."""
