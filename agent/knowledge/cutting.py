"""Cuts a document into passages: at headings, at empty lines and, where a paragraph is long, at sentences.

By hand, line by line: a Markdown parser took minutes and gigabytes for lists and tables of ten megabytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from agent.knowledge.values import Document
from agent.passages import Passage

LONGEST = 1200
"""Characters of a passage, about: what a search finds and a reply quotes should say one thing."""
MAX_HEADING_CHARS = 300

SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"”’»)])\s+|(?<=[。！？])")
ITEM = re.compile(r"\s*(?:[-*+>|]|\d{1,3}[.)])\s|\|")
KEYED = re.compile(r"[^\W\d_][\w ./-]{0,40}: \S")
UNDERLINE = re.compile(r"(?:=+|-+)\s*")
RULE = re.compile(r"(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,}")
TABLE_RULE = re.compile(r"\|?[\s:|-]*-[\s:|-]*")
MARKS = "#=-*_`~"
"""What a line begins with that is more than text."""
FENCES = ("```", "~~~")

Block = tuple[int, list[str]]
"""Lines that belong together, with the depth of the heading that they are; 0: none."""


def cut(document: Document) -> Iterator[Passage]:
    """The passages of a document: its paragraphs, lists and tables, each with the headings above it."""
    headings: list[tuple[int, str]] = []
    bare = False  # whether nothing stands yet under the last heading
    for depth, lines in _blocks(document.text.split("\n")):
        if depth:
            if bare and depth <= headings[-1][0]:
                yield _said_by_heading(document, headings)
            headings = [*(item for item in headings if item[0] < depth), (depth, lines[0])]
            bare = bool(lines[0])
            continue
        path = _path(headings)
        for text in _pieces(lines):
            bare = False
            yield Passage(document.file, path, text)
    if bare:
        yield _said_by_heading(document, headings)


def _blocks(lines: Iterable[str]) -> Iterator[Block]:
    block: list[str] = []
    fence = ""
    for line in lines:
        bare = line.strip() if len(line) <= MAX_HEADING_CHARS else line
        if fence:
            block.append(line)
            fence = "" if bare == fence else fence
        elif not bare:
            yield 0, block
            block = []
        elif bare[0] not in MARKS:
            block.append(line)
        elif depth := _depth(bare):
            yield 0, block
            yield depth, [_title(bare[depth:])]
            block = []
        elif _underlines(bare, block):
            yield 1 if bare[0] == "=" else 2, [block[0].strip()]
            block = []
        elif len(bare) <= MAX_HEADING_CHARS and RULE.fullmatch(bare):
            yield 0, block
            block = []
        else:
            fence = bare[:3] if bare.startswith(FENCES) else ""
            block.append(line)
    yield 0, block


def _depth(line: str) -> int:
    """Of a heading: its number signs; 0: it is none."""
    depth = len(line[:7]) - len(line[:7].lstrip("#"))
    return depth if depth <= 6 and len(line) <= MAX_HEADING_CHARS and line[depth : depth + 1] in ("", " ", "\t") else 0


def _title(rest: str) -> str:
    """Without the number signs that may close it; `C#` keeps its own."""
    title = rest.strip()
    shut = title.rstrip("#")
    return shut.strip() if not shut or shut[-1].isspace() else title


def _underlines(line: str, block: list[str]) -> bool:
    """Whether a line makes a heading of the one above it."""
    above = block[0] if len(block) == 1 and len(block[0]) <= MAX_HEADING_CHARS else ""
    is_text = bool(above) and not ITEM.match(above) and not KEYED.match(above)
    return is_text and UNDERLINE.fullmatch(line[:MAX_HEADING_CHARS]) is not None and len(line) > 1


def _path(headings: list[tuple[int, str]]) -> str:
    return " › ".join(title for _, title in headings if title)


def _said_by_heading(document: Document, headings: list[tuple[int, str]]) -> Passage:
    """A heading with nothing under it: what it says is all there is."""
    return Passage(document.file, _path(headings[:-1]), headings[-1][1])


def _pieces(lines: list[str]) -> Iterator[str]:
    """A paragraph on one line, a list or a table in its lines; a long one in several."""
    if any(ITEM.match(line) or line.lstrip().startswith(FENCES) for line in lines) or _are_keyed(lines):
        is_table = len(lines) > 2 and "|" in lines[0] and TABLE_RULE.fullmatch(lines[1].strip()[:MAX_HEADING_CHARS])
        head = lines[:2] if is_table else []
        yield from _packed((line.rstrip() for line in lines[len(head) :]), "\n", head)
    elif flat := " ".join(" ".join(lines).split()):
        yield from _packed(SENTENCE_END.split(flat), " ", []) if len(flat) > LONGEST else [flat]


def _are_keyed(lines: list[str]) -> bool:
    return len(lines) > 1 and all(map(KEYED.match, lines))


def _packed(parts: Iterable[str], glue: str, head: list[str]) -> Iterator[str]:
    """As many parts together as are no longer than a passage. Each begins with the head: a table's first row."""
    pack, size = list(head), 0
    for part in chain.from_iterable(map(_short, parts)):
        if size and size + len(part) > LONGEST:
            yield glue.join(pack).strip()
            pack, size = list(head), 0
        pack.append(part)
        size += len(part) + 1
    if size and (text := glue.join(pack).strip()):
        yield text


def _short(part: str) -> Iterator[str]:
    """A sentence without an end in sight is cut between words, a word without an end anywhere."""
    start = 0
    while len(part) - start > LONGEST:
        end = part.rfind(" ", start + LONGEST // 2, start + LONGEST)
        end = start + LONGEST if end < 0 else end
        yield part[start:end]
        start = end
    if start < len(part):
        yield part[start:] if start else part
