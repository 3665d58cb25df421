"""The file of the index: shared by processes, and never in the way when it is damaged, gone or cannot be written."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.finding.index import FILE_NAME, Index, open_index
from agent.finding.index_file import MOST_REPAIRS
from agent.knowledge import Passage

TEXTS = [f"I keep {number} bees near the river." for number in range(300)]


def read(path: Path) -> tuple[list[Passage], str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Passage(path.name, "Bees", line) for line in lines], ""


def files(folder: Path) -> dict[str, Path]:
    return {path.name: path for path in sorted((folder / "knowledge").iterdir())}


def found(index: Index) -> list[str]:
    return [each.passage.text for each in index.find("17 bees")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "bees.md").write_text("\n".join(TEXTS), encoding="utf-8")
    return tmp_path


@pytest.fixture
def index(folder: Path) -> Iterator[Index]:
    index = open_index(folder / "data")
    index.renew(read, files(folder))
    yield index
    index.close()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def rebuild(folder: Path) -> Index:
    index = open_index(folder / "data")
    index.renew(read, files(folder))
    return index


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _zero_the_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:-4096] = bytes(len(data) - 8192)
    path.write_bytes(data)


def _be_another_format(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()


def _be_someone_elses(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE photos (id)")
    connection.close()


def _be_empty(path: Path) -> None:
    path.write_bytes(b"")


def _be_noise(path: Path) -> None:
    path.write_bytes(b"no database " * 1000)


DAMAGES = [_be_empty, _be_noise, _cut, _zero_the_middle, _be_another_format, _be_someone_elses, Path.unlink]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_foreign_file_is_thrown_away_and_built_anew(
    folder: Path, index: Index, damage: Callable[[Path], object]
) -> None:
    index.close()
    damage(folder / "data" / FILE_NAME)
    again = rebuild(folder)
    assert found(again)[0] == TEXTS[17]
    assert again.problem == ""
    assert sorted(passage.text for passage in again.passages()) == sorted(TEXTS)
    again.close()
    last = open_index(folder / "data")
    assert not last.renew(read, files(folder)), "what was built anew was not kept"
    last.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1), noise=st.binary(min_size=1, max_size=3000))
def test_noise_anywhere_in_the_file_raises_nothing(folder: Path, place: float, noise: bytes) -> None:
    rebuild(folder).close()
    path = folder / "data" / FILE_NAME
    data = bytearray(path.read_bytes())
    start = int(place * (len(data) - 1))
    data[start : start + len(noise)] = noise
    path.write_bytes(data)
    again = rebuild(folder)
    again.find("17 bees")
    again.find("river", "near the river")
    again.close()
    path.unlink()


@pytest.mark.parametrize("in_a_new_thread", [False, True])
def test_a_file_that_is_deleted_while_it_is_used_is_built_again(
    folder: Path, index: Index, caplog: pytest.LogCaptureFixture, in_a_new_thread: bool
) -> None:
    for path in (folder / "data").iterdir():
        path.unlink()
    got: list[str] = []
    if in_a_new_thread:
        thread = threading.Thread(target=lambda: got.extend(found(index)))
        thread.start()
        thread.join()
    else:
        got = found(index)
    assert got[0] == TEXTS[17]
    assert warnings(caplog) == ["The index of the knowledge was lost or damaged: it is built again"]
    assert (folder / "data" / FILE_NAME).is_file()
    assert index.problem == ""


def test_a_file_that_is_damaged_while_it_is_used_is_built_again(folder: Path, index: Index) -> None:
    _close_and_overwrite(folder / "data" / FILE_NAME)
    got: list[str] = []
    thread = threading.Thread(target=lambda: got.extend(found(index)))
    thread.start()
    thread.join()
    assert got[0] == TEXTS[17]


def test_a_file_whose_texts_alone_are_damaged_is_built_again_and_kept(folder: Path, index: Index) -> None:
    index.close()
    path = folder / "data" / FILE_NAME
    data = bytearray(path.read_bytes())
    data[8 * 4096 :] = b"noise..." * ((len(data) - 8 * 4096) // 8)
    path.write_bytes(data)
    (folder / "knowledge" / "bees.md").write_text("\n".join(TEXTS[::-1]), encoding="utf-8")
    again = rebuild(folder)
    assert found(again)[0] == TEXTS[17]
    assert again.problem == ""
    again.close()


def test_an_index_that_another_process_has_replaced_is_used_from_then_on(folder: Path, index: Index) -> None:
    (folder / "data" / FILE_NAME).unlink()
    (folder / "knowledge" / "goats.md").write_text("I milk goats.", encoding="utf-8")
    other = rebuild(folder)
    index.find("goats")
    index.renew(read, files(folder))
    assert [each.passage.text for each in index.find("goats")] == ["I milk goats."]
    (folder / "knowledge" / "goats.md").write_text("I milk cows.", encoding="utf-8")
    other.renew(read, files(folder))
    assert [each.passage.text for each in index.find("cows")] == ["I milk cows."]
    other.close()


def _close_and_overwrite(path: Path) -> None:
    for name in (f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)
    with path.open("r+b") as file:
        file.write(b"noise" * 4000)


def test_a_file_that_is_lost_again_and_again_is_given_up(
    folder: Path, index: Index, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(MOST_REPAIRS + 1):
        (folder / "data" / FILE_NAME).unlink()
        assert found(index)[0] == TEXTS[17]
    assert "again and again" in index.problem
    assert found(index)[0] == TEXTS[17]


def test_a_folder_that_cannot_be_made_leaves_the_index_in_memory_and_says_so(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "data").write_text("a file where the folder should be", encoding="utf-8")
    index = rebuild(folder)
    assert found(index)[0] == TEXTS[17]
    assert "is built in memory" in index.problem
    assert "check DATA_DIR" in index.problem
    assert warnings(caplog) == [f"The knowledge: {index.problem}"]
    index.close()


def test_many_threads_read_in_memory_and_from_the_file(folder: Path, index: Index) -> None:
    in_memory = open_index(None)
    in_memory.renew(read, files(folder))
    for each in (index, in_memory):
        with ThreadPoolExecutor(16) as pool:
            got = list(pool.map(found, [each] * 64))
        assert all(texts == got[0] and texts for texts in got)
    in_memory.close()


def test_readers_see_the_whole_of_a_file_before_or_after_a_renewal_and_nothing_between(
    folder: Path, index: Index
) -> None:
    stop = threading.Event()
    seen: set[int] = set()

    def look() -> None:
        while not stop.is_set():
            seen.add(len(index.passages()))

    thread = threading.Thread(target=look)
    thread.start()
    for size in (10, 300, 20, 250):
        (folder / "knowledge" / "bees.md").write_text("\n".join(TEXTS[:size]), encoding="utf-8")
        index.renew(read, files(folder))
    stop.set()
    thread.join()
    assert seen <= {300, 10, 20, 250}


def test_a_closed_index_finds_nothing_and_does_not_come_back(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    index = rebuild(folder)
    index.close()
    assert found(index) == []


def _work(folder: Path, start: Barrier, results: multiprocessing.Queue[tuple[int, int, str]]) -> None:
    start.wait()
    index = open_index(folder / "data")
    index.renew(read, files(folder))
    results.put((len(index.passages()), len(found(index)), index.problem))
    index.close()


def test_processes_that_start_at_once_share_one_index(folder: Path) -> None:
    for number in range(20):
        text = "".join(f"I gave {number} jars to {other} people.\n" for other in range(50))
        (folder / "knowledge" / f"{number}.md").write_text(text, encoding="utf-8")
    spawn = multiprocessing.get_context("spawn")
    start, results = spawn.Barrier(3), spawn.Queue()
    workers = [spawn.Process(target=_work, args=(folder, start, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    got = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert got == [(1300, 8, "")] * 3
    last = open_index(folder / "data")
    assert len(last.passages()) == 1300
    assert not last.renew(read, files(folder)).removed
    last.close()


def test_what_one_renews_another_finds(folder: Path, index: Index) -> None:
    other = open_index(folder / "data")
    (folder / "knowledge" / "goats.md").write_text("I milk goats.", encoding="utf-8")
    other.renew(read, files(folder))
    assert [each.passage.text for each in index.find("goats")] == ["I milk goats."]
    other.close()
