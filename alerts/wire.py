"""One POST of JSON over HTTP that lets no address into an error or a log: addresses hold the owner's secrets."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import requests
import urllib3

T = TypeVar("T")

TIMEOUT_S = (5.0, 15.0)
"""To connect, and between two pieces of the answer; in seconds."""

MAX_ANSWER_BYTES = 1_000_000

_TALKATIVE = ("connection", "connectionpool", "poolmanager", "response", "util.retry")
"""Loggers of urllib3 that write addresses, some of them at WARNING."""


class Unreachable(Exception):
    """No whole answer came. The text says why, without the address."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: Mapping[str, Any]
    """The JSON object; empty where it was something else."""
    retry_after_s: float | None
    """How long to stay away, as the header or the body has it."""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


def post(
    session: requests.Session, url: str, payload: Mapping[str, Any], timeout_s: tuple[float, float] = TIMEOUT_S
) -> Answer:
    """Posts JSON and reads the answer. Redirects are not followed.

    Args:
        session: kept between calls, for its open connections.
        url: may hold a secret.
        payload: becomes the JSON body.
        timeout_s: see TIMEOUT_S.

    Raises:
        Unreachable: no whole answer came.
    """
    deadline = time.monotonic() + sum(timeout_s) + timeout_s[1]
    headers = {"Accept-Encoding": "identity"}
    try:
        with session.post(
            url, json=payload, headers=headers, timeout=timeout_s, allow_redirects=False, stream=True
        ) as response:
            return _answer(response, _read(response, deadline))
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        why = _why(error)
    # Outside of the except block: this error then has no context, which would hold the address.
    raise Unreachable(why)


async def apart(call: Callable[[], T]) -> T:
    """Waits for a blocking call in a thread of its own, which the end of the process does not wait for.

    `asyncio.to_thread` would hold up the end until the other side has answered.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(call())
        except Exception as error:
            done.set_exception(error)

    threading.Thread(target=run, name="call", daemon=True).start()
    return await asyncio.wrap_future(done)


def as_object(value: object) -> dict[str, Any]:
    """The JSON object, or an empty one where the other side sent something else."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def hide_in_logs(*secrets: str) -> None:
    """Keeps secrets out of what urllib3 logs, at any level."""
    for name in _TALKATIVE:
        logger = logging.getLogger(f"urllib3.{name}")
        hiding = next((one for one in logger.filters if isinstance(one, _Hiding)), None)
        if hiding is None:
            hiding = _Hiding()
            logger.addFilter(hiding)
        hiding.secrets.update(filter(None, secrets))


class _Hiding(logging.Filter):
    """Writes dots where a secret stood."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._hidden(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = self._hidden("".join(traceback.format_exception(*record.exc_info)))
            record.exc_info = None
        return True

    def _hidden(self, text: str) -> str:
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "…")
        return text


def _read(response: requests.Response, deadline: float) -> bytes:
    """The body. The time-out binds only each wait for a piece, so that a slow drip needs this deadline as well."""
    body = bytearray()
    while piece := response.raw.read1(65536):
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise Unreachable("its answer has no end")
        if time.monotonic() > deadline:
            raise TimeoutError
    return bytes(body)


def _answer(response: requests.Response, raw: bytes) -> Answer:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        value = None
    body = as_object(value)
    return Answer(response.status_code, body, _retry_after_s(body, response.headers.get("Retry-After")))


def _retry_after_s(body: Mapping[str, Any], header: str | None) -> float | None:
    told = as_object(body.get("parameters")).get("retry_after", body.get("retry_after", header))
    try:
        return max(0.0, float(told))
    except (TypeError, ValueError):  # nothing was told, or it was a date
        return None


def _why(error: BaseException) -> str:
    causes = list(_causes(error))

    def among(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if among(requests.exceptions.ProxyError):
        return "the proxy refused"
    if among(requests.exceptions.SSLError):
        return "its certificate is not trusted"
    if among(socket.gaierror):
        return "its name is not known here"
    if among(ConnectionRefusedError):
        return "the connection was refused"
    if among(TimeoutError, requests.Timeout, urllib3.exceptions.TimeoutError):
        return "it did not answer in time"
    if among(requests.exceptions.InvalidURL, UnicodeError):
        return "its address is not one"
    return "the connection broke off"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and all that it wraps, in whichever way."""
    waiting, seen = [error], set[int]()
    while waiting:
        cause = waiting.pop()
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        inner = [*cause.args, cause.__cause__, cause.__context__, getattr(cause, "reason", None)]
        waiting.extend(one for one in inner if isinstance(one, BaseException))
