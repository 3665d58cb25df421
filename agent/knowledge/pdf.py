"""PDF files to text, through PDFium: what stands where on each page, then in the order that a person reads."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from agent.knowledge.columns import Run
from agent.knowledge.layout import Page, laid_out
from agent.knowledge.text import clean
from agent.knowledge.values import Reading, Unreadable

LOCKED = "locked with a password; save a copy without one"

WRONG_PASSWORD = 4
"""PDFium's code for it."""

MAX_PAGES = 1000
MAX_RUNS = 100_000
"""Pieces of text on a page: a drawing has more."""

LINE_END_HYPHENS = "\x02\xad\ufffe"
"""What PDFium makes of a hyphen at the end of a line."""


def read_pdf(data: bytes) -> Reading:
    """The text of each page, without what runs along its edges."""
    if b"%PDF-" not in data[:1024]:
        raise Unreadable("not a PDF, whatever its name says; save it again as PDF")
    pdfium: Any = import_module("pypdfium2")
    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == WRONG_PASSWORD:
            raise Unreadable(LOCKED) from error
        raise Unreadable("damaged; open it and save it again as PDF") from error
    count: int = len(document)
    pages = [_page(document, number) for number in range(min(count, MAX_PAGES))]
    if not any(page.runs for page in pages):
        raise Unreadable("no text on any page (a scan?); save it with text recognition, or write the facts down")
    detail = f"only the first {MAX_PAGES} pages; keep those that are about you" if count > MAX_PAGES else ""
    return Reading(clean(laid_out(pages)), pages=count, detail=detail)


def _page(document: Any, number: int) -> Page:
    pdfium: Any = import_module("pypdfium2")
    try:
        page = document[number]
        return Page(tuple(_runs(page.get_textpage())), page.get_height())
    except pdfium.PdfiumError:
        return Page((), 0.0)  # one damaged page; the others may be whole


def _runs(text_page: Any) -> Iterator[Run]:
    """The pieces of a page's lines, in the order in which they were painted."""
    raw: Any = import_module("pypdfium2.raw")
    box = raw.FS_RECTF()
    letters, pen, made, spaced = "", [0.0, 0.0, 0.0, 0.0], 0, False
    for index in range(raw.FPDFText_CountChars(text_page)):
        character = chr(raw.FPDFText_GetUnicode(text_page, index) % 0x110000)
        if character in "\r\n":
            continue
        if character.isspace():
            spaced = True
            continue
        raw.FPDFText_GetLooseCharBox(text_page, index, ctypes.byref(box))
        left, bottom, right, top = box.left, box.bottom, box.right, box.top
        if letters and _goes_on(pen, left, bottom, top):
            letters += f" {character}" if spaced else character
            pen[2] = max(pen[2], right)
        else:
            if letters:
                yield _run(letters, pen, made)
                made += 1
            letters, pen = character, [left, bottom, right, top]
        spaced = False
        if made > MAX_RUNS:
            raise Unreadable("a drawing more than a text; write the facts down")
    if letters:
        yield _run(letters, pen, made)


def _goes_on(pen: list[float], left: float, bottom: float, top: float) -> bool:
    """Whether a character stands in the same line, next to the one before."""
    size = pen[3] - pen[1]
    overlap = min(top, pen[3]) - max(bottom, pen[1])
    return overlap > 0.5 * min(size, top - bottom) and -0.3 * size < left - pen[2] < 0.7 * size


def _run(letters: str, pen: list[float], made: int) -> Run:
    if letters[-1] in LINE_END_HYPHENS:
        letters = letters[:-1] + "-"
    return Run(letters, pen[0], pen[2], pen[1], round(pen[3] - pen[1], 1), made)
