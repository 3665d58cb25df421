"""Search by meaning beside words: what it adds, and that words remain when vectors fail."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent.contract import ModelError
from agent.finding.embeddings import BATCH, Embeddings, local
from agent.finding.encoder import LocalEncoder
from agent.finding.fusing import CANDIDATES, fused, read_sketches, unit
from agent.finding.index import Index, open_index
from agent.finding.index_file import IndexFile
from agent.knowledge import Passage
from agent.model import Embedder, open_embedder
from tests.fakes.server import Fault, Hangup, Status, WireServer

PETS = {"a.md": "I live with two cats.\nI row on the river.", "b.md": "My bank is Kestrel.\nI bake rye bread."}


def read(path: Path) -> tuple[list[Passage], str]:
    return [Passage(path.name, "", line) for line in path.read_text(encoding="utf-8").splitlines()], ""


def fill(folder: Path, index: Index, texts: dict[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    index.renew(read, {path.name: path for path in sorted(folder.iterdir())})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "knowledge"


@pytest.fixture
def index(tmp_path: Path, folder: Path) -> Iterator[Index]:
    index = open_index(tmp_path / "data")
    fill(folder, index, PETS)
    yield index
    index.close()


class Model:
    """Vectors that are near when the texts are about the same of four things."""

    THINGS = ("cat pet animal", "row river boat sport", "bank money ledger", "bake bread food")

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.fault: Exception | None = None
        self.width = 16
        self.late = asyncio.Event()
        self.late.set()

    async def __call__(self, texts: Sequence[str]) -> object:
        self.asked.append(list(texts))
        await self.late.wait()
        if self.fault:
            raise self.fault
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        about = [any(word in text.lower() for word in thing.split()) for thing in self.THINGS]
        return [float(about[place % 4]) - 0.5 for place in range(self.width)]


@pytest.fixture
def model() -> Model:
    return Model()


def meaning(index: Index, model: Model, question_s: float = 5, pauses_s: Sequence[float] = ()) -> Embeddings:
    return Embeddings(index, model, "things-1", question_s, pauses_s)


async def texts(embeddings: Embeddings, question: str, context: str = "") -> list[str]:
    return [found.passage.text for found in await embeddings.find(question, context)]


async def test_what_is_asked_in_other_words_is_found_by_its_meaning(index: Index, model: Model) -> None:
    embeddings = meaning(index, model)
    assert await texts(embeddings, "Any animals?") == []
    assert await embeddings.fill() == 4
    assert (await texts(embeddings, "Any animals?"))[0] == "I live with two cats."
    assert (await texts(embeddings, "Kestrel"))[0] == "My bank is Kestrel.", "words still count"


async def test_a_question_that_follows_up_is_embedded_with_what_was_said_before(index: Index, model: Model) -> None:
    embeddings = meaning(index, model)
    await embeddings.fill()
    assert (await texts(embeddings, "And what else?", "Which sport do you do?"))[0] == "I row on the river."


async def test_only_new_passages_are_embedded_even_after_a_restart(
    tmp_path: Path, folder: Path, index: Index, model: Model
) -> None:
    await meaning(index, model).fill()
    index.close()
    model.asked.clear()
    again = open_index(tmp_path / "data")
    embeddings = meaning(again, model)
    assert await embeddings.fill() == 0
    fill(folder, again, {"renamed.md": PETS["a.md"], "b.md": "My bank is Kestrel.\nI keep an animal."})
    assert await embeddings.fill() == 1
    assert model.asked == [["I keep an animal."]]
    again.close()


async def test_vectors_of_passages_that_went_are_dropped(index: Index, folder: Path, model: Model) -> None:
    embeddings = meaning(index, model)
    await embeddings.fill()
    fill(folder, index, {"a.md": PETS["a.md"]})
    assert sorted(await texts(embeddings, "bread")) == sorted(PETS["a.md"].splitlines())
    fill(folder, index, PETS)
    assert await embeddings.fill() == 2


async def test_another_model_drops_the_vectors_of_the_last(index: Index, model: Model) -> None:
    await meaning(index, model).fill()
    other = Model()
    other.width = 24
    embeddings = Embeddings(index, other, "things-2", question_s=5, pauses_s=())
    assert await embeddings.fill() == 4
    assert (await texts(embeddings, "Any animals?"))[0] == "I live with two cats."


def _refuse(model: Model) -> None:
    model.fault = ModelError("things: HTTP 429: too many requests")


def _crash(model: Model) -> None:
    model.fault = RuntimeError("secret")


def _be_narrow(model: Model) -> None:
    model.width = 8


def _be_late(model: Model) -> None:
    model.late.clear()


@pytest.mark.parametrize("break_it", [_refuse, _crash, _be_narrow, _be_late])
async def test_words_remain_when_vectors_fail_and_the_log_says_it_once(
    index: Index, model: Model, break_it: Callable[[Model], object], caplog: pytest.LogCaptureFixture
) -> None:
    await meaning(index, model).fill()
    embeddings = meaning(index, model, question_s=0.1)
    break_it(model)
    for _ in range(3):
        assert "My bank is Kestrel." in await texts(embeddings, "What is your bank?")
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    if model.width == 8:
        assert lines == [], "a question's vector of another width is of no use, and no harm"
    else:
        assert len(lines) == 1
        assert "by words alone for now" in lines[0]
        assert "secret" not in lines[0]


async def test_passages_are_tried_again_and_none_is_asked_for_twice(index: Index, model: Model) -> None:
    model.fault = ModelError("things: HTTP 429: too many requests")
    embeddings = meaning(index, model, pauses_s=(0, 0))
    assert await embeddings.fill() == 0
    assert len(model.asked) == 3
    model.fault = None
    assert await embeddings.fill() == 4


@pytest.mark.parametrize(
    "sent", [[], [[1.0, 2.0]] * 3, [[float("nan")] * 4] * 4, "vectors", None, [[1.0], [1.0, 2.0], [1.0], [1.0]]]
)
async def test_what_is_no_vector_for_each_text_is_not_kept(
    index: Index, sent: object, caplog: pytest.LogCaptureFixture
) -> None:
    async def embed(_: Sequence[str]) -> object:
        return sent

    embeddings = Embeddings(index, embed, "things-1", question_s=5, pauses_s=())
    assert await embeddings.fill() == 0
    assert "embeddings fail" in caplog.text
    assert await texts(embeddings, "Kestrel") == ["My bank is Kestrel."]


async def test_many_passages_go_in_batches(index: Index, folder: Path, model: Model) -> None:
    fill(folder, index, {"many.md": "\n".join(f"Cat number {number}." for number in range(150))})
    assert await meaning(index, model).fill() == 150
    assert [len(batch) for batch in model.asked] == [BATCH, BATCH, 150 - 2 * BATCH]


async def test_until_most_passages_have_vectors_words_decide_alone(index: Index, folder: Path, model: Model) -> None:
    embeddings = meaning(index, model)
    await embeddings.fill()
    fill(folder, index, PETS | {"c.md": "\n".join(f"I was in {number} films." for number in range(50))})
    assert await texts(embeddings, "Any animals?") == []


async def test_the_local_encoder_makes_the_vectors_too(index: Index) -> None:
    embeddings = Embeddings(index, local(LocalEncoder().load), "minilm", question_s=30, pauses_s=())
    assert await embeddings.fill() == 4
    assert (await texts(embeddings, "Do you have any pets?"))[0] == "I live with two cats."


def test_the_nearest_by_sketch_and_exact_are_the_nearest_of_all(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    centres = rng.normal(size=(60, 384))
    rows = unit(centres[rng.integers(0, 60, 3000)] + rng.normal(size=(3000, 384)))
    path = tmp_path / "many.md"
    path.write_text("\n".join(f"text {number}" for number in range(len(rows))), encoding="utf-8")
    file = IndexFile(None, "")
    index = Index(file)
    index.renew(read, {path.name: path})
    places = index.without_vector("s", 0, len(rows))
    index.keep_vectors("s", [digest for _, digest, _ in places], rows)
    assert len(rows) > CANDIDATES
    with file.reading() as connection:
        sketches = read_sketches(connection, 0)
        for question in unit(rows[::300] + 0.03 * rng.normal(size=(10, 384))):
            exact = np.argsort(-(rows @ question))[:10] + 1
            assert len({*exact.tolist()} & {*sketches.nearest(connection, question, 10)}) >= 9
        assert sketches.nearest(connection, unit([[1.0] * 1536])[0], 5) == []
    index.close()


def test_ranks_are_fused_so_that_what_both_know_comes_first() -> None:
    assert list(fused([1, 2, 3], [4, 2, 5])) == [2, 4, 5, 1, 3]
    assert list(fused([7, 8])) == [7, 8]
    assert fused([], []) == {}


class Provider(WireServer):
    """Answers requests for embeddings, the last text first."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict[str, Any]] = []

    def answer(self, path: str, payload: dict[str, Any]) -> Status:
        self.asked.append(payload)
        rows = [{"index": place, "embedding": [float(place), 1.0]} for place in range(len(payload["input"]))]
        return Status(200, {"data": rows[::-1]}, {"Content-Type": "application/json"})


@pytest.fixture
async def provider() -> AsyncIterator[tuple[Provider, Embedder]]:
    with Provider() as provider:
        embedder = open_embedder("embed-1", "key", f"{provider.url}/v1", timeout_s=5, max_retries=0)
        yield provider, embedder
        await embedder.close()


async def test_a_provider_is_asked_in_the_plainest_form_and_may_answer_in_any_order(
    provider: tuple[Provider, Embedder],
) -> None:
    server, embedder = provider
    assert await embedder(["a", "b"]) == [[0.0, 1.0], [1.0, 1.0]]
    assert server.asked == [{"model": "embed-1", "input": ["a", "b"]}]
    assert server.requests == ["POST /v1/embeddings"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Status(401, {"error": {"message": "key sk-secret"}}), "HTTP 401"),
        (Status(429, {"error": {"message": "slow down"}}), "HTTP 429"),
        (Status(200, {"data": [{"index": 0}]}, {"Content-Type": "application/json"}), "sent no vectors"),
        (Status(200, [], {"Content-Type": "application/json"}), "sent no vectors"),
        (Status(200, "<html>", {"Content-Type": "text/html"}), "sent no vectors"),
        (Status(200, "{", {"Content-Type": "application/json"}), "embed-1: "),
        (Hangup(), "embed-1: "),
    ],
)
async def test_what_a_provider_does_wrong_is_told_without_its_words(
    provider: tuple[Provider, Embedder], answer: Fault, told: str
) -> None:
    server, embedder = provider
    server.fail_always(answer)
    with pytest.raises(ModelError, match=told) as raised:
        await embedder(["a"])
    assert "secret" not in str(raised.value)
