"""Tells when files in a folder have changed, by looking at their dates: that works on network mounts, too."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path

EVERY_S = 1.0
"""Between two looks. A look at a thousand files takes 13 ms of the processor, at a dozen 0.1 ms."""
LONGEST_S = 10.0
"""A folder that does not come to rest is reported after that time all the same."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a file's directory entry tells of its contents."""

    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Changes:
    """By the names of files; false where there are none."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def stamp_of(path: Path) -> Stamp:
    status = path.stat()
    return Stamp(status.st_size, status.st_mtime_ns)


def stamps(folder: Path) -> dict[str, Stamp]:
    """All files below a folder, by their paths in it; none where there is no folder. Hidden ones are left out.

    Raises:
        OSError: the folder is there and cannot be looked at, as when a network mount is away.
    """
    found: dict[str, Stamp] = {}
    for parent, folders, names in os.walk(folder, onerror=_unless_gone):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(parent, name)
            if name.startswith((".", "~$")):
                continue
            try:
                found[path.relative_to(folder).as_posix()] = stamp_of(path)
            except FileNotFoundError:
                continue  # gone between the two looks, or a link to nothing
    return found


def diff(before: Mapping[str, Stamp], now: Mapping[str, Stamp]) -> Changes:
    """Which files came, changed and went."""
    return Changes(
        added=tuple(sorted(now.keys() - before.keys())),
        changed=tuple(sorted(name for name in now.keys() & before.keys() if now[name] != before[name])),
        removed=tuple(sorted(before.keys() - now.keys())),
    )


async def watch(
    folder: Path, before: Mapping[str, Stamp] | None = None, every_s: float = EVERY_S, longest_s: float = LONGEST_S
) -> AsyncGenerator[Changes]:
    """Yields when files have changed and the folder has come to rest for one look. Ends when it is cancelled.

    Args:
        folder: may come and go.
        before: what is known already; else the first look is what changes are told from.
        every_s: between two looks.
        longest_s: how long to wait for a folder that keeps changing.
    """
    known = await _look(folder, {}) if before is None else before
    last = known
    waited = 0.0
    while True:
        await asyncio.sleep(every_s)
        now = await _look(folder, last)
        at_rest, last = now == last, now
        waited = waited + every_s if now != known else 0.0
        if now != known and (at_rest or waited >= longest_s):
            yield diff(known, now)
            known, waited = now, 0.0


async def _look(folder: Path, last: Mapping[str, Stamp]) -> Mapping[str, Stamp]:
    try:
        return await asyncio.to_thread(stamps, folder)
    except OSError:
        return last


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error
