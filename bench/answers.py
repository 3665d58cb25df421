"""How many questions the search answers rightly: `python -m bench.answers`, on the knowledge that the project ships."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.finding.search import Search, open_search
from agent.knowledge import load_knowledge

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases" / "questions.jsonl"


@dataclass(frozen=True, slots=True)
class Case:
    """A question as a visitor would ask it."""

    set: str
    """A: the search was tuned on it. B: held out."""
    kind: str
    """direct, reworded or unanswered."""
    question: str
    holds: tuple[str, ...]
    """Any of these stands in a passage that answers."""


@dataclass(frozen=True, slots=True)
class Score:
    """What came of the questions of one set."""

    direct: int
    reworded: int
    """Of these two: the right passage is among those quoted."""
    wrong: int
    """Questions that the files do not answer, and that got a passage."""
    misled: int
    """Questions that the files answer, and that got only other passages."""
    passages: float
    """Quoted in an answer, on average."""


def cases() -> list[Case]:
    lines = CASES.read_text(encoding="utf-8").splitlines()
    rows = (json.loads(line) for line in lines if line.strip())
    return [Case(row["set"], row["kind"], row["question"], tuple(row.get("holds", ()))) for row in rows]


def score(search: Search, asked: Iterable[Case]) -> Score:
    right = {"direct": 0, "reworded": 0}
    wrong = misled = 0
    lengths: list[int] = []
    for case in asked:
        quoted = search.answering(case.question)
        if not quoted:
            continue
        lengths.append(len(quoted))
        if case.kind == "unanswered":
            wrong += 1
        elif any(held in passage.text for passage in quoted for held in case.holds):
            right[case.kind] += 1
        else:
            misled += 1
    return Score(right["direct"], right["reworded"], wrong, misled, sum(lengths) / max(1, len(lengths)))


def table(search: Search, asked: Sequence[Case]) -> str:
    lines = ["set         direct    reworded   right in all   wrong passage   not covered, answered   passages each"]
    for name, meaning in (("A", "tuned on"), ("B", "held out")):
        of_set = [case for case in asked if case.set == name]
        kinds = {kind: sum(case.kind == kind for case in of_set) for kind in ("direct", "reworded", "unanswered")}
        got = score(search, of_set)
        direct, reworded = f"{got.direct} of {kinds['direct']}", f"{got.reworded} of {kinds['reworded']}"
        right = f"{got.direct + got.reworded} of {kinds['direct'] + kinds['reworded']}"
        wrong = f"{got.wrong} of {kinds['unanswered']}"
        lines.append(
            f"{name} {meaning}  {direct:9} {reworded:10} {right:14} {got.misled:<15} {wrong:23} {got.passages:.1f}"
        )
    return "\n".join(lines)


def main() -> None:
    passages = load_knowledge(ROOT / "knowledge").passages
    started = time.perf_counter()
    search = open_search(passages)
    built = time.perf_counter() - started
    asked = cases()
    started = time.perf_counter()
    lines = table(search, asked)
    each = (time.perf_counter() - started) / len(asked)
    how = "by meaning and words" if search.meaning else "by words alone (no encoder)"
    sys.stdout.write(f"{lines}\n{len(passages)} passages, {how}: index {built:.1f} s, question {each * 1000:.0f} ms\n")


if __name__ == "__main__":
    main()
