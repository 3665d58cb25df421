"""The keyless model's search over knowledge that is too large to be encoded whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.finding.embeddings import Embeddings, local
from agent.finding.encoder import Encode, load_encoder
from agent.finding.index import Index, open_index
from agent.finding.search import CANDIDATES, LargeSearch
from agent.knowledge import Passage

OWN = (
    "I live in Rotterdam with my partner and our two cats.",
    "I lead a team of six engineers who wrote the booking platform of a shipping company.",
    "My neighbour Anna Lis taught me to bake rye bread.",
)
OTHERS = tuple(
    f"The {what} of {place} was measured {times} times."
    for what in ("wall", "pond", "road", "roof", "lawn", "gate")
    for place in ("Leeds", "Bath", "York", "Hull", "Derby", "Luton", "Ripon")
    for times in ("two", "three", "nine")
)


@pytest.fixture(scope="module")
def encode() -> Encode:
    return load_encoder()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    path = tmp_path_factory.mktemp("knowledge") / "notes.md"
    path.write_text("\n".join((*OTHERS, *OWN)), encoding="utf-8")

    def read(path: Path) -> tuple[list[Passage], str]:
        return [Passage(path.name, "Notes", line) for line in path.read_text(encoding="utf-8").splitlines()], ""

    index = open_index(None)
    index.renew(read, {path.name: path})
    yield index
    index.close()


def no_encoder() -> Encode:
    raise ImportError


@pytest.mark.parametrize(
    ("question", "held"),
    [("Where do you live?", "Rotterdam"), ("Who taught you to bake?", "Anna Lis"), ("Did you write it in Luton?", "")],
)
def test_it_answers_and_stays_silent_as_on_small_knowledge(
    index: Index, encode: Encode, question: str, held: str
) -> None:
    assert index.size() > 5 * CANDIDATES
    for load in (lambda: encode, no_encoder):
        found = LargeSearch(index, load).answering(question)
        assert held in found[0].text if held else not found


async def test_with_vectors_it_finds_what_is_asked_in_other_words(index: Index, encode: Encode) -> None:
    assert LargeSearch(index, lambda: encode).answering("Do you have any pets?") == ()
    await Embeddings(index, local(lambda: encode), "minilm").fill()
    found = LargeSearch(index, lambda: encode, by_meaning=True).answering("Do you have any pets?")
    assert "cats" in found[0].text


@pytest.mark.parametrize("question", ["", "?", "Wo?", "\x00\ud800", "x" * 4000, "zebra crossing"])
def test_a_question_that_finds_nothing_gets_nothing(index: Index, encode: Encode, question: str) -> None:
    assert LargeSearch(index, lambda: encode).answering(question) == ()
