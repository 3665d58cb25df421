"""Queries on turns."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime

from pydantic import ConfigDict, TypeAdapter
from sqlalchemy import Connection, func, insert, select, update

from agent.conversation import Conversation, OwnerWords, Passage, Reply, Step, Transcript, Turn
from store.answers import read_words
from store.tables import turns

_STEPS = TypeAdapter(tuple[Step, ...], config=ConfigDict(defer_build=True))
_FOUND = TypeAdapter(tuple[Passage, ...], config=ConfigDict(defer_build=True))

_BROKEN_OFF = (Step(Reply(finish="cut")),)
"""Stands for the answer to a message after which the process died."""


def read_transcript(connection: Connection, conversation_id: str) -> Transcript:
    rows = connection.execute(
        select(turns.c.number, turns.c.message, turns.c.steps, turns.c.liked, turns.c.stop)
        .where(turns.c.conversation_id == conversation_id, turns.c.replaced.is_(False))
        .order_by(turns.c.number)
    ).all()
    words = _in_step(read_words(connection, conversation_id), [row.number for row in rows])
    said = tuple(
        _turn_from_json(row.message, row.steps, "\n\n".join(one.text for one in after))
        for row, after in zip(rows, words, strict=True)
    )
    return Transcript(
        Conversation(said),
        numbers=tuple(row.number for row in rows),
        feedback=tuple(row.liked for row in rows),
        words=words,
        stops=tuple(row.stop or "" for row in rows),
    )


def _in_step(words: Sequence[OwnerWords], numbers: Sequence[int]) -> tuple[tuple[OwnerWords, ...], ...]:
    """The words that follow each turn. Those on a turn that was replaced follow the one before it, or the first."""
    places: list[list[OwnerWords]] = [[] for _ in numbers]
    for one in words if numbers else ():
        places[max(0, bisect_right(numbers, one.after) - 1)].append(one)
    return tuple(tuple(place) for place in places)


def open_turn(connection: Connection, conversation_id: str, message: str, now: datetime) -> int:
    last = connection.scalar(select(func.max(turns.c.number)).where(turns.c.conversation_id == conversation_id))
    number = 0 if last is None else last + 1
    connection.execute(
        insert(turns).values(conversation_id=conversation_id, number=number, message=message, opened=now)
    )
    return number


def close_turn(connection: Connection, conversation_id: str, number: int, turn: Turn, stop: str, now: datetime) -> None:
    _change_turn(connection, conversation_id, number, steps=_turn_to_json(turn), stop=stop, closed=now)


def set_feedback(connection: Connection, conversation_id: str, number: int, liked: bool | None) -> None:
    _change_turn(connection, conversation_id, number, liked=liked)


def drop_last_turn(connection: Connection, conversation_id: str) -> str | None:
    last = connection.execute(
        select(turns.c.number, turns.c.message)
        .where(turns.c.conversation_id == conversation_id, turns.c.replaced.is_(False))
        .order_by(turns.c.number.desc())
        .limit(1)
    ).one_or_none()
    if last is None:
        return None
    _change_turn(connection, conversation_id, last.number, replaced=True)
    return last.message


def _change_turn(connection: Connection, conversation_id: str, number: int, **values: object) -> None:
    changed = connection.execute(
        update(turns).where(turns.c.conversation_id == conversation_id, turns.c.number == number).values(**values)
    )
    if not changed.rowcount:
        # The conversation's id is what lets a visitor back in: it is no text for a log.
        raise LookupError(f"the conversation has no turn {number!r}")


def _turn_to_json(turn: Turn) -> str:
    """Its steps; where passages were found for it, an object of both."""
    # Not dump_json: it refuses the halves of surrogate pairs, which the column's type mends.
    steps = _STEPS.dump_python(turn.steps, mode="json")
    kept = {"steps": steps, "found": _FOUND.dump_python(turn.found, mode="json")} if turn.found else steps
    return json.dumps(kept, ensure_ascii=False)


def _turn_from_json(message: str, text: str | None, aside: str) -> Turn:
    if text is None:
        return Turn(message, _BROKEN_OFF, aside)
    if text.startswith("["):
        return Turn(message, _STEPS.validate_json(text), aside)
    kept = json.loads(text)
    return Turn(message, _STEPS.validate_python(kept["steps"]), aside, _FOUND.validate_python(kept["found"]))
