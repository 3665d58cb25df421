"""What an open page asks for every few seconds: whether the owner wrote to its visitor, and whether the chat is closed.

It asks beside Gradio, whose queue is for messages. A conversation's id lets a visitor back in: it comes in a header,
since addresses end in logs.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.limits import Pace
from pages.talk import Talk, known
from pages.visitors import Crowded, address_of

log = logging.getLogger(__name__)

HEADER = "X-Conversation"

MOST_A_MINUTE = 1200
"""Questions of one address: a page asks 15 times a minute, and a firm has one address."""

FRESH_S = 1.0
"""How old may be what is known of the sign at the door, in seconds: all pages ask for it, and each gets the same."""

Newest = Callable[[str], Awaitable[int]]
"""The id of the newest words that the owner wrote in a conversation; 0: there are none."""

IsClosed = Callable[[], Awaitable[bool]]


def news_routes(talk: Talk, newest: Newest, is_closed: IsClosed, most_a_minute: int = MOST_A_MINUTE) -> list[Route]:
    """`/news` tells that there is something new, and `/words` what the owner wrote.

    Args:
        talk: has the conversations.
        newest: one quick query.
        is_closed: whether the owner has closed the chat.
        most_a_minute: how often one address may ask.
    """
    pace, closed = Pace(most_a_minute), remembered(is_closed)

    async def news(conversation_id: str, address: str) -> dict[str, Any]:
        return {"words": await newest(conversation_id) if conversation_id else 0, "closed": await closed()}

    async def words(conversation_id: str, address: str) -> dict[str, Any]:
        return {"words": await talk.words(conversation_id, address) if conversation_id else []}

    def route(path: str, tell: Callable[[str, str], Awaitable[dict[str, Any]]]) -> Route:
        async def answer(request: Request) -> Response:
            address = address_of(request, talk.trusted_proxies)
            if wait_s := pace.wait_s(address):
                return _later(429, wait_s)
            pace.count(address)
            try:
                told = await tell(known(request.headers.get(HEADER)), address)
            except Crowded:
                return _later(429, 1)
            except Exception as error:
                log.warning("News could not be read (%s)", type(error).__name__)
                return _later(503, 10)
            return JSONResponse(told, headers={"Cache-Control": "no-store"})

        return Route(path, answer, methods=["GET"])

    return [route("/news", news), route("/words", words)]


def remembered(ask: IsClosed, clock: Callable[[], float] = time.monotonic) -> IsClosed:
    """Asks again only after a moment."""
    answer, until = False, -math.inf

    async def fresh() -> bool:
        nonlocal answer, until
        if clock() >= until:
            answer = await ask()
            until = clock() + FRESH_S
        return answer

    return fresh


def _later(status: int, wait_s: float) -> Response:
    return Response(status_code=status, headers={"Retry-After": str(math.ceil(wait_s)), "Cache-Control": "no-store"})
