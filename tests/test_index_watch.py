"""Changes in a folder are told when it has come to rest; a mount that is away for a moment is no change."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.finding.watching import Changes, Stamp, diff, stamps, watch

STAMPS = st.dictionaries(st.sampled_from("abcd"), st.builds(Stamp, st.integers(0, 2), st.integers(0, 2)))


@given(before=STAMPS, now=STAMPS)
def test_a_difference_tells_what_makes_the_one_the_other(before: dict[str, Stamp], now: dict[str, Stamp]) -> None:
    changes = diff(before, now)
    rest = {name: stamp for name, stamp in before.items() if name not in changes.removed}
    assert rest | {name: now[name] for name in (*changes.added, *changes.changed)} == now
    assert all(before[name] != now[name] for name in changes.changed)
    assert bool(changes) == (before != now)


def test_hidden_files_and_links_to_nothing_are_left_out(tmp_path: Path) -> None:
    for name in ("a.md", "sub/b.md", ".hidden/c.md", ".d.md", "~$e.docx"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    (tmp_path / "link.md").symlink_to(tmp_path / "nothing")
    assert set(stamps(tmp_path)) == {"a.md", "sub/b.md"}
    assert stamps(tmp_path / "nothing") == {}


def test_a_folder_that_cannot_be_looked_at_is_not_an_empty_one(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="symbolic links"):
        stamps(loop)


def watching(folder: Path, longest_s: float = 10) -> AsyncGenerator[Changes]:
    return watch(folder, stamps(folder), every_s=0.02, longest_s=longest_s)


async def test_files_that_come_change_and_go_are_told(tmp_path: Path) -> None:
    async with aclosing(watching(tmp_path)) as changes, asyncio.timeout(20):
        (tmp_path / "a.md").write_text("one")
        assert await anext(changes) == Changes(added=("a.md",))
        (tmp_path / "a.md").write_text("three")
        assert await anext(changes) == Changes(changed=("a.md",))
        (tmp_path / "sub").mkdir()
        (tmp_path / "a.md").rename(tmp_path / "sub" / "b.md")
        assert await anext(changes) == Changes(added=("sub/b.md",), removed=("a.md",))


async def test_a_file_replaced_by_one_of_the_same_size_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one")
    os.utime(tmp_path / "a.md", (1, 1))
    async with aclosing(watching(tmp_path)) as changes, asyncio.timeout(20):
        (tmp_path / "a.tmp").write_text("two")
        (tmp_path / "a.tmp").replace(tmp_path / "a.md")
        assert await anext(changes) == Changes(changed=("a.md",))


async def test_many_changes_at_once_are_told_once(tmp_path: Path) -> None:
    async with aclosing(watching(tmp_path)) as changes, asyncio.timeout(20):
        for number in range(50):
            (tmp_path / f"{number:02}.md").write_text("text")
        assert len((await anext(changes)).added) == 50


async def test_a_folder_that_never_rests_is_told_all_the_same(tmp_path: Path) -> None:
    async def write() -> None:
        for number in range(1_000_000):
            (tmp_path / "log.txt").write_text("x" * number)
            await asyncio.sleep(0)

    async with aclosing(watching(tmp_path, longest_s=0.1)) as changes, asyncio.timeout(20):
        writer = asyncio.create_task(write())
        assert await anext(changes)
        writer.cancel()


async def test_it_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    async def follow(changes: AsyncGenerator[Changes]) -> None:
        async with aclosing(changes):
            async for _ in changes:
                started.set()

    started = asyncio.Event()
    task = asyncio.create_task(follow(watching(tmp_path)))
    (tmp_path / "a.md").write_text("one")
    await asyncio.wait_for(started.wait(), 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_folder_may_go_and_come(tmp_path: Path) -> None:
    folder = tmp_path / "knowledge"
    async with aclosing(watching(folder)) as changes, asyncio.timeout(20):
        folder.mkdir()
        (folder / "a.md").write_text("one")
        assert await anext(changes) == Changes(added=("a.md",))
        folder.rename(tmp_path / "away")
        assert await anext(changes) == Changes(removed=("a.md",))


async def test_what_changed_before_the_first_look_is_told_too(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one")
    async with aclosing(watch(tmp_path, {}, every_s=0.02)) as changes, asyncio.timeout(20):
        assert await anext(changes) == Changes(added=("a.md",))
