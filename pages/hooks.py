"""Where Telegram brings the owner's messages, if it does."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

MAX_UPDATE = 64 * 1024
"""Largest update that is read, in bytes: a message has 4096 characters, and another one quoted."""

Take = Callable[[dict[str, Any]], Awaitable[bool]]
"""Does what an update asks for. False: Telegram shall bring it again."""


def updates_route(path: str, secret: str, take: Take) -> Route:
    """A POST with the secret brings an update: 200 when it is done, 503 when it has to come again."""

    async def answer(request: Request) -> Response:
        given = request.headers.get("X-Telegram-Bot-Api-Secret-Token", "")
        if not hmac.compare_digest(given.encode(), secret.encode()):
            return Response(status_code=403)
        try:
            body = await _body(request)
        except ClientDisconnect:
            return Response(status_code=503)
        if body is None:
            return Response(status_code=413)
        update = _object(body)
        if update is None:
            return Response(status_code=400)
        return Response(status_code=200 if await take(update) else 503)

    return Route(path, answer, methods=["POST"])


async def _body(request: Request) -> bytes | None:
    """None: it is too large."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_UPDATE:
            return None
    return bytes(body)


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None
