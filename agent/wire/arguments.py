"""The arguments of a call, as models write them: read where that is safe, refused where it would be a guess."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, cast

from agent.wire.loose_json import end_of_value, loads

MAX_ENCODINGS = 4
"""So often JSON in a string is decoded: models encode it twice, some three times."""

_FENCE = re.compile(r"```\w*\s*(.*?)\s*(?:```.*)?\Z", re.DOTALL)
_WRAPPERS = ("arguments", "parameters", "args", "input")


class Unreadable(ValueError):
    """Not JSON, or cut off: what was meant could only be guessed."""


def read_arguments(text: str, fields: Collection[str] = ()) -> dict[str, Any]:
    """The arguments as a dictionary; what is no object becomes one, so that validation can name what is missing.

    Args:
        text: as the model wrote it.
        fields: names of the tool's fields: a value by itself is that of the only one.

    Raises:
        Unreadable: see there.
    """
    value: Any = text
    for depth in range(MAX_ENCODINGS):
        if isinstance(value, str):
            written = value.strip()
            try:
                value = _value_in(written)
            except ValueError as error:
                if depth == 0 or written.startswith(("{", "[", "```")):
                    raise Unreadable("the arguments are not JSON") from error
                break
        elif isinstance(value, list) and len(cast(list[Any], value)) == 1:
            value = cast(list[Any], value)[0]
        else:
            break
    if isinstance(value, dict):
        return _unwrapped(cast(dict[str, Any], value), fields)
    if len(fields) == 1 and isinstance(value, str | int | float):
        return {next(iter(fields)): value}
    return {}


def _value_in(text: str) -> Any:
    """The value that a text begins with. Words behind it are not a part of it; another value is."""
    if fence := _FENCE.match(text):
        text = fence[1]
    if not text:
        return None
    if text[0] not in "{[":
        return loads(text)
    end = end_of_value(text, 0)
    if end is None:
        raise ValueError("cut off")
    value = loads(text[:end])
    rest = text[end:].strip()
    if rest.startswith(("{", "[")) and _value_in(rest) != value:
        raise ValueError("two values")
    return value


def _unwrapped(value: dict[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """Without nulls, which models send for "nothing", and out of the wrapping that some put around."""
    for name in _WRAPPERS:
        inner = value.get(name)
        if isinstance(inner, dict) and name not in fields and not set(value) & set(fields):
            value = cast(dict[str, Any], inner)
            break
    return {name: each for name, each in value.items() if each is not None}
