"""The order in which a person reads what stands on a page: column after column, row after row in a table."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

GUTTER = 0.9
"""Between two columns at least, in the height of a line."""
SIDE_WIDTH = 0.62
"""A column narrower than so much of the one beside it holds what stands aside."""
MAX_EDGES = 40
"""Places where a column may begin that are tried, the commonest first."""
MIN_ROWS = 2
MAX_DEPTH = 40
MAX_RUNS = 4000
"""On a page in which columns are looked for: a drawing has more."""
MIN_SIDE_ROWS = 4
MAX_LABEL_CHARS = 45
"""What stands beside a text and says what or when it is."""

DATED = re.compile(r"\b(?:19|20)\d\d\b")


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of a line. Places are in points from the page's lower left corner."""

    text: str
    left: float
    right: float
    y: float
    """Of its lower edge."""
    size: float
    """The height of its letters."""
    order: int
    """When it was painted."""


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    left: float
    right: float
    y: float
    size: float
    block: tuple[int, ...]
    """Lines of one block stand under each other."""
    cells: bool = False
    """It has parts that stand apart, as a table's row has."""
    aside: bool = False
    """It stands in a side column."""


Row = list[Run]
Sides = tuple[tuple[float, float], tuple[float, float]]
NOTHING: Sides = ((math.inf, -1), (math.inf, -1))


def in_order(runs: Sequence[Run]) -> list[Line]:
    """A page's lines."""
    rows = _rows(runs)
    if len(runs) > MAX_RUNS:
        return [_line(row, (id(runs),), False) for row in rows]
    return list(_read(rows, (id(runs),), False))


def _rows(runs: Iterable[Run]) -> list[Row]:
    """Runs on one height, from the top down, each row from left to right."""
    rows: list[Row] = []
    for run in sorted(runs, key=lambda run: (-run.y, run.left)):
        if rows and rows[-1][0].y - run.y < 0.35 * min(run.size, rows[-1][0].size):
            rows[-1].append(run)
        else:
            rows.append([run])
    return [sorted(row, key=lambda run: run.left) for row in rows]


def _read(rows: list[Row], block: tuple[int, ...], aside: bool) -> Iterator[Line]:
    split = _split(rows) if len(block) <= MAX_DEPTH else None
    if split is None:
        yield from (_line(row, block, aside) for row in rows)
        return
    edge, first, last = split
    yield from _read(rows[:first], (*block, 0), aside)
    runs = [run for row in rows[first:last] for run in row]
    left, right = _rows(run for run in runs if run.left < edge), _rows(run for run in runs if run.left >= edge)
    if _is_label(left, right):
        yield from _read([_labelled(left, right[0]), *right[1:]], (*block, 2), aside)
    else:
        narrow = _width(left) / _width(right)
        yield from _read(left, (*block, 1), aside or (narrow < SIDE_WIDTH and len(left) >= MIN_SIDE_ROWS))
        yield from _read(right, (*block, 2), aside or (1 / narrow < SIDE_WIDTH and len(right) >= MIN_SIDE_ROWS))
    yield from _read(rows[last:], (*block, 3), aside)


def _is_label(left: list[Row], right: list[Row]) -> bool:
    """A date or a word or two, beside the text that it belongs to."""
    text = _written(left)
    return len(left) < MIN_SIDE_ROWS and len(text) <= MAX_LABEL_CHARS and len(text) < len(_written(right)) / 2


def _labelled(left: list[Row], row: Row) -> Row:
    """The label as the beginning of the text's first line."""
    return [replace(left[0][0], text=_written(left), right=row[0].left - row[0].size, size=row[0].size), *row]


def _written(rows: list[Row]) -> str:
    return " ".join(run.text for row in rows for run in row)


def _line(row: Row, block: tuple[int, ...], aside: bool) -> Line:
    text, cells = row[0].text, False
    marked = len(text) <= 2  # a bullet or a number: what follows is no other cell
    for before, run in pairwise(row):
        gap = run.left - before.right
        cells = cells or (gap > 2 * run.size and not (marked and before is row[0]))
        text += f" {run.text}" if gap > 0.1 * run.size else run.text
    size = max(row, key=lambda run: len(run.text)).size
    return Line(text, row[0].left, max(run.right for run in row), row[0].y, size, block, cells, aside)


def _width(rows: list[Row]) -> float:
    return max(1.0, max(run.right for row in rows for run in row) - min(row[0].left for row in rows))


def _split(rows: list[Row]) -> tuple[float, int, int] | None:
    """Where a second column begins, and which rows it goes over: the split that tells the most rows apart."""
    counted = Counter(round(run.left) for row in rows for run in row)
    edges = [left - 1.0 for left, _ in counted.most_common(MAX_EDGES)]
    # Whoever painted one side after the other meant columns. Only without such a sign, the text itself has to tell.
    return _best(rows, edges, _painted, _is_parted) or _best(rows, edges, _clear, _reads_as_columns)


Stretches = Callable[[list[Row], float], Iterator[tuple[int, int]]]
Judge = Callable[[list[Row], list[Row]], bool]


def _best(rows: list[Row], edges: list[float], stretches: Stretches, judge: Judge) -> tuple[float, int, int] | None:
    best, most = None, 0
    for edge in edges:
        for first, last in stretches(rows, edge):
            left = [[run for run in row if run.left < edge] for row in rows[first:last]]
            right = [[run for run in row if run.left >= edge] for row in rows[first:last]]
            held = (sum(map(bool, left)), sum(map(bool, right)))
            # Of two edges that part the same rows, the one further left has the whole column on its right.
            score = min(held) * 1000 + sum(held)
            if min(held) and score > most and judge(left, right):
                best, most = (edge, first, last), score
    return best


def _painted(rows: list[Row], edge: float) -> Iterator[tuple[int, int]]:
    """Rows in which one side of an edge was painted after the other."""
    for begun, last in _clear(rows, edge):
        first, sides = begun, NOTHING
        for position in range(begun, last):
            wider = _orders(rows[position], edge, sides)
            if wider is None:
                yield from _with_both(rows, edge, first, position)
                first, wider = position, _orders(rows[position], edge, NOTHING)
            sides = wider or NOTHING
        yield from _with_both(rows, edge, first, last)


def _with_both(rows: list[Row], edge: float, first: int, last: int) -> Iterator[tuple[int, int]]:
    """The rows, and those of them from the first one on that has something on both sides."""
    yield first, last
    both = next((at for at in range(first, last) if rows[at][0].left < edge <= rows[at][-1].left), last)
    if first < both < last:
        yield both, last


def _orders(row: Row, edge: float, sides: Sides) -> Sides | None:
    """When the first and the last piece on each side were painted, with one more row; None: by turns."""
    left, right = sides
    for run in row:
        if run.left < edge:
            left = (min(left[0], run.order), max(left[1], run.order))
        else:
            right = (min(right[0], run.order), max(right[1], run.order))
    return (left, right) if left[1] < right[0] or right[1] < left[0] else None


def _clear(rows: list[Row], edge: float) -> Iterator[tuple[int, int]]:
    """Stretches of rows in which nothing stands across an edge or close before it."""
    first = 0
    for position, row in enumerate(rows):
        if any(run.left < edge and run.right > edge - GUTTER * run.size for run in row):
            yield first, position
            first = position + 1
    yield first, len(rows)


def _is_parted(left: list[Row], right: list[Row]) -> bool:
    """Two columns, or one label with its text. Several dates in one are beside what was done then."""
    labels, texts = [row for row in left if row], [row for row in right if row]
    if all(len(_written([row])) <= 2 for row in labels):
        return False  # the marks of a list
    if _is_label(labels, texts):
        return bool(left[0] and right[0]) and len(texts) >= max(2, len(labels))
    return min(len(labels), len(texts)) >= MIN_ROWS and not _are_dates(labels)


def _reads_as_columns(left: list[Row], right: list[Row]) -> bool:
    labels = [row for row in left if row]
    return len(labels) > MIN_ROWS and not _are_dates(labels) and _is_dense(left) and _is_prose(left, right)


def _are_dates(labels: list[Row]) -> bool:
    return sum(bool(DATED.search(_written([row]))) for row in labels) > 0.4 * len(labels)


def _is_dense(column: list[Row]) -> bool:
    """Without the gaps of labels that stand beside longer texts."""
    held = [position for position, row in enumerate(column) if row]
    return len(held) >= 3 and len(held) >= 0.7 * (held[-1] - held[0] + 1)


def _is_prose(*columns: list[Row]) -> bool:
    """One of them holds sentences that go on in the next line."""
    for column in columns:
        lines = [" ".join(run.text for run in row) for row in column if row]
        wrapped = sum(line[:1].islower() and len(line) > 15 for line in lines)
        if wrapped >= max(1, 0.25 * len(lines)):
            return True
    return False
