"""What the page's events do: each takes whatever a stranger may post, and none raises."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

import gradio as gr

from agent.events import Event
from agent.reception import BLANK, TROUBLE, Opened, Reception, Refused
from pages.batches import in_batches
from pages.markup import Growing
from pages.sources import Sources
from pages.view import Showing, history, owner_words
from pages.visitors import Crowded, Desk, address_of

log = logging.getLogger(__name__)

BATCH_S = 0.05
"""Pause between two pieces of a reply, in seconds: Gradio's work is by the piece, not by the length."""

SILENCE_S = 2.0
"""After so many seconds without news the last piece is told again: only then does Gradio notice that a tab is closed,
and end a reply that nobody reads."""

LINE_SEPARATOR = "\u2028"
"""Stands for a line break in what the browser sends: it travels through a one-line field, which drops real ones."""

_PAGE_ID = re.compile(r"[A-Za-z0-9_-]{32}")
_THUMB = re.compile(r"([0-9]{1,9}) (up|down|none)")
_LIKED = {"up": True, "down": False, "none": None}

CROWDED = "Many pages are opening from your network. Please load this one again in a moment."
NOT_TEXT = "Please send the message as text."


class OnFeedback(Protocol):
    """Keeps a visitor's thumb on a reply; None takes it back."""

    async def __call__(self, conversation_id: str, number: int, liked: bool | None) -> None: ...


@dataclass(frozen=True, slots=True)
class Talk:
    """The page's events, and the API's.

    What goes to the page is JSON in one string, a whole picture each time: `{"history": [...]}`, or
    `{"turn": {...}}` with the turn that is being answered, or `{"refused": "a sentence"}`, or none of
    these while a message waits for an earlier one. Earlier messages never travel with a reply. Beside
    turns with sources stands what is behind these: `"behind": {"cv.md › Experience": {...}}`.
    """

    reception: Reception
    on_feedback: OnFeedback
    trusted_proxies: int = 0
    """How many `X-Forwarded-For` entries from the right to believe."""
    sources: Sources = field(default_factory=Sources)
    """Knows what replies rest on."""
    desk: Desk = field(default_factory=Desk)
    """Where pages that open are given what was said."""

    async def ask(self, message: Any, conversation: Any, request: gr.Request | None = None) -> AsyncGenerator[str]:
        """Answers a message from the page. An unknown conversation begins empty."""
        conversation_id = known(conversation) or secrets.token_urlsafe(24)
        events = self.reception.answer(conversation_id, clean(message), self._address(request))
        async with aclosing(self._told(events, conversation_id)) as pieces:
            async for piece in pieces:
                yield piece

    async def again(self, conversation: Any, request: gr.Request | None = None) -> AsyncGenerator[str]:
        """Answers the last message once more."""
        conversation_id = known(conversation)
        if not conversation_id:
            yield _piece("", refused=BLANK)
            return
        events = self.reception.retry(conversation_id, self._address(request))
        async with aclosing(self._told(events, conversation_id)) as pieces:
            async for piece in pieces:
                yield piece

    async def load(self, conversation: Any, request: gr.Request | None = None) -> str:
        """The conversation so far, for a page that was opened anew."""
        conversation_id = known(conversation)
        if not conversation_id:
            return _piece("", history=[])
        try:
            async with self.desk.place(self._address(request)):
                transcript = await self.reception.store.transcript(conversation_id)
                turns = await asyncio.to_thread(history, transcript, self.reception.replica.toolkit.tools)
                behind = await self.sources.behind(label for turn in turns for label in turn["sources"])
        except Crowded:
            return _piece(conversation_id, refused=CROWDED)
        except Exception as error:
            return _piece(conversation_id, refused=_trouble(error))
        newest = max((one.id for after in transcript.words for one in after), default=0)
        return _piece(conversation_id, history=turns, behind=behind, words=newest)

    async def words(self, conversation_id: str, address: str) -> list[dict[str, Any]]:
        """What the owner wrote, by turns; see `owner_words`.

        Raises:
            Crowded: too many of this address wait already.
        """
        async with self.desk.place(address):
            return await asyncio.to_thread(owner_words, await self.reception.store.transcript(conversation_id))

    async def rate(self, thumb: Any, conversation: Any) -> None:
        """Keeps a thumb, written as `7 up`, `7 down` or `7 none`."""
        conversation_id = known(conversation)
        match = _THUMB.fullmatch(thumb) if isinstance(thumb, str) else None
        if not conversation_id or not match:
            return
        try:
            await self.on_feedback(conversation_id, int(match[1]), _LIKED[match[2]])
        except Exception as error:
            _trouble(error)

    async def chat(self, message: str, request: gr.Request) -> AsyncGenerator[str]:
        """Chat with the replica. Streams the reply so far, and ends with the whole reply.

        One session is one conversation; a call without a session begins a new one.
        """
        if not isinstance(message, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            yield NOT_TEXT
            return
        conversation_id = conversation_of_session(request.session_hash)
        events = self.reception.answer(conversation_id, clean(message), self._address(request))
        showing, shown = Showing(self.reception.replica.toolkit.tools), ""
        try:
            async with aclosing(in_batches(events, BATCH_S, SILENCE_S)) as batches:
                async for batch in batches:
                    showing = _after(showing, batch)
                    if showing.for_callers != shown or not batch:
                        shown = showing.for_callers
                        yield shown
        except Refused as refusal:
            yield str(refusal)
        except Exception as error:
            yield _trouble(error)

    def _address(self, request: gr.Request | None) -> str:
        """Who the message is counted for."""
        asked: Any = getattr(request, "request", None)
        return "" if asked is None else address_of(asked, self.trusted_proxies)

    async def _told(self, events: AsyncGenerator[Opened | Event], conversation_id: str) -> AsyncGenerator[str]:
        showing, rendering = Showing(self.reception.replica.toolkit.tools), Growing()
        piece = _piece(conversation_id)
        try:
            async with aclosing(in_batches(events, BATCH_S, SILENCE_S)) as batches:
                async for batch in batches:
                    if batch:
                        showing = _after(showing, batch)
                        rendering = rendering.after(showing.text)
                        behind = await self.sources.behind(showing.sources)
                        piece = _piece(conversation_id, turn=showing.for_the_browser(rendering), behind=behind)
                    yield piece
        except Refused as refusal:
            yield _piece(conversation_id, refused=str(refusal))
        except Exception as error:
            yield _piece(conversation_id, refused=_trouble(error))


def _after(showing: Showing, events: list[Opened | Event]) -> Showing:
    for event in events:
        showing = showing.after(event)
    return showing


def clean(message: Any) -> str:
    """The message as text that can be stored and sent on, whatever was posted."""
    if not isinstance(message, str):
        return ""
    message = message.replace(LINE_SEPARATOR, "\n").replace("\0", "")
    return message.encode("utf-8", errors="replace").decode("utf-8")


def known(conversation: Any) -> str:
    """The id, if it has the form of those that this page gives out; else nothing."""
    return conversation if isinstance(conversation, str) and _PAGE_ID.fullmatch(conversation) else ""


def conversation_of_session(session_hash: str | None) -> str:
    """The conversation of an API session. The dot keeps it apart from every id of the page."""
    session = session_hash or secrets.token_urlsafe(24)
    return f"api.{hashlib.sha256(session.encode('utf-8', errors='replace')).hexdigest()[:40]}"


def _piece(conversation_id: str, **content: Any) -> str:
    """Content for the page. The stamp makes two pieces with the same content differ: a browser is told of
    changes only. Underscores are written as escapes since Gradio translates texts that carry its `__i18n__` mark."""
    text = json.dumps({"stamp": secrets.token_hex(4), "conversation": conversation_id, **content}, ensure_ascii=False)
    return text.replace("__", "\\u005f\\u005f")


def _trouble(error: Exception) -> str:
    """A sentence for the visitor, and the traceback for the log under the same reference."""
    reference = secrets.token_hex(4)
    log.error("[%s] An event of the page failed (%s)", reference, type(error).__name__, exc_info=error)
    return TROUBLE.format(reference)
