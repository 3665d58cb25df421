"""What every answer of the server says to browsers, and which of Gradio's doors are shut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SHUT = ("/upload", "/process_recording", "/component_server", "/stream/", "/proxy=", "/vibe-", "/undo-vibe", "/dev/")
"""Below Gradio's API: they take files or run what this page does not have. Uploads are open to anyone otherwise."""

API = "/gradio_api"

MAX_BODY = 2 * 1024 * 1024
"""Largest request that is read, in bytes: messages are short, and Gradio reads a body whole."""


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
    """Middleware: headers on every answer, shut doors, and a limit on what is read. Streams pass piece by piece.

    Args:
        app: what is guarded.
        frame_ancestors: sites that may embed the page, as a Content-Security-Policy has them.
        closing: when it is set, open streams end as if their browsers had left.
    """

    def __init__(self, app: ASGIApp, frame_ancestors: str, closing: asyncio.Event) -> None:
        self._app = app
        self._closing = closing
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

        if _is_shut(scope["path"]):
            await _refuse(guarded, 404)
        elif _length(scope) > MAX_BODY:
            await _refuse(guarded, 413)
        else:
            await self._app(scope, _limited(receive, self._closing), guarded)


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


def _is_shut(path: str) -> bool:
    return path.startswith(API) and path[len(API) :].startswith(SHUT)


def _length(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def _limited(receive: Receive, closing: asyncio.Event) -> Receive:
    """Cuts off a body that never said how long it is, and whoever still listens when the server closes."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await _unless(closing, receive)
        seen += len(message.get("body", b""))
        return _GONE if seen > MAX_BODY else message

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


async def _refuse(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"This is not available here.\n"})
