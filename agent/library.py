"""The owner's files as they are at present: read again whenever one changes, and searched for each message."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from agent.conversation import Conversation
from agent.index import Index
from agent.knowledge import (
    FileReport,
    Knowledge,
    Passage,
    cut,
    files_in,
    load_knowledge,
    name_in,
    picture_in,
    read_file,
)
from agent.knowledge.child import Child
from agent.passages import inert
from agent.persona import Profile, core, profile, rules, whole
from agent.room import BYTES_PER_TOKEN, CORE_SHARE, Room, estimate_tokens
from agent.toolkit import Toolkit
from agent.watching import Stamp, stamps, watch

log = logging.getLogger(__name__)

SMALL_BYTES = 2_000_000
"""A folder up to this size is read as a whole at each start, in less than a second. Larger ones come from the index."""
FIND = 12
"""Passages that are looked at for a message; as many of them go along as there is room for."""
MAX_NAMED = 5
"""Files that one line of the log names."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """What is known at one moment."""

    knowledge: Knowledge
    profile: Profile
    persona: str
    """The system message."""
    known: frozenset[str]
    """Labels of what stands in it."""
    labels: frozenset[str]
    """Of all that there is."""
    behind: Callable[[str], Sequence[Passage]]
    """What stands under a label."""
    is_whole: bool
    """All files stand in it; else passages are found for each message."""


def shelve(knowledge: Knowledge, owner_name: str | None, toolkit: Toolkit, room: Room) -> Shelf:
    """What the model is given of the files: all of them where they fit, else what says who this is."""
    shown = profile(knowledge, owner_name)
    opening = rules(shown.name, toolkit.tools.values())
    budget = room.for_files(opening)
    labels = frozenset(label for one in knowledge.passages for label in (one.file, one.label))
    part, known = whole(knowledge), labels
    is_whole = estimate_tokens(part) <= budget
    if not is_whole:
        first = next((one.file for one in knowledge.passages if one.heading), "")
        part, known = core(knowledge.passages, first, int(budget * CORE_SHARE))
    return Shelf(knowledge, shown, f"{opening}{part}", known, labels, passages_in(knowledge), is_whole)


class Library:
    """Owns the knowledge. It is read when it is built, which takes a while the first time for a large folder.

    Args:
        folder: the owner's files.
        index: over the passages of a folder that does not fit into every request; None: this machine has none.
        shelve: makes of the knowledge what the model is given.
        room: what a request holds.
    """

    def __init__(self, folder: Path, index: Index | None, shelve: Callable[[Knowledge], Shelf], room: Room) -> None:
        self._folder = folder
        self.index = index
        self._shelve = shelve
        self._room = room
        self._seen = _stamps(folder)
        self.shelf = self.read()

    def read(self) -> Shelf:
        """What the files say now; blocks."""
        size = sum(stamp.size for stamp in _stamps(self._folder).values())
        if self.index is None or size <= SMALL_BYTES:
            shelf = self._shelve(load_knowledge(self._folder))
            if self.index is None or shelf.is_whole:
                return shelf
            self._renew(self.index)
            return shelf
        return self._shelve(self._renew(self.index))

    def _renew(self, index: Index) -> Knowledge:
        with Child() as child:

            def read(path: Path) -> tuple[Sequence[Passage], str]:
                document, report = read_file(path, name_in(self._folder, path), child.read)
                return tuple(cut(document)) if document else (), json.dumps(asdict(report))

            index.renew(read, {name_in(self._folder, path): path for path in files_in(self._folder)})
        reports = [FileReport(**json.loads(content.note)) for content in index.contents().values() if content.note]
        return Knowledge(passages=index.passages(), reports=tuple(reports), picture=picture_in(self._folder))

    async def renewals(self) -> AsyncGenerator[Shelf]:
        """Reads again whenever a file changes, and yields what is known then. Ends when it is cancelled."""
        async for changes in watch(self._folder, self._seen):
            names = (*changes.added, *changes.changed, *changes.removed)
            try:
                self.shelf = await asyncio.to_thread(self.read)
            except Exception as error:
                # What was known stays. A file that is half written is complete at the next look.
                log.exception("Knowledge: it could not be read again (%s)", type(error).__name__)
                continue
            log.info("Knowledge: read again, for %s changed", ", ".join(map(repr, names[:MAX_NAMED])))
            for report in self.shelf.knowledge.reports:
                if report.file in names:
                    log.log(logging.WARNING if report.needs_care else logging.INFO, "%s", report.line())
            yield self.shelf

    async def found(self, message: str, conversation: Conversation) -> tuple[Passage, ...]:
        """What goes along with a message; nothing where all files are in every request."""
        shelf = self.shelf
        if shelf.is_whole or not self.index:
            return ()
        last = conversation.turns[-1] if conversation.turns else None
        context = f"{last.message}\n{last.text}" if last else ""
        found = await asyncio.to_thread(self.index.find, message, context, FIND)
        fresh = [one.passage for one in found if inert(one.passage.text) not in shelf.persona]
        return tuple(_fitting(fresh, self._room.for_found * BYTES_PER_TOKEN))

    def passages_of(self, label: str) -> Sequence[Passage]:
        """What stands under a label: a file, or a file and its headings."""
        return self.shelf.behind(label)


def passages_in(knowledge: Knowledge) -> Callable[[str], Sequence[Passage]]:
    """What stands behind a label: a part of a file, or the file."""
    parts: dict[str, list[Passage]] = {}
    for passage in knowledge.passages:
        for label in dict.fromkeys((passage.label, passage.file)):
            parts.setdefault(label, []).append(passage)
    return lambda label: parts.get(label, ())


def _stamps(folder: Path) -> Mapping[str, Stamp]:
    try:
        return stamps(folder)
    except OSError:
        return {}


def _fitting(passages: Sequence[Passage], max_bytes: int) -> list[Passage]:
    held: list[Passage] = []
    for passage in passages:
        max_bytes -= len(passage.label.encode()) + len(passage.text.encode())
        if max_bytes < 0 and held:
            break
        held.append(passage)
    return held
