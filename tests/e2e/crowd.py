"""Many visitors at once, each with a session of its own: some at the page's own events, some at the API."""

from __future__ import annotations

import asyncio
import html
import json
import re
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import httpx

from pages.view import BROKE_OFF
from tests.e2e.raw_api import RawApi, last_output

Way = Literal["page", "api"]

UNFIT = re.compile(r"Traceback|File \\*\"|\w(Error|Exception)\b|\bHTTP \d|sk-e2e|127\.0\.0\.1|openai|httpx", re.I)
"""What a visitor must never be sent: the inside of the program, the provider's words, a key."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended for a visitor."""

    way: Way
    state: str
    """What the page shows: done, broken or failed; of the API, which has no states, what its text says."""
    text: str
    """Without the API's word that it broke off."""
    unfit: tuple[str, ...]
    """What stood in anything that was sent, and should not."""


class Somebody:
    """One visitor: one session, one conversation."""

    def __init__(self, api: RawApi, way: Way) -> None:
        self.way: Way = way
        self._api = api
        self._conversation = secrets.token_urlsafe(24)

    async def asks(self, question: str) -> Ending:
        if self.way == "api":
            events = await self._api.post("chat", [question])
            text = last_output(events)
            said = text.removesuffix(BROKE_OFF).rstrip()
            state = "broken" if said != text else "failed" if "(Reference " in text else "done"
            return Ending("api", state, said, _unfit(events))
        events = await self._api.post("ask", [question, self._conversation])
        turn = shown(last_output(events))
        text = html.unescape(re.sub(r"<[^>]+>", "", "\n".join(turn["blocks"]))).strip()
        return Ending("page", turn["state"], text, _unfit(events))


def shown(piece: str) -> dict[str, Any]:
    """The turn that a piece for the page tells of.

    Raises:
        AssertionError: the piece is none, or a refusal.
    """
    try:
        return json.loads(piece)["turn"]
    except (ValueError, KeyError) as error:
        raise AssertionError(f"no turn came: {piece[:1000]}") from error


def _unfit(events: str) -> tuple[str, ...]:
    return tuple(found[0] for found in UNFIT.finditer(events))


@asynccontextmanager
async def door(url: str) -> AsyncGenerator[Callable[[int], list[Somebody]]]:
    """Lets in so many visitors who were never here: every second one by the API, the others by the page."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    headers = {"Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits, headers=headers) as client:
        config = (await client.get("/config")).raise_for_status().json()
        functions = {fn["api_name"]: fn["id"] for fn in config["dependencies"] if fn["api_name"]}

        def let_in(number: int) -> list[Somebody]:
            return [Somebody(RawApi(client, functions), "api" if n % 2 else "page") for n in range(number)]

        yield let_in


async def all_ask(people: list[Somebody], question: str) -> list[Ending]:
    return list(await asyncio.gather(*(person.asks(question) for person in people)))
