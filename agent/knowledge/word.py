"""Word files to Markdown, by way of HTML: headings, lists, tables, text boxes and the head of the page."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

from agent.knowledge.markup import to_markdown
from agent.knowledge.text import clean
from agent.knowledge.values import Reading, Unreadable

MAX_UNPACKED = 100 * 1024 * 1024
"""Of a file's parts but its pictures, together."""

OLD_WORD = b"\xd0\xcf\x11\xe0"
"""What a .doc begins with, and a .docx that has a password."""
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"

STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => p:fresh"


def read_docx(data: bytes) -> Reading:
    """A .docx. A zip bomb is told by the sizes that it declares, which is as far as Python unpacks it."""
    if data.startswith(OLD_WORD):
        locked = "locked with a password; save a copy without one"
        raise Unreadable(locked if ENCRYPTED in data else "an old Word file; save it as .docx or .pdf")
    if not data.startswith(b"PK"):
        raise Unreadable("not a Word file, whatever its name says; save it again as .docx")
    try:
        with zipfile.ZipFile(BytesIO(data)) as parts:
            sizes = {part.filename: part.file_size for part in parts.infolist()}
            if sum(size for name, size in sizes.items() if name.endswith((".xml", ".rels"))) > MAX_UNPACKED:
                raise Unreadable("unpacks to far more than a person writes; keep the parts that are about you")
            if "word/document.xml" not in sizes:
                raise Unreadable("not a Word file, whatever its name says; save it again as .docx")
            heads = [
                line for name in sizes if re.fullmatch(r"word/header\d*\.xml", name) for line in _lines(parts, name)
            ]
    except (zipfile.BadZipFile, ElementTree.ParseError) as error:
        raise Unreadable("damaged; open it in Word and save it again") from error
    mammoth: Any = import_module("mammoth")
    found = mammoth.convert_to_html(
        BytesIO(data), style_map=STYLES, convert_image=mammoth.images.img_element(_no_image)
    )
    body = to_markdown(found.value)
    # Word repeats the head on each page. It is said once, if the page does not say it.
    head = "\n".join(line for line in dict.fromkeys(heads) if line not in body)
    return Reading(clean(f"{head}\n\n{body}" if head else body))


def _lines(parts: zipfile.ZipFile, name: str) -> Iterator[str]:
    for paragraph in ElementTree.fromstring(parts.read(name)).iter(f"{WORD}p"):
        text = "".join(_written(paragraph)).strip()
        if re.search(r"[^\W\d_]{3}", text) and not re.fullmatch(r"(?i)\w+\.? \d+(?: \w+ \d+)?", text):
            yield text


def _written(paragraph: ElementTree.Element) -> Iterator[str]:
    for element in paragraph.iter():
        if element.tag == f"{WORD}t":
            yield element.text or ""
        elif element.tag in (f"{WORD}tab", f"{WORD}br"):
            yield " "


def _no_image(_: object) -> dict[str, str]:
    """Pictures are left alone."""
    return {}
