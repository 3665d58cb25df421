"""What every answer of the server says to browsers, and what is let in to Gradio."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Protocol

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.posts import API, Calls, Unfit, is_open


class Sessions(Protocol):
    """Who waits for answers."""

    def knows(self, session: str) -> bool: ...
    def session_of(self, event_id: str) -> str: ...


def content_security_policy(frame_ancestors: str) -> str:
    """Nothing from elsewhere: no script, style, picture, font, frame or request. Gradio's page needs inline scripts
    and styles; it needs no `eval` as long as no event has a `js=` and no gr.HTML is on the page."""
    return "; ".join(
        [
            "default-src 'self'",
            "script-src 'self' 'unsafe-inline'",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "media-src 'self' blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'self'",
            "object-src 'none'",
            f"frame-ancestors {frame_ancestors}",
        ]
    )


class Guard:
    """Middleware: headers on every answer, shut doors, and calls that Gradio can take. Streams pass piece by piece.

    Args:
        app: what is guarded.
        frame_ancestors: sites that may embed the page, as a Content-Security-Policy has them.
        closing: when it is set, open streams end as if their browsers had left.
        calls: what may be called.
        sessions: who may listen.
    """

    def __init__(
        self, app: ASGIApp, frame_ancestors: str, closing: asyncio.Event, calls: Calls, sessions: Sessions
    ) -> None:
        self._app = app
        self._closing = closing
        self._calls = calls
        self._sessions = sessions
        self._headers = {
            "Content-Security-Policy": content_security_policy(frame_ancestors),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        receive = _limited(receive, self._closing, self._calls.max_body)
        try:
            if scope["path"].startswith(API):
                scope, receive = await self._let_in(scope, receive)
            elif _length(scope) > self._calls.max_body:
                raise TOO_LARGE
        except Unfit as unfit:
            await _refuse(guarded, unfit)
        else:
            await self._app(scope, receive, guarded)

    async def _let_in(self, scope: Scope, receive: Receive) -> tuple[Scope, Receive]:
        """A request as Gradio gets it.

        Raises:
            Unfit: Gradio could not use it, or would fail at it.
        """
        path = scope["path"][len(API) :]
        if not is_open(path):
            raise Unfit("This is not available here.", 404)
        if scope["method"] == "POST":
            if _length(scope) > self._calls.max_body:
                raise TOO_LARGE
            return _with_body(scope, receive, self._calls.rebuilt(path, await _read(receive)))
        if path.startswith("/queue/data"):
            self._check(QueryParams(scope["query_string"]).get("session_hash", ""))
        elif path.startswith("/call/"):
            self._check(self._sessions.session_of(path.strip("/").rpartition("/")[2]))
        return scope, receive

    def _check(self, session: str) -> None:
        if not self._sessions.knows(session):
            raise Unfit("Nothing waits for this session here.", 404)


class Rewritten:
    """Middleware: the HTML of the page itself passes through a function; everything else is left alone."""

    def __init__(self, app: ASGIApp, rewrite: Callable[[str, str], str]) -> None:
        self._app = app
        self._rewrite = rewrite

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in ("", "/") or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        start: dict[str, Any] = {}
        body = bytearray()

        async def held(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body.extend(message.get("body", b""))
            if message.get("more_body"):
                return
            headers = MutableHeaders(scope=start)
            content = bytes(body)
            if headers.get("content-type", "").startswith("text/html"):
                content = self._rewrite(content.decode("utf-8"), origin_of(scope)).encode("utf-8")
                headers["Content-Length"] = str(len(content))
            await send(start)
            await send({"type": "http.response.body", "body": content})

        await self._app(scope, receive, held)


def origin_of(scope: Scope) -> str:
    """Scheme and host as the visitor's browser has them, behind a proxy too."""
    headers = Headers(scope=scope)
    scheme = headers.get("x-forwarded-proto", scope["scheme"]).split(",")[0].strip()
    host = headers.get("x-forwarded-host", headers.get("host", "")).split(",")[0].strip()
    return f"{scheme}://{host}{scope.get('root_path', '')}"


def _length(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def _limited(receive: Receive, closing: asyncio.Event, max_body: int) -> Receive:
    """Cuts off a body that never said how long it is, and whoever still listens when the server closes."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await _unless(closing, receive)
        seen += len(message.get("body", b""))
        return _GONE if seen > max_body else message

    return counted


async def _unless(closing: asyncio.Event, receive: Receive) -> Message:
    tasks = asyncio.ensure_future(receive()), asyncio.ensure_future(closing.wait())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].result() if tasks[0].done() else _GONE
    finally:
        for task in tasks:
            task.cancel()


_GONE: Message = {"type": "http.disconnect"}


async def _read(receive: Receive) -> bytes:
    """The body, no longer than the limit.

    Raises:
        Unfit: it is longer, or its sender left.
    """
    body = bytearray()
    while (message := await receive())["type"] == "http.request":
        body.extend(message.get("body", b""))
        if not message.get("more_body"):
            return bytes(body)
    raise TOO_LARGE


def _with_body(scope: Scope, receive: Receive, body: bytes) -> tuple[Scope, Receive]:
    """The request with another body; what comes after it is the sender's own."""
    headers = MutableHeaders(raw=list(scope["headers"]))
    headers["content-type"] = "application/json"
    headers["content-length"] = str(len(body))
    bodies: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return bodies.pop() if bodies else await receive()

    return {**scope, "headers": headers.raw}, replay


TOO_LARGE = Unfit("That is too long to be read here.", 413)


async def _refuse(send: Send, unfit: Unfit) -> None:
    """In the form of Gradio's own refusals."""
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": unfit.status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"detail": str(unfit)}).encode()})
