"""Text with one form of each sign that matters in a mail address, whatever keyboard or page it came from."""

from __future__ import annotations

import unicodedata

FULL_WIDTH = range(0xFF01, 0xFF5F)
"""ASCII as Chinese and Japanese keyboards type it."""
TO_ASCII = FULL_WIDTH.start - 0x21

OTHER_FORMS = {
    "\N{SMALL COMMERCIAL AT}": "@",
    "\N{IDEOGRAPHIC FULL STOP}": ".",
    "\N{HALFWIDTH IDEOGRAPHIC FULL STOP}": ".",
    "\N{SMALL FULL STOP}": ".",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",  # what telephones make of the apostrophe in o'brien@…
    "\N{MODIFIER LETTER APOSTROPHE}": "'",
    "\N{HYPHEN}": "-",
    "\N{NON-BREAKING HYPHEN}": "-",
    "\N{MIDDLE DOT}": "\N{MIDDLE DOT}",  # a part of Catalan names
    "\N{KATAKANA MIDDLE DOT}": "\N{KATAKANA MIDDLE DOT}",  # and of Japanese ones
}


def legible(text: str) -> str:
    """`text` with nothing invisible and a blank for each quote, dash, emoji or other ornament beyond ASCII.

    Control characters stay, for the caller to refuse. Characters are looked at one by one: to compose a whole text
    takes a time that grows with its square.
    """
    strange = {character for character in set(text) if not character.isascii()}
    return text.translate({ord(character): _plain(character) for character in strange}) if strange else text


def has_control(text: str) -> bool:
    """A second line, or a character that is for machines."""
    return any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in text)


def _plain(character: str) -> str:
    if character in OTHER_FORMS:
        return OTHER_FORMS[character]
    if ord(character) in FULL_WIDTH:
        return chr(ord(character) - TO_ASCII)
    category = unicodedata.category(character)
    if category == "Cf" or "\ufe00" <= character <= "\ufe0f" or character == "\N{COMBINING GRAPHEME JOINER}":
        return ""
    return character if category[0] in "LMN" or category in {"Cc", "Zl", "Zp"} else " "
