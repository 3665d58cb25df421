"""The index over passages: what was given is found, whatever is asked, and only what changed is read again."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.finding.asking import expression
from agent.finding.index import Index, Renewal, open_index
from agent.finding.index_file import has_full_text
from agent.knowledge import Passage

CV = """
Marta › Work|I lead a team of six engineers and we wrote the booking platform.
Marta › Work|Before that I built a payment ledger in Go at Kestrel Bank.
Marta › Home|I live in Rotterdam with two cats.
Marta › Education|I studied naval architecture in Delft.
Marta › Skills|Kubernetes, Postgres, R and 東京大学で物理学を学んだ.
Marta › How do you do it?|With patience.
""".strip()


def read(path: Path) -> tuple[list[Passage], str]:
    """A line is a heading and a text."""
    lines = path.read_text(encoding="utf-8").splitlines()
    parts = [line.partition("|") for line in lines if line]
    return [Passage(path.name, heading, text) for heading, _, text in parts], f"{len(parts)} lines"


class Folder:
    """Files with dates that tick at each change, and what was read of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.mkdir(exist_ok=True)
        self.was_read: list[str] = []
        self._clock = 1_000_000_000

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text, encoding="utf-8")
        self._clock += 1
        os.utime(self.path / name, (self._clock, self._clock))

    def files(self) -> dict[str, Path]:
        return {path.name: path for path in sorted(self.path.iterdir())}

    def read(self, path: Path) -> tuple[list[Passage], str]:
        self.was_read.append(path.name)
        return read(path)

    def renew(self, index: Index) -> Renewal:
        self.was_read.clear()
        return index.renew(self.read, self.files())


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "knowledge")
    folder.write("cv.md", CV)
    return folder


@pytest.fixture
def index(tmp_path: Path, folder: Folder) -> Iterator[Index]:
    index = open_index(tmp_path / "data")
    folder.renew(index)
    yield index
    index.close()


def texts(index: Index, question: str, context: str = "") -> list[str]:
    return [found.passage.text for found in index.find(question, context)]


@pytest.mark.parametrize(
    ("question", "held"),
    [
        ("Where do you live?", "Rotterdam"),
        ("Who writes booking platforms?", "booking platform"),
        ("What are you building?", "payment ledger"),
        ("Do you know R?", "Kubernetes"),
        ("kubern", "Kubernetes"),
        ("物理学", "Kubernetes"),
        ("Rotterdàm", "Rotterdam"),
        ("How do you do it", "patience"),
        ("Tell me about your education", "Delft"),
    ],
)
def test_a_passage_is_found_by_any_form_of_its_words_and_by_its_heading(index: Index, question: str, held: str) -> None:
    assert held in texts(index, question)[0]


def test_a_passage_comes_with_its_place_and_an_id_that_lasts(index: Index, folder: Folder, tmp_path: Path) -> None:
    found = index.find("Rotterdam")[0]
    assert found.passage == Passage("cv.md", "Marta › Home", "I live in Rotterdam with two cats.")
    assert found.score > 0
    other = open_index(None)
    folder.write("cv.md", "Marta › Home|I live in Rotterdam with two cats.\nMarta › Home|Rotterdam, Rotterdam!")
    folder.renew(other)
    assert found.id in [each.id for each in other.find("live in Rotterdam")]
    other.close()


def test_a_match_in_a_heading_counts_more_than_one_in_the_text(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "k")
    folder.write("a.md", "Free time|I went to a talk on music once.\nMusic|I went to a talk on tea once in the city.")
    folder.write("b.md", "Other|" + "Nothing of the kind.\nOther|".join("abcdef"))
    index = open_index(None)
    folder.renew(index)
    assert index.find("music")[0].passage.heading == "Music"
    index.close()


def test_a_question_short_of_words_is_read_with_what_was_said_before(index: Index) -> None:
    before = "What do you do?\nI lead a team of engineers and we write a booking platform at work."
    assert texts(index, "And before that?") == []
    assert "booking" in texts(index, "And before that?", before)[0]
    assert "cats" in texts(index, "How many cats?", before)[0], "its own words count more"
    assert texts(index, "Where did you study naval architecture in Delft?", before) == [
        "I studied naval architecture in Delft."
    ]


def test_the_same_text_in_two_files_is_found_once(index: Index, folder: Folder) -> None:
    folder.write("old.md", CV)
    folder.renew(index)
    assert [found.passage.file for found in index.find("Rotterdam")] == ["cv.md"]


def test_only_files_that_changed_are_read(index: Index, folder: Folder) -> None:
    folder.write("b.md", "B|I row.")
    folder.write("c.md", "C|I swim.")
    assert folder.renew(index) == Renewal(read=("b.md", "c.md"))
    assert folder.was_read == ["b.md", "c.md"]
    assert not folder.renew(index)
    folder.write("b.md", "B|I row on the river.")
    (folder.path / "c.md").unlink()
    assert folder.renew(index) == Renewal(read=("b.md",), removed=("c.md",))
    assert texts(index, "river") == ["I row on the river."]
    assert texts(index, "swim") == []


def test_a_heading_that_is_no_more_finds_nothing(index: Index, folder: Folder) -> None:
    folder.write("cv.md", CV.replace("Marta › Home", "Irena › Haven"))
    folder.renew(index)
    assert texts(index, "home") == []
    assert len(texts(index, "marta")) == 5
    assert texts(index, "haven") == ["I live in Rotterdam with two cats."]


def test_a_term_stays_one_whatever_stands_in_it() -> None:
    assert expression(('a" OR "b', "c*")) == '"a"" OR ""b" OR "c*"'


def test_a_file_with_a_new_date_and_the_old_text_is_not_read(index: Index, folder: Folder) -> None:
    folder.write("cv.md", CV)
    assert not folder.renew(index)
    assert folder.was_read == []


def test_a_change_within_the_same_tick_of_the_clock_is_seen(index: Index, folder: Folder) -> None:
    path = folder.path / "quick.md"
    path.write_text("Q|I sail.", encoding="utf-8")
    folder.renew(index)
    status = path.stat()
    path.write_text("Q|I bike.", encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert folder.renew(index).read == ("quick.md",)
    assert texts(index, "bike") == ["I bike."]


def test_a_restart_reads_nothing_and_finds_the_same(tmp_path: Path, folder: Folder, index: Index) -> None:
    again = open_index(tmp_path / "data")
    assert not folder.renew(again)
    assert again.find("Where do you live?") == index.find("Where do you live?")
    assert again.contents() == index.contents()
    assert {name: content.note for name, content in again.contents().items()} == {"cv.md": "6 lines"}
    again.close()


def test_another_edition_reads_everything_again(tmp_path: Path, folder: Folder, index: Index) -> None:
    index.close()
    again = open_index(tmp_path / "data", edition="2")
    assert folder.renew(again).read == ("cv.md",)
    again.close()


def test_a_file_that_cannot_be_read_is_reported_and_tried_again(index: Index, folder: Folder) -> None:
    folder.write("b.md", "B|I row.")

    def broken(path: Path) -> tuple[list[Passage], str]:
        if path.name == "b.md":
            raise ValueError("secret")
        return read(path)

    assert index.renew(broken, folder.files()) == Renewal(failed=("b.md",))
    assert index.renew(broken, folder.files()) == Renewal(failed=("b.md",))
    assert folder.renew(index).read == ("b.md",)
    assert texts(index, "row") == ["I row."]


def test_a_missing_full_text_search_is_noticed() -> None:
    connection = sqlite3.connect(":memory:")
    assert has_full_text(connection)

    def authorize(action: int, *_: str | None) -> int:
        return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_CREATE_VTABLE else sqlite3.SQLITE_OK

    connection.set_authorizer(authorize)
    assert not has_full_text(connection)
    connection.close()


HOSTILE = [
    "", "?", '"', '""', "' OR 1=1 --", "NEAR(a b)", "AND", "NOT", "OR OR", "heading : cats", "cats*", "^cats", "-cats",
    "(cats", "cats)", "{heading text} : cats", "\x00", "\ud800", "a\x00b cats", "🙂🙂", "²³¼", "x" * 100_000,
    "cats " * 20_000, "?" * 100_000, "A. " * 33_000, "你" * 100_000, " ".join(f"word{i}" for i in range(20_000)),
    "और हिन्दी", "İstanbul ŉ ß", "C++ R # $ %", "…—“”", "\u200b\u202e",
]  # fmt: skip


@pytest.mark.parametrize("question", HOSTILE)
def test_whatever_is_asked_is_only_a_question(index: Index, question: str, caplog: pytest.LogCaptureFixture) -> None:
    for context in ("", question):
        assert len(index.find(question, context)) <= 8
    assert "Rotterdam" in texts(index, "Where do you live?")[0]
    assert [record.message for record in caplog.records] == []


@pytest.fixture(scope="module")
def shared() -> Iterator[Index]:
    with tempfile.TemporaryDirectory() as folder:
        index = open_index(None)
        files = Folder(Path(folder) / "k")
        files.write("cv.md", CV)
        files.renew(index)
        yield index
        index.close()


@settings(max_examples=300, deadline=None)
@given(question=st.text(st.characters(), max_size=200), context=st.text(st.characters(), max_size=200))
def test_no_text_raises_or_harms_the_index(shared: Index, question: str, context: str) -> None:
    shared.find(question, context)
    shared.find(f'"{question}" {question}*', context)
    assert texts(shared, "Rotterdam") == ["I live in Rotterdam with two cats."]


WORDS = ("river", "cello", "Delft", "ledger", "bees", "日本語", 'quo"te', "naïve", "")
LINES = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), max_size=4)
FILES = st.dictionaries(st.sampled_from(["a.md", "b.md", "sub c.md"]), LINES, max_size=3)


@settings(max_examples=40, deadline=None)
@given(versions=st.lists(FILES, min_size=1, max_size=4))
def test_after_any_renewals_exactly_the_current_passages_are_there(versions: list[Mapping[str, list[str]]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(Path(place) / "k")
        index = open_index(Path(place) / "data")
        for version in versions:
            for name in folder.files().keys() - version.keys():
                (folder.path / name).unlink()
            for name, lines in version.items():
                folder.write(name, "\n".join(f"H › {name}|{line}" for line in lines))
            folder.renew(index)
            wanted = [passage for path in folder.files().values() for passage in read(path)[0]]
            assert list(index.passages()) == wanted
            for word in WORDS[:5]:
                having = {passage for passage in wanted if word in passage.text}
                assert {found.passage for found in index.find(word, limit=50)} == having
        rebuilt = open_index(None)
        folder.renew(rebuilt)
        restarted = open_index(Path(place) / "data")
        for word in WORDS[:5]:
            assert {f.id for f in rebuilt.find(word)} == {f.id for f in restarted.find(word)}
        for each in (index, rebuilt, restarted):
            each.close()
