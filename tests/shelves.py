"""Libraries for tests: a folder and, where one is asked for, its index."""

from __future__ import annotations

from pathlib import Path

from agent.finding.index import Index
from agent.library import Library, shelve
from agent.room import Room
from agent.toolkit import Toolkit

ROOMY = Room(16_000, 2_000)


def library_of(folder: Path, index: Index | None = None, room: Room = ROOMY, toolkit: Toolkit | None = None) -> Library:
    return Library(folder, index, lambda found: shelve(found, None, toolkit or Toolkit(), room), room)
