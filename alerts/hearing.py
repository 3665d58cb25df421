"""Hears the owner: of all that is written to the bot only the owner's chat counts, and each message once."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from alerts.commands import respond
from alerts.inbound import Words, number_of, read_words
from alerts.telegram import MOVED, present_chat
from store.owner import Owner
from store.store import Store

log = logging.getLogger(__name__)


class Hearing:
    """Does what the owner writes.

    Args:
        store: keeps what comes of it, each message in one transaction.
        bot_id: number of the bot: each has update numbers of its own.
        chat_id: the owner's chat. Nobody else is heard, and nobody else is answered.
        heard: awaited after each message of the owner's: there may be an answer to send, and the chat works.
    """

    def __init__(self, store: Store, bot_id: str, chat_id: str, heard: Callable[[], Awaitable[None]]) -> None:
        self.bot_name = ""
        """Without the @, as commands in groups carry it."""
        self._store = store
        self._offset_key = f"telegram_offset:{bot_id}"
        self._chat_id = chat_id
        self._heard = heard
        self._ignored = 0

    async def offset(self) -> int:
        """Number of the first update that was not done; 0 when any may come."""
        return await self._store.update_offset(self._offset_key) or 0

    async def handle(self, update: Mapping[str, Any]) -> None:
        """Does what an update asks for, if it is the owner's.

        Raises:
            StoreError: nothing was done; it has to come again.
        """
        number, words = number_of(update), read_words(update)
        if number is None or words is None:
            return
        if not await self._is_owners(words):
            self._ignore()
            return

        def act(owner: Owner) -> str | None:
            if words.moved:
                owner.set_state(MOVED, json.dumps({"from": self._chat_id, "to": words.moved[1]}))
                return None
            return respond(words, owner, datetime.now(UTC), self.bot_name)

        if await self._store.handle_update(number, act, words.message_id, self._offset_key):
            await self._heard()

    async def _is_owners(self, words: Words) -> bool:
        chat = words.moved[0] if words.moved else words.chat_id
        if self._chat_id.lower() in (chat, words.chat_name.lower()):
            return True
        return await present_chat(self._store, self._chat_id) == chat

    def _ignore(self) -> None:
        """Counted, not quoted, and not told each time: a stranger may write as often as they like."""
        self._ignored += 1
        if self._ignored & (self._ignored - 1) == 0:
            log.info("Messages to the bot from other chats than yours, ignored so far: %d", self._ignored)
