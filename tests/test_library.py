"""The owner's files as they are at present: whole in requests or found for each message, and never out of date."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import aclosing
from pathlib import Path

import pytest

from agent.conversation import Conversation, Reply, Step, Turn
from agent.finding.index import Index, open_index
from agent.library import Library
from agent.room import Room
from tests.shelves import library_of

SMALL = Room(3_000, 1_000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "knowledge"
    folder.mkdir()
    (folder / "cv.md").write_text("# Jo Example\n\nI build bridges.\n\n## Work\n\nAt Northwind since 2019.\n")
    return folder


@pytest.fixture
def index(tmp_path: Path) -> Generator[Index]:
    index = open_index(tmp_path / "data")
    yield index
    index.close()


def write_much(folder: Path) -> None:
    for number in range(40):
        text = f"# Project {number}\n\nThe lamp number {number} shines. " + "It took long and was worth it. " * 10
        (folder / f"project-{number:02}.md").write_text(text)
    (folder / "horses.md").write_text(
        "# Free time\n\nI am outside a lot.\n\nOn Sundays I ride a grey mare called Daisy.\n"
    )


def said(message: str, answer: str) -> Conversation:
    return Conversation((Turn(message, (Step(Reply(answer)),)),))


async def test_small_knowledge_goes_whole_into_every_request(folder: Path, index: Index) -> None:
    library = library_of(folder, index)
    assert library.shelf.is_whole
    assert "At Northwind since 2019." in library.shelf.persona
    assert library.shelf.known == {"cv.md", "cv.md › Jo Example", "cv.md › Jo Example › Work"}
    assert await library.found("Where do you work?", Conversation()) == ()


async def test_of_large_knowledge_the_core_stays_and_the_rest_is_found(folder: Path, index: Index) -> None:
    write_much(folder)
    library = library_of(folder, index, SMALL)
    assert not library.shelf.is_whole
    assert "I build bridges." in library.shelf.persona
    assert "Daisy" not in library.shelf.persona
    found = await library.found("Do you ride?", Conversation())
    assert [one.label for one in found[:1]] == ["horses.md › Free time"]
    assert sum(len(one.text) for one in found) <= SMALL.for_found * 3


async def test_what_stands_in_the_persona_is_not_sent_again(folder: Path, index: Index) -> None:
    write_much(folder)
    found = await library_of(folder, index, SMALL).found("Who builds bridges at Northwind?", Conversation())
    assert "cv.md" not in {one.file for one in found}


async def test_a_question_that_follows_up_is_searched_with_what_was_said(folder: Path, index: Index) -> None:
    write_much(folder)
    library = library_of(folder, index, SMALL)
    found = await library.found("And what is her name?", said("Do you ride a mare?", "Yes, on Sundays."))
    assert "horses.md" in {one.file for one in found}


async def after_edit(library: Library, edit: Callable[[], object]) -> None:
    """Waits until the library has read the folder again."""
    async with asyncio.timeout(20), aclosing(library.renewals()) as renewals:
        edit()
        await anext(renewals)


@pytest.mark.parametrize("is_large", [False, True])
async def test_an_edit_is_live_within_seconds(folder: Path, index: Index, is_large: bool) -> None:
    if is_large:
        write_much(folder)
    library = library_of(folder, index, SMALL if is_large else Room(16_000, 2_000))
    await after_edit(library, lambda: (folder / "cv.md").write_text("# Jo Example\n\nI build towers now.\n"))
    assert "I build towers now." in library.shelf.persona
    assert "I build bridges." not in library.shelf.persona


async def test_a_file_that_is_taken_away_is_known_no_longer(folder: Path, index: Index) -> None:
    write_much(folder)
    library = library_of(folder, index, SMALL)
    await after_edit(library, (folder / "horses.md").unlink)
    assert "horses.md" not in {one.file for one in await library.found("Do you ride?", Conversation())}


def test_a_label_leads_to_its_passages(folder: Path) -> None:
    library = library_of(folder)
    assert [one.text for one in library.passages_of("cv.md › Jo Example › Work")] == ["At Northwind since 2019."]
    assert [one.text for one in library.passages_of("cv.md")] == ["I build bridges.", "At Northwind since 2019."]
    assert list(library.passages_of("secret.md")) == []


def test_reports_outlive_a_restart(folder: Path, tmp_path: Path) -> None:
    write_much(folder)
    (folder / "empty.md").write_text("")
    (folder / "big.md").write_text("# Long\n\n" + "The lamp shines over the harbour at night. " * 50_000)
    lines: list[list[str]] = []
    for _ in range(2):
        index = open_index(tmp_path / "data")
        lines.append([report.line() for report in library_of(folder, index, SMALL).shelf.knowledge.reports])
        index.close()
    assert lines[0] == lines[1]
    assert any(line.startswith("empty.md: skipped: empty") for line in lines[0])
    assert any(line.startswith("big.md: read, ") for line in lines[0])


def test_without_a_folder_there_is_a_sentence(tmp_path: Path) -> None:
    assert "there is no folder" in library_of(tmp_path / "nowhere").shelf.knowledge.problem
