"""From pieces of text with their places on the page to paragraphs in the order in which a person reads them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from agent.knowledge.columns import Line, Run, in_order

HEADING_SIZE = 1.12
"""How much larger than the text of the body a heading is, at least."""
MAX_HEADING_CHARS = 90

GAP = 1.8
"""Between the lines of one paragraph, at most, in their height."""
WIDER = 1.25
"""Where lines stand so much further apart than their neighbours do, a paragraph ends."""
LONG_LINE_CHARS = 30
"""A line that goes on in the next one is at least so long, else it is an item of a list."""

BULLET = re.compile("^[•▪▫■□◦●○‣⁃·∙➢➤►✓✔❖\uf0b7\uf0a7\uf0d8\uf076\uf0fc]\\s*")
ITEM = re.compile(r"- |\d{1,2}[.)] ")
COUNTER = re.compile(
    r"\W*(?:(?:page|seite|página|pagina|pag|p|s|strona|str|sida|side|oldal)\.?\s*)?\d+"
    r"(?:\s*(?:of|von|de|sur|di|af|av|z|/|\|)\s*\d+)?\W*",
    re.IGNORECASE,
)
"""A page's number, alone or with how many there are."""
COUNTED = re.compile(r"(?:page|seite|página|pagina|strona|sida)\W*\d+|\d+\s*(?:of|/|von)\s*\d+", re.IGNORECASE)
MARGIN = 0.1
"""Of a page's height, above and below, where running lines stand."""
EDGE_LINES = 4


@dataclass(frozen=True, slots=True)
class Page:
    runs: Sequence[Run]
    height: float
    """In points."""


def laid_out(pages: Sequence[Page]) -> str:
    """The text of a document: headings as Markdown, paragraphs joined, running lines taken out."""
    ordered = [in_order(page.runs) for page in pages]
    edges = [set(_edges(lines, page.height)) for lines, page in zip(ordered, pages, strict=True)]
    running, seen = _running(edges), set[str]()
    kept: list[Line] = []
    for lines, edge in zip(ordered, edges, strict=True):
        lowest = min((line.y for line in lines), default=0.0)
        for line in lines:
            if line not in edge or not _is_running(line, running, seen, is_last=line.y <= lowest):
                kept.append(replace(line, text=BULLET.sub("- ", line.text)))
    kept = [line for line in kept if not line.aside] + [line for line in kept if line.aside]
    return "\n".join(_paragraphs(kept))


def _edges(lines: Sequence[Line], height: float) -> list[Line]:
    """What stands in the margin above and below, if it is no more than a few lines."""
    above = [line for line in lines if line.y > (1 - MARGIN) * height]
    below = [line for line in lines if line.y < MARGIN * height]
    return [line for edge in (above, below) if len(edge) <= EDGE_LINES for line in edge]


def _masked(text: str) -> str:
    return re.sub(r"\d+", "0", " ".join(text.split()).lower())


def _running(edges: Sequence[set[Line]]) -> set[str]:
    """What stands at the edge of most pages, but for its numbers."""
    if len(edges) < 2:
        return set()
    found = Counter(text for edge in edges for text in {_masked(line.text) for line in edge})
    return {text for text, times in found.items() if times >= max(2, 0.6 * len(edges))}


def _is_running(line: Line, running: set[str], seen: set[str], *, is_last: bool) -> bool:
    """A page's number never says anything; another running line does once."""
    masked = _masked(line.text)
    counts = COUNTER.fullmatch(line.text) is not None
    if masked in running and (counts or COUNTED.search(line.text)):
        return True
    # A bare number counts the page where it stands below all else, and is no year.
    if counts and (COUNTED.search(line.text) or (is_last and len(line.text.strip()) <= 3)):
        return True
    repeated = masked in seen
    if masked in running:
        seen.add(masked)
    return repeated


def _paragraphs(lines: Sequence[Line]) -> Iterator[str]:
    levels = _levels([line for line in lines if not line.aside], 1)
    beside = _levels([line for line in lines if line.aside], 2)
    words = Counter(word.lower() for line in lines for word in re.findall(r"\w+(?:-\w+)*", line.text))
    edges: dict[tuple[int, ...], float] = {}
    for line in lines:
        edges[line.block] = max(line.right, edges.get(line.block, 0.0))
    text = ""
    for position, line in enumerate(lines):
        level = _level(line, beside if line.aside else levels)
        if position and _continues(lines, position, edges[line.block], is_heading=level > 0):
            text = _joined(text, line.text, words)
            continue
        if position:
            yield text
            if level or text.startswith("#") or _is_apart(lines, position):
                yield ""
        text = f"{'#' * level} {line.text}" if level else line.text
    yield text


def _body_size(lines: Sequence[Line]) -> float:
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 1.0


def _levels(lines: Sequence[Line], top: int) -> dict[float, int]:
    """The depth of the headings of each size, the largest being the first."""
    body = _body_size(lines)
    larger = {line.size for line in lines if line.size >= HEADING_SIZE * body and not line.cells}
    return {size: min(depth, 3) for depth, size in enumerate(sorted(larger, reverse=True), top)}


def _level(line: Line, levels: dict[float, int]) -> int:
    is_heading = len(line.text) <= MAX_HEADING_CHARS and not ITEM.match(line.text) and re.search(r"\w", line.text)
    return levels.get(line.size, 0) if is_heading and not line.cells else 0


def _is_apart(lines: Sequence[Line], position: int) -> bool:
    """Whether an empty line belongs between two: where they stand further apart than their neighbours do."""
    before, line = lines[position - 1], lines[position]
    if before.block != line.block or not _alike(before, line):
        return True
    return before.y - line.y > WIDER * _spacing(lines, position) and not ITEM.match(line.text)


def _spacing(lines: Sequence[Line], position: int) -> float:
    """Between a line and the one before, or between their neighbours where that is less."""
    around = lines[max(0, position - 2) : position + 2]
    pairs = [(one, two) for one, two in pairwise(around) if one.block == two.block and one.y > two.y]
    return min((one.y - two.y for one, two in pairs), default=math.inf)


def _alike(one: Line, other: Line) -> bool:
    """Of one size, but for a word in another font."""
    return abs(one.size - other.size) < 0.1 * max(one.size, other.size)


def _continues(lines: Sequence[Line], position: int, edge: float, *, is_heading: bool) -> bool:
    """Whether a line goes on with the sentence of the one before."""
    before, line = lines[position - 1], lines[position]
    is_item = ITEM.match(line.text) or before.cells or line.cells
    if is_item or not _alike(before, line) or before.text.endswith(":"):
        return False
    in_sentence = line.text[:1].islower() and not before.text.endswith((".", "!", "?"))
    if before.block != line.block:
        return in_sentence and len(before.text) >= LONG_LINE_CHARS
    gap = before.y - line.y
    if not 0 < gap <= GAP * max(line.size, before.size):
        return False
    if is_heading:
        return in_sentence
    is_wrapped = len(before.text) >= LONG_LINE_CHARS and gap <= WIDER * _spacing(lines, position)
    is_wrapped = is_wrapped and _is_full(lines, position, edge)
    return (in_sentence and (len(before.text) >= LONG_LINE_CHARS / 2 or before.text.endswith("-"))) or is_wrapped


def _is_full(lines: Sequence[Line], position: int, edge: float) -> bool:
    """Whether the next line's first word had no room in this one, in text that is prose."""
    before, line = lines[position - 1], lines[position]
    around = [
        other
        for other in lines[max(0, position - 8) : position + 8]
        if other.block == line.block and _alike(other, line) and not other.cells
    ]
    if not any(other.text[:1].islower() or re.search(r"[.!?;,] |[.!?,;]$", other.text) for other in around):
        return False
    # What ends a sentence may end a paragraph: then only a line that reaches the column's own edge goes on.
    ends = before.text.endswith((".", "!", "?"))
    right = edge if ends else max(other.right for other in around)
    letter = (line.right - line.left) / max(1, len(line.text))
    first_word = line.text.split(" ", 1)[0]
    return before.right + letter * (len(first_word) + 1) > right - 0.5 * letter


def _joined(text: str, following: str, words: Counter[str]) -> str:
    """Two lines as one; a word that was parted at the line's end becomes whole again."""
    text = re.sub(r"(?<=\w)\u2010$", "-", text)
    if not re.search(r"\w-$", text) or not following[:1].islower():
        return f"{text} {following}"
    head, tail = re.findall(r"[\w-]+-$", text)[-1], (re.findall(r"^[\w-]+", following) or [""])[0]
    keeps = words[f"{head}{tail}".lower()] > words[f"{head[:-1]}{tail}".lower()] or "-" in head[:-1]
    return f"{text if keeps else text[:-1]}{following}"
