"""Large knowledge is found by meaning where a provider's model or the local encoder makes vectors of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent.answers import Answers
from agent.calls import ModelCall
from agent.conversation import Conversation
from agent.finding.embeddings import LOCAL_BATCH, Embeddings, local
from agent.finding.encoder import Ended, LocalEncoder, Vectors
from agent.finding.index import Found, Index, open_index
from agent.library import MANY, Library, labels_of, passages_in, shelve
from agent.meaning import Meaning, open_meaning
from agent.notes import Notes
from agent.room import Room
from agent.settings import load_settings
from agent.toolkit import Toolkit
from tests.fakes.desk import OwnersDesk
from tests.fakes.server import Status, WireServer
from tests.shelves import library_of
from tests.test_answers import by_words

SMALL = Room(3_000, 1_000)
PETS = "# Home\n\nI am there a lot.\n\nI live with two cats.\n"


class EmbeddingServer(WireServer):
    """Texts on animals are near each other, and all others are."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def answer(self, path: str, payload: dict[str, Any]) -> Status:
        self.texts += payload["input"]
        near = [any(word in text for word in ("cat", "animal")) for text in payload["input"]]
        rows = [{"index": place, "embedding": [1.0, 0.1] if one else [0.1, 1.0]} for place, one in enumerate(near)]
        return Status(200, {"data": rows}, {"Content-Type": "application/json"})


@pytest.fixture
def server() -> Generator[EmbeddingServer]:
    with EmbeddingServer() as server:
        yield server


@pytest.fixture
def index(tmp_path: Path) -> Generator[Index]:
    index = open_index(tmp_path / "data")
    yield index
    index.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "knowledge"
    folder.mkdir()
    for number in range(40):
        text = f"# Project {number}\n\nThe lamp number {number} shines. " + "It took long and was worth it. " * 10
        (folder / f"project-{number:02}.md").write_text(text)
    (folder / "zoo.md").write_text(PETS)
    return folder


class House:
    """A library over a folder, as the app puts it together."""

    def __init__(self, folder: Path, index: Index, settings: dict[str, str]) -> None:
        self.questions: list[ModelCall] = []
        self.passages: list[ModelCall] = []
        self.meaning: Meaning = open_meaning(
            load_settings(settings), index, LocalEncoder(), self.questions.append, self.passages.append
        )
        self.library = Library(folder, index, lambda found: shelve(found, None, Toolkit(), SMALL), SMALL, self.search)

    @property
    def search(self) -> Embeddings | None:
        return self.meaning.search

    async def finds(self, question: str) -> list[str]:
        return [one.text for one in await self.library.found(question, Conversation())]


def provided(server: WireServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{server.url}/v1", "EMBEDDINGS_MODEL": "embed-1"}


async def until_filled(house: House, server: EmbeddingServer, text: str) -> asyncio.Task[None]:
    """Keeps up in the background until a text has its vector."""
    task = asyncio.create_task(house.library.keep_up())
    search = house.search
    assert search
    await asyncio.to_thread(server.wait_until, lambda: any(text in one for one in server.texts), text)
    await search.fill()  # returns when the one that is under way has
    return task


async def test_what_is_asked_in_other_words_is_found_with_the_providers_vectors(
    folder: Path, index: Index, server: EmbeddingServer
) -> None:
    house = House(folder, index, provided(server))
    assert "I live with two cats." not in await house.finds("Any animals?")
    task = await until_filled(house, server, "two cats")
    assert (await house.finds("Any animals?"))[0] == "I live with two cats."
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await house.meaning.close()
    assert len(house.questions) == 2
    assert {call.outcome for call in house.passages} == {"answered"}
    assert sum(call.tokens for call in house.passages) > 100
    assert house.passages[0].provider == server.url.removeprefix("http://")


async def test_an_edit_gets_its_vectors_too(folder: Path, index: Index, server: EmbeddingServer) -> None:
    house = House(folder, index, provided(server))
    task = await until_filled(house, server, "two cats")
    (folder / "zoo.md").write_text(PETS.replace("two cats", "three cats and a kennel"))
    await asyncio.to_thread(server.wait_until, lambda: any("kennel" in one for one in server.texts), "the new text")
    assert len([text for text in server.texts if "lamp number 7 " in text]) == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await house.meaning.close()


async def test_words_are_enough_where_the_provider_has_no_embeddings(
    folder: Path, index: Index, server: EmbeddingServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.fail_always(Status(404, {"error": {"message": "no such model: sk-secret"}}))
    house = House(folder, index, provided(server))
    for _ in range(2):
        assert (await house.finds("How many cats?"))[0] == "I live with two cats."
    lines = [line.getMessage() for line in caplog.records if line.levelno >= logging.WARNING]
    assert len([line for line in lines if "by words alone for now" in line]) == 1
    assert not any("secret" in line for line in lines)
    assert [call.outcome for call in house.questions] == ["failed", "failed"]
    assert sum(call.tokens for call in house.questions) == 0
    await house.meaning.close()


async def test_without_the_setting_no_text_leaves_for_embeddings(
    folder: Path, index: Index, server: EmbeddingServer
) -> None:
    house = House(folder, index, {"OPENAI_BASE_URL": f"{server.url}/v1"})
    assert (await house.finds("How many cats?"))[0] == "I live with two cats."
    assert house.search is None
    assert server.requests == []


async def test_without_a_provider_nothing_leaves_whatever_is_set(
    folder: Path, index: Index, server: EmbeddingServer
) -> None:
    house = House(folder, index, {"EMBEDDINGS_MODEL": "embed-1"})
    assert house.meaning.remote is None
    assert house.search is not None
    assert server.requests == []


class Slow:
    """A search by meaning whose filling never ends by itself."""

    def __init__(self) -> None:
        self.filling = asyncio.Queue[None]()
        self.cancelled = 0

    async def find(self, question: str, context: str = "", limit: int = 8) -> tuple[Found, ...]:
        return ()

    async def fill(self) -> int:
        self.filling.put_nowait(None)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return 0


async def test_filling_begins_anew_with_each_edit_and_ends_with_the_app(folder: Path, index: Index) -> None:
    slow = Slow()
    library = Library(folder, index, lambda found: shelve(found, None, Toolkit(), SMALL), SMALL, slow)
    async with asyncio.timeout(20):
        task = asyncio.create_task(library.keep_up())
        await slow.filling.get()
        (folder / "zoo.md").write_text("# Home\n\nI moved.\n")
        await slow.filling.get()
        assert slow.cancelled == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert slow.cancelled == 2


async def test_knowledge_that_fits_whole_is_not_embedded(tmp_path: Path, index: Index) -> None:
    (tmp_path / "me").mkdir()
    (tmp_path / "me" / "zoo.md").write_text(PETS)
    slow = Slow()
    library = Library(
        tmp_path / "me", index, lambda found: shelve(found, None, Toolkit(), SMALL), Room(16_000, 0), slow
    )
    renewed = library.renewals()
    keeping = asyncio.create_task(library.keep_up())
    async with asyncio.timeout(20), aclosing(renewed):
        (tmp_path / "me" / "zoo.md").write_text("# Home\n\nI moved.\n")
        await anext(renewed)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert slow.filling.empty()


async def test_the_local_encoder_leaves_alone_what_would_take_it_too_long(folder: Path, index: Index) -> None:
    library_of(folder, index, SMALL)
    assert await Embeddings(index, local(by_words), "words", most=index.size() - 1).fill() == 0
    assert await Embeddings(index, local(by_words), "words", most=index.size()).fill() == index.size()


async def test_local_vectors_are_made_in_small_batches_and_stop_when_they_are_not_wanted() -> None:
    batches: list[int] = []
    first = asyncio.Event()
    loop = asyncio.get_running_loop()

    def encode(texts: Sequence[str]) -> Vectors:
        batches.append(len(texts))
        loop.call_soon_threadsafe(first.set)
        return np.ones((len(texts), 4), np.float32)

    task = asyncio.ensure_future(local(lambda: encode)([f"text {number}" for number in range(8000)]))
    await first.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert max(batches) == LOCAL_BATCH
    assert len(batches) < 100


async def test_the_encoder_stops_between_two_batches_when_the_app_ends() -> None:
    encoder = LocalEncoder()
    encode = encoder.load()
    assert encode(["one text"]).shape == (1, 384)
    await encoder.close()
    with pytest.raises(Ended):
        encode(["another"])


async def test_the_keyless_model_finds_other_words_once_there_are_vectors(tmp_path: Path, index: Index) -> None:
    (tmp_path / "few").mkdir()
    for number in range(24):
        text = f"# Project {number}\n\nThe lamp number {number} shines over a {'very ' * 20} long wall of stone.\n"
        (tmp_path / "few" / f"project-{number}.md").write_text(text)
    (tmp_path / "few" / "zoo.md").write_text(PETS)
    house = House(tmp_path / "few", index, {})
    assert house.library.shelf.is_indexed
    encoder = LocalEncoder()
    notes = Notes(house.library, Answers(OwnersDesk(), 1000), encoder.load, by_meaning=True)
    assert await notes.answering("Do you have any pets?") == ()
    assert house.search
    assert await house.search.fill() == index.size()
    assert [one.text for one in await notes.answering("Do you have any pets?")] == ["I live with two cats."]


async def test_many_short_passages_are_quoted_from_the_index(tmp_path: Path, index: Index) -> None:
    many = "\n\n".join(f"## Lamp {number}\n\nNumber {number} shines." for number in range(MANY + 1))
    (tmp_path / "me").mkdir()
    (tmp_path / "me" / "lamps.md").write_text(f"# Jo\n\nI build lamps.\n\n{many}\n\n## Pets\n\nI own two cats.\n")
    library = library_of(tmp_path / "me", index, Room(64_000, 2_000))
    assert library.shelf.is_whole
    assert library.shelf.is_indexed, "they would take the encoder minutes at each start"
    notes = Notes(library, Answers(OwnersDesk(), 1000), by_words)
    assert [one.text for one in await notes.answering("Do you own cats?")] == ["I own two cats."]


def test_of_knowledge_that_is_too_large_to_be_held_nothing_is_missing(tmp_path: Path, index: Index) -> None:
    folder = tmp_path / "large"
    folder.mkdir()
    (folder / "00-me.md").write_text("# Jo Example\n\nI build bridges.\n")
    for number in range(3):
        parts = (f"## Part {part}\n\nIt is about {number} {part}. {'word ' * 200}" for part in range(900))
        (folder / f"part-{number}.md").write_text("\n\n".join(parts))
    library = library_of(folder, index)
    shelf = library.shelf
    everything = index.passages()
    assert shelf.knowledge.is_part
    assert len(shelf.knowledge.passages) < len(everything)
    assert not shelf.is_whole
    assert shelf.profile.name == "Jo Example"
    assert "I build bridges." in shelf.persona
    assert shelf.labels() == labels_of(everything)
    assert [report.file for report in shelf.knowledge.reports] == sorted(path.name for path in folder.iterdir())
    held = passages_in(type(shelf.knowledge)(passages=everything))
    for label in (everything[1500].label, "part-2.md", "nothing.md", "00-me.md › Jo Example"):
        assert list(library.passages_of(label)) == list(held(label))
