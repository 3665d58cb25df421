"""Search in large knowledge, beside plain calls on the same text: `python -m bench.finding`.

The text is made of the words of the encoder's own word list, as often as Zipf says, with years, sums and made-up names
between them: ten megabytes, the same at each run. The questions are in `bench/data/finding`; they were written
before the search, and nothing was tuned on them.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from agent.finding.embeddings import Embeddings, local
from agent.finding.encoder import WORD_PIECES, LocalEncoder
from agent.finding.index import FILE_NAME, open_index
from agent.finding.lexical import words
from agent.knowledge import Passage, load_knowledge

ROOT = Path(__file__).parent.parent
DATA = ROOT / "bench" / "data" / "finding"
FILES, PASSAGES_EACH = 60, 1000
DISTRACTORS = 1000
"""Made-up passages among which the questions' are sought by meaning, too: more take minutes to embed."""
AT = 5


@dataclass(frozen=True, slots=True)
class Asked:
    question: str
    holds: tuple[str, ...]
    context: str = ""


def asked() -> list[Asked]:
    lines = (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [Asked(row["question"], tuple(row["holds"]), row.get("context", "")) for row in rows]


def vocabulary() -> list[str]:
    """Twenty thousand English words, the frequent ones first."""
    package, file = WORD_PIECES
    text = Path(str(distribution(package).locate_file(file))).read_text(encoding="utf-8")
    pieces: dict[str, int] = json.loads(text)["model"]["vocab"]
    return [piece for piece in sorted(pieces, key=pieces.__getitem__) if piece.isascii() and piece.isalpha()]


def made_up(count: int) -> Iterator[Passage]:
    """Passages of two or three sentences, the same at each run."""
    known = vocabulary()
    shares = 1 / (np.arange(len(known)) + 2.7)
    draw = np.random.default_rng(11)
    numbers = random.Random(11)
    for place in range(count):
        drawn = draw.choice(len(known), size=int(draw.integers(23, 37)), p=shares / shares.sum())
        text: list[str] = [known[each] for each in drawn]
        text[numbers.randrange(8)] = str(numbers.randrange(1800, 2030))
        text[-numbers.randrange(1, 8)] = (numbers.choice(known) + numbers.choice(known)).capitalize()
        half = len(text) // 2
        sentences = " ".join(text[:half]).capitalize() + ". " + " ".join(text[half:]).capitalize() + "."
        heading = f"Notes › {known[place % 997 + 500].capitalize()} {known[place % 89 + 2000]}"
        yield Passage(f"{place // PASSAGES_EACH:02}.json", heading, sentences)


def write(folder: Path, passages: Sequence[Passage]) -> dict[str, Path]:
    """Files of passages that were cut already: what is measured is the index and not a reader."""
    names = sorted({passage.file for passage in passages})
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        rows = [(passage.heading, passage.text) for passage in passages if passage.file == name]
        (folder / name).write_text(json.dumps(rows), encoding="utf-8")
        os.utime(folder / name, (1, 1))
    return {name: folder / name for name in names}


def read(path: Path) -> tuple[list[Passage], str]:
    return [Passage(path.name, heading, text) for heading, text in json.loads(path.read_text(encoding="utf-8"))], ""


def all_of(folder: Path) -> dict[str, Path]:
    return {path.name: path for path in sorted(folder.iterdir())}


def build_index(place: Path) -> None:
    index = open_index(place / "data")
    index.renew(read, all_of(place / "files"))
    index.close()


def build_plain(place: Path) -> None:
    """The floor: SQLite's full-text table and one insert for everything."""
    passages = [passage for path in all_of(place / "files").values() for passage in read(path)[0]]
    with sqlite3.connect(place / "plain.db") as connection:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(heading, text, tokenize='porter unicode61')")
        rows = ((passage.heading, passage.text) for passage in passages)
        connection.executemany("INSERT INTO words VALUES (?, ?)", rows)
    connection.close()


def build_bm25s(place: Path) -> None:
    """The peer: a library that keeps its index in arrays."""
    library: Any = import_module("bm25s")
    passages = [passage for path in all_of(place / "files").values() for passage in read(path)[0]]
    tokens = library.tokenize([f"{passage.heading} {passage.text}" for passage in passages], show_progress=False)
    index = library.BM25()
    index.index(tokens, show_progress=False)
    index.save(str(place / "bm25s"))


def only_read(place: Path) -> None:
    for path in all_of(place / "files").values():
        read(path)


def _run(work: Callable[[Path], None], place: Path, results: multiprocessing.Queue[tuple[float, float, float]]) -> None:
    before = _peak()
    wall, processor = time.perf_counter(), time.process_time()
    work(place)
    results.put((time.perf_counter() - wall, time.process_time() - processor, _peak() - before))


def _peak() -> float:
    """Megabytes of this process at the most. Not from getrusage, which begins with what the parent had."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def costs(work: Callable[[Path], None], place: Path) -> tuple[float, float, float]:
    """Seconds, seconds of processor time, and megabytes on top at the peak; in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[tuple[float, float, float]] = spawn.Queue()
    process = spawn.Process(target=_run, args=(work, place, results))
    process.start()
    got = results.get(timeout=600)
    process.join()
    return got


def milliseconds(work: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of the processor, which other programs do not lengthen as much."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - wall) * 1000, (time.process_time() - processor) * 1000


def middle(times: Sequence[tuple[float, float]]) -> str:
    walls, processors = zip(*times, strict=True)
    return f"{median(walls):.1f} ms ({median(processors):.1f} of the processor)"


def questions_from(passages: Sequence[Passage], count: int) -> list[tuple[str, Passage]]:
    """Four words of a passage each."""
    pick = random.Random(3)
    chosen = pick.sample(list(passages), count)
    return [(" ".join(pick.sample(words(each.text), 4)), each) for each in chosen]


def of_size(place: Path, passages: Sequence[Passage]) -> Iterator[str]:
    size = sum(len(passage.text) for passage in passages) / 1e6
    yield f"{len(passages)} passages, {size:.1f} MB, in {FILES} files"
    yield "first index                     seconds   processor   MB at the peak"
    for name, work in (
        ("this index", build_index),
        ("plain FTS5 insert (floor)", build_plain),
        ("bm25s (peer)", build_bm25s),
        ("reading the files alone", only_read),
    ):
        yield "{:30} {:8.2f} {:11.2f} {:16.0f}".format(name, *costs(work, place))
    yield f"on disk: {(place / 'data' / FILE_NAME).stat().st_size / 1e6:.0f} MB"


def of_start(place: Path) -> Iterator[str]:
    def start(data: Path, files: dict[str, Path]) -> None:
        index = open_index(data)
        index.renew(read, files)
        index.close()

    empty = [milliseconds(lambda: start(Path(tempfile.mkdtemp(dir=place)), {})) for _ in range(9)]
    warm = [milliseconds(lambda: start(place / "data", all_of(place / "files"))) for _ in range(9)]
    yield f"open and compare: without knowledge {middle(empty)}, with the warm index {middle(warm)}"


def of_search(place: Path, passages: Sequence[Passage]) -> Iterator[str]:
    index = open_index(place / "data")
    known = questions_from(passages, 300)
    times = sorted(milliseconds(lambda text=text: index.find(text)) for text, _ in known)
    hits = sum(each.text in [found.passage.text for found in index.find(text, limit=AT)] for text, each in known)
    yield f"search by words: {middle(times)} at the median, {times[284][0]:.1f} at the 95th percentile"
    yield f"the passage that four words were taken from is among the first {AT} for {hits} of {len(known)}"
    for width in (384, 1536):
        yield of_vectors(place, width, [text for text, _ in known[:100]])
    index.close()


def of_vectors(place: Path, width: int, texts: Sequence[str]) -> str:
    """Vectors of chance around a thousand centres, as no model is at hand that embeds so many in a minute."""
    index = open_index(place / "data")
    draw = np.random.default_rng(width)
    centres = draw.normal(size=(1000, width)).astype(np.float32)
    after = 0
    exact: list[Any] = []
    while batch := index.without_vector(f"chance-{width}", after, 4096):
        rows = centres[draw.integers(0, 1000, len(batch))] + draw.normal(size=(len(batch), width)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        index.keep_vectors(f"chance-{width}", [digest for _, digest, _ in batch], rows)
        after = batch[-1][0]
        exact.append(rows)
    matrix = np.concatenate(exact)
    near = matrix[:: len(matrix) // len(texts)][: len(texts)]
    first = milliseconds(lambda: index.find(texts[0], vector=near[0]))
    pairs = list(zip(texts, near, strict=True))
    times = [milliseconds(lambda text=text, each=each: index.find(text, vector=each)) for text, each in pairs]
    product = [milliseconds(lambda each=each: np.argpartition(matrix @ each, -50)) for each in near]
    index.close()
    held = place / "data" / FILE_NAME
    return (
        f"words and {len(matrix)} × {width} vectors: {middle(times)}, {first[0]:.0f} the first time; "
        f"a matrix product in memory alone: {middle(product)}; {held.stat().st_size / 1e6:.0f} MB on disk"
    )


def recall(found: Callable[[Asked], Sequence[str]], questions: Sequence[Asked]) -> str:
    right = sum(any(held in text for text in found(each) for held in each.holds) for each in questions)
    return f"{right} of {len(questions)}"


async def of_questions(place: Path, passages: Sequence[Passage]) -> list[str]:
    told = (*load_knowledge(ROOT / "knowledge").passages, *load_knowledge(DATA / "notes").passages)
    alone = [each for each in asked() if not each.context]
    following = [each for each in asked() if each.context]
    lines = [f"right passage among the first {AT}       questions     that follow up"]
    for beside in (passages[:DISTRACTORS], passages):
        folder = place / f"told{len(beside)}"
        files = write(folder, [*told, *beside])
        index = open_index(None)
        index.renew(read, files)
        embeddings = None
        if len(beside) == DISTRACTORS:
            embeddings = Embeddings(index, local(LocalEncoder().load), "minilm", question_s=60)
            await embeddings.fill()
        for how in ("words", "words, no context", *(["words and meaning"] if embeddings else [])):
            found: dict[Asked, list[str]] = {}
            for each in asked():
                context = "" if how == "words, no context" else each.context
                if how == "words and meaning" and embeddings:
                    got = await embeddings.find(each.question, context, AT)
                else:
                    got = index.find(each.question, context, AT)
                found[each] = [one.passage.text for one in got]
            of_set = [recall(found.__getitem__, questions) for questions in (alone, following)]
            lines.append(f"among {len(told) + len(beside):6}, {how:18} {of_set[0]:>14} {of_set[1]:>18}")
        index.close()
    return lines


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        passages = list(made_up(FILES * PASSAGES_EACH))
        write(place / "files", passages)
        for part in (of_size(place, passages), of_start(place), of_search(place, passages)):
            for line in part:
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
        sys.stdout.write("\n".join(asyncio.run(of_questions(place, passages))) + "\n")


if __name__ == "__main__":
    main()
