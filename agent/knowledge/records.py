"""Tables and records to text that can be read: CSV, JSON and address cards."""

from __future__ import annotations

import csv
import io
import json
import quopri
import re
from collections.abc import Iterator
from itertools import islice
from typing import cast

from agent.knowledge.text import clean, decode
from agent.knowledge.values import Reading, Unreadable

MAX_ROWS = 5000
MAX_VALUES = 50_000
"""Of a file: beyond that it is data, not a person."""
TOO_MANY = "only its first {} {} are read; keep the parts that are about you"

QUOTED = re.compile(r"^[^:\n]*QUOTED-PRINTABLE[^\n]*(?:(?<==)\n[^\n]*)*", re.IGNORECASE | re.MULTILINE)
"""A quoted line, with those that it goes on in."""

CARD_NAMES = {
    "FN": "Name", "ORG": "Organisation", "TITLE": "Title", "ROLE": "Role", "EMAIL": "Email", "TEL": "Phone",
    "ADR": "Address", "URL": "Web", "NOTE": "Note", "BDAY": "Birthday", "NICKNAME": "Nickname", "LANG": "Language",
    "X-SOCIALPROFILE": "Profile", "IMPP": "Messenger", "CATEGORIES": "Categories",
    "SUMMARY": "Event", "DESCRIPTION": "Description", "LOCATION": "Location", "DTSTART": "Begins", "DTEND": "Ends",
}  # fmt: skip
"""What of a card or a calendar is about a person, and how to call it."""


def read_csv(data: bytes) -> Reading:
    """Each row a paragraph of `column: value` lines, where the first row names the columns."""
    text = clean(decode(data))
    csv.field_size_limit(1_000_000)
    found = csv.reader(io.StringIO(text), _dialect(text))
    try:
        # One more than is shown, to know whether there are more.
        rows = [[" ".join(cell.split()) for cell in row] for row in islice(found, MAX_ROWS + 1)]
    except csv.Error as error:
        raise Unreadable("not a table that can be read; save it again, or as .txt") from error
    detail = TOO_MANY.format(MAX_ROWS, "rows") if len(rows) > MAX_ROWS else ""
    rows = [row for row in rows[:MAX_ROWS] if any(row)]
    names, shown = (rows[0], rows[1:]) if len(rows) > 1 and _names_columns(rows[0]) else ([], rows)
    return Reading(clean("\n\n".join(filter(None, (_row(names, row) for row in shown)))), detail=detail)


def read_json(data: bytes) -> Reading:
    """Each value a line with its name; what is nested gets headings."""
    text = decode(data).lstrip("\ufeff")
    try:
        values: object = json.loads(text)
    except RecursionError as error:
        raise Unreadable("nested too deeply to be read; keep the parts that are about you") from error
    except ValueError as error:
        values = _json_lines(text)
        if values is None:
            raise Unreadable("not JSON that can be read; save it again, or as .txt") from error
    lines: list[str] = []
    whole = _spread(values, lines)
    detail = "" if whole else TOO_MANY.format(MAX_VALUES, "values")
    return Reading(clean(re.sub(r"\n{3,}", "\n\n", "\n".join(lines))), detail=detail)


def read_card(data: bytes) -> Reading:
    """An address card or a calendar: what it says of a person, a line each."""
    text = clean(decode(data))
    text = QUOTED.sub(lambda found: found[0].replace("=\n", ""), text)
    unfolded = re.sub(r"\n[ \t]", "", text)
    return Reading(clean("\n".join(_card_lines(unfolded))))


def _dialect(text: str) -> type[csv.Dialect]:
    sample = "\n".join(text[:20_000].splitlines()[:50])
    try:
        return csv.Sniffer().sniff(sample, delimiters=",;\t|")
    except csv.Error:
        return csv.excel


def _names_columns(row: list[str]) -> bool:
    """The first row names the columns where each of its cells is short, and none is empty or a number."""
    return len(row) > 1 and all(0 < len(cell) <= 40 and re.search(r"[^\W\d_]", cell) for cell in row)


def _row(names: list[str], row: list[str]) -> str:
    if not names:
        return ", ".join(cell for cell in row if cell)
    named = zip(names, row, strict=False)
    rest = [cell for cell in row[len(names) :] if cell]
    return "\n".join([*(f"{name}: {cell}" for name, cell in named if cell), *rest])


def _json_lines(text: str) -> list[object] | None:
    """One value a line, as logs and exports write them."""
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()] or None
    except (ValueError, RecursionError):
        return None


def _spread(root: object, lines: list[str]) -> bool:
    """Writes a value's lines. Without recursion: the depth is the file's. False: there was more than is written."""
    todo: list[tuple[str, int, object]] = [("", 0, root)]
    left = MAX_VALUES
    while todo and left:
        left -= 1
        name, depth, value = todo.pop()
        if isinstance(value, dict) and value:
            _open(name, depth, lines)
            pairs = cast("dict[str, object]", value)
            todo.extend((_title(key), depth + 1, pairs[key]) for key in reversed(_plain_first(pairs)))
        elif isinstance(value, list) and value:
            items = cast("list[object]", value)
            if all(not isinstance(item, dict | list) for item in items):
                lines.append(_pair(name, ", ".join(filter(None, map(_plain, items)))))
            else:
                _open(name, depth, lines)
                todo.extend(("", depth + 1, item) for item in reversed(items))
        elif shown := _plain(cast("object", value)):
            lines.append(_pair(name, shown))
    return not todo


def _open(name: str, depth: int, lines: list[str]) -> None:
    lines.append(f"\n{'#' * min(depth, 6)} {name}\n" if name and depth else "")


def _plain_first(pairs: dict[str, object]) -> list[str]:
    """Plain values before nested ones, else they would stand under a heading that is not theirs."""
    return sorted(pairs, key=lambda key: isinstance(pairs[key], dict | list))


def _title(key: str) -> str:
    """`startDate` and `start_date` as a person writes them."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(key).replace("_", " ")).strip()
    words = " ".join(word if word.isupper() else word.lower() for word in words.split()[:20])
    return words[:1].upper() + words[1:200]


def _plain(value: object) -> str:
    if value is None or isinstance(value, dict | list):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(str(value).split())


def _pair(name: str, value: str) -> str:
    return f"{name}: {value}" if name and value else value


def _card_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        head, colon, value = line.partition(":")
        name, *parameters = head.upper().split(";")
        name = name.rpartition(".")[2]  # a group such as `item1.EMAIL`
        if name in ("BEGIN", "END"):
            yield ""
        if not colon or name not in CARD_NAMES:
            continue
        if any("QUOTED-PRINTABLE" in parameter for parameter in parameters):
            value = decode(quopri.decodestring(value.encode())) if value else ""
        value = re.sub(r"\\[nN]", " ", value)
        parts = [re.sub(r"\\(.)", r"\1", part).strip() for part in re.split(r"(?<!\\);", value)]
        if shown := ", ".join(filter(None, parts)):
            yield f"{CARD_NAMES[name]}: {shown}"
