"""The owner's files as they are at present: read again whenever one changes, and searched for each message."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Protocol

from agent.conversation import Conversation
from agent.finding.index import Found, Index
from agent.finding.watching import Stamp, stamps, watch
from agent.knowledge import (
    FileReport,
    Knowledge,
    Passage,
    cut,
    files_in,
    load_knowledge,
    name_in,
    no_text_in,
    picture_in,
    read_file,
)
from agent.knowledge.child import Child
from agent.passages import fitting, inert
from agent.persona import Profile, core, profile, rules, whole
from agent.room import BYTES_PER_TOKEN, CORE_SHARE, Room, estimate_tokens, turn_tokens
from agent.toolkit import Toolkit

log = logging.getLogger(__name__)

SMALL_BYTES = 2_000_000
"""A folder up to this size is read as a whole at each start, in less than a second. Larger ones come from the index."""
MANY = 400
"""More passages than that are searched in the index, whole in requests or not: the keyless model encodes up to so many
at each start, in some ten seconds of the background."""
FILES, OF_EACH = 500, 200
"""Of knowledge that is too large to be held, so many passages of so many files tell what it is about."""
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
    labels: Callable[[], frozenset[str]]
    """Of all that there is; takes a moment the first time."""
    behind: Callable[[str], Sequence[Passage]]
    """What stands under a label; takes a moment."""
    is_whole: bool
    """All files stand in it; else passages are found for each message."""
    is_indexed: bool = False
    """The index holds the passages."""


def shelve(knowledge: Knowledge, owner_name: str | None, toolkit: Toolkit, room: Room) -> Shelf:
    """What the model is given of the files: all of them where they fit, else what says who this is."""
    shown = profile(knowledge, owner_name)
    opening = rules(shown.name, toolkit.tools.values())
    budget = room.for_files(opening)
    labels = cache(lambda: labels_of(knowledge.passages))
    part = "" if knowledge.is_part else whole(knowledge)
    is_whole = not knowledge.is_part and estimate_tokens(part) <= budget
    if is_whole:
        known = labels()
    else:
        first = next((one.file for one in knowledge.passages if one.heading), "")
        part, known = core(knowledge.passages, first, int(budget * CORE_SHARE))
    return Shelf(knowledge, shown, f"{opening}{part}", known, labels, passages_in(knowledge), is_whole)


class Meaning(Protocol):
    """What the library needs of a search by meaning."""

    async def find(self, question: str, context: str = "", limit: int = 8) -> tuple[Found, ...]: ...
    async def fill(self) -> int:
        """Makes the vectors that are missing; takes seconds to hours."""
        ...


class Library:
    """Owns the knowledge. It is read when it is built, which takes a while the first time for a large folder.

    Args:
        folder: the owner's files.
        index: over the passages of a folder that does not fit into every request; None: this machine has none.
        shelve: makes of the knowledge what the model is given.
        room: what a request holds.
        meaning: finds by meaning, too; None: by words alone.
    """

    def __init__(
        self,
        folder: Path,
        index: Index | None,
        shelve: Callable[[Knowledge], Shelf],
        room: Room,
        meaning: Meaning | None = None,
    ) -> None:
        self._folder = folder
        self.index = index
        self._shelve = shelve
        self._room = room
        self._meaning = meaning
        self._seen = _stamps(folder)
        self.shelf = self.read()

    def read(self) -> Shelf:
        """What the files say now; blocks."""
        size = sum(stamp.size for stamp in _stamps(self._folder).values())
        if self.index is None or size <= SMALL_BYTES:
            shelf = self._shelve(load_knowledge(self._folder))
            if self.index is None or (shelf.is_whole and len(shelf.knowledge.passages) <= MANY):
                return shelf
            self._renew(self.index)
            return replace(shelf, is_indexed=True)
        self._renew(self.index)
        shelf = self._shelve(self._indexed(self.index))
        return replace(shelf, labels=cache(self.index.labels), behind=self.index.under, is_indexed=True)

    def _renew(self, index: Index) -> None:
        with Child() as child:

            def read(path: Path) -> tuple[Sequence[Passage], str]:
                document, report = read_file(path, name_in(self._folder, path), child.read)
                return tuple(cut(document)) if document else (), json.dumps(asdict(report))

            index.renew(read, {name_in(self._folder, path): path for path in files_in(self._folder)})

    def _indexed(self, index: Index) -> Knowledge:
        """What the index holds: all of it where it may fit into a request, else the beginnings of the files."""
        contents = index.contents().values()
        is_part = sum(content.chars for content in contents) > self._room.context * BYTES_PER_TOKEN
        return Knowledge(
            passages=index.beginnings(FILES, OF_EACH) if is_part else index.passages(),
            reports=tuple(FileReport(**json.loads(content.note)) for content in contents if content.note),
            picture=picture_in(self._folder),
            is_part=is_part,
            problem="" if any(content.passages for content in contents) else no_text_in(self._folder),
        )

    async def keep_up(self) -> None:
        """Lets an edit to a file be known within seconds, and found by meaning some time later. Ends when it is
        cancelled."""
        filling = asyncio.create_task(self._fill())
        try:
            async for _ in self.renewals():
                await _cancelled(filling)  # what it has made is kept
                filling = asyncio.create_task(self._fill())
        finally:
            await _cancelled(filling)

    async def _fill(self) -> None:
        if not self._meaning or not self.shelf.is_indexed:
            return
        try:
            if made := await self._meaning.fill():
                log.info("Knowledge: %d passages more can be found by meaning", made)
        except Exception as error:
            log.exception("Knowledge: it is searched by words alone (%s)", type(error).__name__)

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
        """What goes along with a message; nothing where all files are in every request.

        Args:
            message: what the visitor says now.
            conversation: as it stands in the request: what was found before is not sent again.
        """
        shelf = self.shelf
        if shelf.is_whole or not self.index:
            return ()
        turns = conversation.turns[conversation.summarised :]
        last = conversation.turns[-1] if conversation.turns else None
        context = f"{last.message}\n{last.text}" if last else ""
        if self._meaning:
            found = await self._meaning.find(message, context, FIND)
        else:
            found = await asyncio.to_thread(self.index.find, message, context, FIND)
        sent = {passage for turn in turns for passage in turn.found}
        fresh = [
            one.passage for one in found if one.passage not in sent and inert(one.passage.text) not in shelf.persona
        ]
        before = estimate_tokens(shelf.persona + conversation.summary) + sum(map(turn_tokens, turns))
        said = estimate_tokens(message + (last.text if last else ""))
        room = self._room.for_found_behind(before, said) if last else self._room.for_found
        return tuple(fitting(fresh, room * BYTES_PER_TOKEN))

    @property
    def for_found(self) -> int:
        """So many tokens may go along with a message."""
        return 0 if self.shelf.is_whole or not self.index else self._room.for_found

    def passages_of(self, label: str) -> Sequence[Passage]:
        """What stands under a label: a file, or a file and its headings."""
        return self.shelf.behind(label)


def labels_of(passages: Sequence[Passage]) -> frozenset[str]:
    """What passages are called: by their files, and by their files and headings."""
    return frozenset(label for one in passages for label in (one.file, one.label))


def passages_in(knowledge: Knowledge) -> Callable[[str], Sequence[Passage]]:
    """What stands behind a label: a part of a file, or the file."""

    @cache
    def parts() -> Mapping[str, Sequence[Passage]]:
        found: dict[str, list[Passage]] = {}
        for passage in knowledge.passages:
            for label in dict.fromkeys((passage.label, passage.file)):
                found.setdefault(label, []).append(passage)
        return found

    return lambda label: parts().get(label, ())


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _stamps(folder: Path) -> Mapping[str, Stamp]:
    try:
        return stamps(folder)
    except OSError:
        return {}
