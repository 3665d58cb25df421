"""What may be posted to Gradio: a call with the right number of values, rebuilt from what is understood of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

API = "/gradio_api"

MIN_BODY = 64 * 1024
"""Bytes of a request that are read in any case."""

BYTES_A_CHARACTER = 12
r"""Of a character in JSON, at most: two escapes such as `\ud83d`."""

_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_EVENT = re.compile(r"[0-9a-f]{32}")
_CALL = re.compile(r"/(queue/join|cancel|run|call)(?:/([A-Za-z0-9_-]{1,64}))?/?")
_OPEN = re.compile(
    r"/(info|startup-events|theme\.css|queue/(join|data|status)|cancel|reset|(run|call)/[A-Za-z0-9_-]{1,64}"
    r"|call/[A-Za-z0-9_-]{1,64}/[0-9a-f]{32}|heartbeat/[A-Za-z0-9_-]{1,64})/?"
)
"""Below Gradio's API: what the page and Gradio's clients use. The rest takes files, or runs what is not here."""


class Unfit(Exception):
    """The request is none of ours. The text is a sentence for whoever sent it."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class Function:
    """Something that can be called."""

    number: int
    name: str
    values: int
    """How many it takes."""


@dataclass(frozen=True, slots=True)
class Calls:
    """What can be called, by number and by name."""

    functions: tuple[Function, ...]
    max_message_chars: int

    @property
    def max_body(self) -> int:
        """The largest request that is read, in bytes."""
        return max(MIN_BODY, self.max_message_chars * BYTES_A_CHARACTER + 4096)

    def rebuilt(self, path: str, body: bytes) -> bytes:
        """The body of a call as Gradio gets it: values that are no text are null, unknown fields are left out.

        Args:
            path: below Gradio's API.
            body: as it was posted.

        Raises:
            Unfit: nothing can be called by it.
        """
        match = _CALL.fullmatch(path)
        if not match:
            return body
        posted = _object(body)
        session = _session(posted.get("session_hash"), needed=match[1] in ("queue/join", "cancel"))
        if match[1] == "cancel":
            built = {"event_id": _event(posted.get("event_id")), "fn_index": _number(posted.get("fn_index"))}
        else:
            function = self._function(match[2], None if match[1] == "call" else posted.get("fn_index"))
            built = {"data": _values(posted.get("data"), function), "fn_index": function.number}
        return json.dumps(built | session).encode()

    def _function(self, name: str | None, number: object) -> Function:
        """Named in the path, or by its number in the body; the page's way to call by number is `run/predict`."""
        for function in self.functions:
            if function.name == name if number is None else function.number == number and not isinstance(number, bool):
                return function
        raise Unfit("There is no such call.", 404)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        posted = json.loads(body)
    except (ValueError, RecursionError):
        posted = None
    if not isinstance(posted, dict):
        raise Unfit("This is no JSON object.")
    return cast(dict[str, Any], posted)


def _session(session: object, *, needed: bool) -> dict[str, str]:
    if session is None and not needed:
        return {}
    if not isinstance(session, str) or not _SESSION.fullmatch(session):
        raise Unfit("session_hash must be 1 to 64 letters, digits, hyphens or underscores.")
    return {"session_hash": session}


def _event(event: object) -> str:
    if not isinstance(event, str) or not _EVENT.fullmatch(event):
        raise Unfit("event_id must be one that was given out here.")
    return event


def _number(number: object) -> int:
    if not isinstance(number, int):
        raise Unfit("fn_index must be a whole number.")
    return number


def _values(data: object, function: Function) -> list[str | None]:
    values = cast(list[object], data) if isinstance(data, list) else []
    if len(values) != function.values:
        raise Unfit(f"data must be a list with {function.values} in it.")
    return [value if isinstance(value, str) else None for value in values]


def is_open(path: str) -> bool:
    """Something is here for strangers, below Gradio's API."""
    return bool(_OPEN.fullmatch(path))
