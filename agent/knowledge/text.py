"""Bytes to text: in whatever encoding an editor wrote, without what a reader cannot see."""

from __future__ import annotations

import codecs
import re
import unicodedata
from importlib import import_module
from typing import Any

from agent.knowledge.values import Unreadable

BINARY = "not text, whatever its name says; save it as .md, .txt, .pdf or .docx"

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""What an editor puts first. The mark of UTF-32 begins with that of UTF-16, so it is looked for before it."""

WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")

BETWEEN_WORDS = " \n。，、"
CONTROLS = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
"""Bytes that no code page uses for text."""
BEYOND_ASCII = bytes(range(128, 256))

SAMPLE_BYTES = 200_000
"""What is looked at to tell an encoding."""

MAX_BAD_SHARE = 0.1
"""Of the bytes beyond ASCII: with fewer that are wrong, a text is UTF-8 with some damage."""

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\ufeff\ufffe\ud800-\udfff]")
"""Controls, soft hyphens, marks of the byte order, halves of characters."""

LIGATURES = str.maketrans(
    dict(zip("\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06", ["ff", "fi", "fl", "ffi", "ffl", "st", "st"], strict=True))
)

SYMBOL = re.compile("[\ufffd\ue000-\uf8ff\U000f0000-\U0010ffff]")
"""What stands for a character that could not be read."""
LONG_WORD = 28
"""Letters. Hardly a word in any language that writes spaces is longer."""
LETTERS = re.compile(r"[A-Za-z\u00c0-\u024f\u0370-\u04ff]+")


def decode(data: bytes) -> str:
    """The text of a file, by its mark, as UTF-8, as UTF-16 or -32 without a mark, or in the likeliest code page."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if b"\0" in data:
        return _wide(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        if _is_damaged_utf8(data):
            return data.decode(errors="replace")
    if CONTROLS.search(data):
        return _wide(data)
    return data.decode(_code_page(data), errors="replace")


def clean(text: str) -> str:
    """In composed form, with plain line ends, without ligatures and what cannot be seen."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n\n")
    text = unicodedata.normalize("NFC", UNSEEN.sub("", text.replace("\x0c", "\n")).translate(LIGATURES))
    if not text.strip():
        raise Unreadable("empty; write something in it, or delete it")
    return text.strip() + "\n"


def damage(text: str) -> str:
    """What looks wrong with a text, in words that say what to do; empty where nothing does."""
    text = text[:SAMPLE_BYTES]
    shown = sum(not character.isspace() for character in text)
    if len(SYMBOL.findall(text)) > max(2, shown / 200):
        return "some characters came out as symbols: check it, or save it again as UTF-8, .docx or another PDF"
    words = LETTERS.findall(text)
    glued = sum(len(word) for word in words if len(word) > LONG_WORD)
    if glued > max(2 * LONG_WORD, sum(map(len, words)) / 20):
        return "words run together: check it, or save it again in another way"
    return ""


def _wide(data: bytes) -> str:
    """Two or four bytes a character, without a mark. Text has spaces or line ends, and few rare characters."""
    best, most = "", 0.9
    for encoding in WIDE:
        try:
            sample = data[: SAMPLE_BYTES // 4 * 4].decode(encoding)
        except UnicodeDecodeError:
            continue
        # With the bytes in the wrong order, letters may well become letters of another script, but spaces do not.
        sense = sum(map(_makes_sense, sample)) / len(sample) + sum(map(sample.count, BETWEEN_WORDS)) / len(sample)
        if sense > most:
            best, most = encoding, sense
    if best:
        return data.decode(best, errors="replace")
    # A few NULs between letters are a slip of the program that wrote them.
    if data.count(0) < len(data) / 20 and not CONTROLS.search(data):
        return decode(data.replace(b"\0", b""))
    raise Unreadable(BINARY)


def _makes_sense(character: str) -> bool:
    """Not what comes of reading a text with its bytes in the wrong order."""
    return character in "\t\r\n" or unicodedata.category(character) not in ("Cc", "Cn", "Co", "Cs", "Cf")


def _is_damaged_utf8(data: bytes) -> bool:
    """Most of what goes beyond ASCII is right: a code page hardly ever looks like that."""
    wrong = data.decode(errors="replace").count("\ufffd")
    beyond = len(data) - len(data.translate(None, BEYOND_ASCII))
    return wrong <= MAX_BAD_SHARE * beyond


def _code_page(data: bytes) -> str:
    chardet: Any = import_module("chardet")
    # The half of the lines that says something, should the beginning be long and plain ASCII.
    telling = b"\n".join(line for line in data.splitlines() if not line.isascii())[:SAMPLE_BYTES]
    found = chardet.detect(telling, encoding_era=chardet.EncodingEra.MODERN_WEB)["encoding"]
    return found or "cp1252"
