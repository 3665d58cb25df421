"""JSON as models write it: with comments, trailing commas, single quotes or Python's words in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from agent.conversation import mended

_TOKEN = re.compile(
    r"""
    "(?:[^"\\]|\\.)*(?:"|\\?\Z) | '(?:[^'\\]|\\.)*(?:'|\\?\Z)   # a string, or one that is cut off
    | //[^\n]* | \#[^\n]* | /\*.*?(?:\*/|\Z)                     # a comment
    | [{}\[\],:] | \s+ | [^\s{}\[\],:"'/\#]+ | .
    """,
    re.DOTALL | re.VERBOSE,
)
_WORDS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_ESCAPE_OR_QUOTE = re.compile(r'(\\.)|"', re.DOTALL)


def end_of_value(text: str, start: int) -> int | None:
    """Where the object or list ends that begins at `start`; None when the text ends before it."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
            if depth <= 0:
                return token.end()
    return None


def loads(text: str) -> Any:
    """A value, without half surrogates and without numbers that no JSON holds.

    Raises:
        ValueError: it cannot be read, or ends in the middle.
    """
    try:
        try:
            value = _strict(text)
        except ValueError:
            value = _strict(" ".join(_plain(text)))
        # Escapes are the way in for half surrogates, which no encoding takes.
        return json.loads(mended(json.dumps(value, ensure_ascii=False))) if "\\u" in text else value
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def dumps(value: Any) -> str:
    """JSON text that every provider and store takes.

    Raises:
        ValueError: there is an infinite number in it, or it is nested too deep.
    """
    try:
        return mended(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _strict(text: str) -> Any:
    return json.loads(text, strict=False, parse_constant=lambda _: None)


def _plain(text: str) -> Iterator[str]:
    """The tokens as JSON spells them."""
    comma = False
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token.isspace() or token.startswith(("//", "/*", "#")):
            continue
        if comma and token not in ("}", "]"):
            yield ","
        comma = token == ","
        if not comma:
            yield _double_quoted(token) if token[0] == "'" else _WORDS.get(token, token)


def _double_quoted(token: str) -> str:
    inner = token[1:-1].replace("\\'", "'")
    return '"' + _ESCAPE_OR_QUOTE.sub(lambda found: found[1] or '\\"', inner) + '"'
