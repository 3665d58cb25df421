"""The owner's phone by Telegram. `python -m alerts.telegram` helps to set it up."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO, cast

from alerts.bot_api import BotApi, ChatMoved
from alerts.channel import AlertError, Halves, fingerprint_of
from alerts.text import one_line, split_for_telegram
from alerts.wire import TIMEOUT_S, apart, as_object
from store.records import Sent, StoreError
from store.store import Store

if TYPE_CHECKING:
    from agent.settings import Settings

log = logging.getLogger(__name__)

POLL_S = 20.0
"""How long one request waits for somebody to press Start, in seconds."""

MOVED = "telegram_chat"
"""Where the store keeps the id that a group got when it became a supergroup."""


def gap_s(chat_id: str) -> float:
    """Seconds between two messages, as Telegram wants it: one a second, and 20 a minute in groups and channels."""
    return 3.0 if chat_id.startswith(("-", "@")) else 1.0


async def present_chat(store: Store, chat_id: str) -> str:
    """The id of the chat today: the one that is set, or the one that its group has moved to."""
    try:
        kept = as_object(json.loads(await store.state(MOVED) or "{}"))
    except ValueError:
        kept = {}
    return str(kept["to"]) if kept.get("from") == chat_id and kept.get("to") else chat_id


class Telegram:
    """A chat with the owner. One call at a time.

    Args:
        token: of the bot.
        chat_id: as it is set.
        api_url: Telegram's, or a relay's.
        store: remembers where a group has moved to; None: nobody does.
        gap_s: seconds between two messages to a chat.
        timeout_s: see `alerts.wire.TIMEOUT_S`.
    """

    name = "Telegram"

    def __init__(
        self,
        token: str,
        chat_id: str,
        api_url: str,
        store: Store | None = None,
        *,
        gap_s: Callable[[str], float] = gap_s,
        timeout_s: tuple[float, float] = TIMEOUT_S,
    ) -> None:
        self.fingerprint = fingerprint_of(token, chat_id, api_url)
        self._api = BotApi(token, api_url, timeout_s=timeout_s)
        self._set_chat_id = chat_id
        self._chat_id = chat_id
        self._store = store
        self._knows_moves = store is None
        self._gap_s = gap_s
        self._free_at = 0.0
        """When the chat takes the next message, on the monotonic clock."""
        self._halves = Halves[tuple[str, int | None]]()

    async def send(self, text: str, reply_to: int | None = None) -> Sent:
        """Sends the text, in pieces where it is too long for one message.

        Raises:
            AlertError: Telegram did not take all of it. The pieces that it took are not sent again.
        """
        await self._recall_move()
        messages = _messages(text, reply_to)
        taken = await self._halves.send((text, reply_to), messages, self._send)
        chat_id = taken[-1][0] if taken else self._chat_id
        return Sent(chat_id, tuple(number for _, number in taken if number is not None))

    def close(self) -> None:
        self._api.close()

    async def _send(self, message: Mapping[str, Any]) -> tuple[str, int | None]:
        """The chat's number, which replies carry even where the setting is its @name, and the message's."""
        try:
            taken = await self._call(message)
        except ChatMoved as moved:
            log.warning("%s", moved.reason)
            self._chat_id = moved.chat_id
            await self._keep_move()
            taken = await self._call(message)
        chat_id, message_id = as_object(as_object(taken).get("chat")).get("id"), as_object(taken).get("message_id")
        return (
            str(chat_id) if isinstance(chat_id, int) else self._chat_id,
            message_id if isinstance(message_id, int) else None,
        )

    async def _call(self, message: Mapping[str, Any]) -> Any:
        await asyncio.sleep(self._free_at - time.monotonic())
        try:
            return await apart(lambda: self._api.call("sendMessage", {"chat_id": self._chat_id, **message}))
        finally:
            self._free_at = time.monotonic() + self._gap_s(self._chat_id)

    async def _recall_move(self) -> None:
        if self._store is None or self._knows_moves:
            return
        try:
            self._chat_id = await present_chat(self._store, self._set_chat_id)
        except StoreError:
            return  # Telegram says it again
        self._knows_moves = True

    async def _keep_move(self) -> None:
        if self._store is None:
            return
        try:
            await self._store.set_state(MOVED, json.dumps({"from": self._set_chat_id, "to": self._chat_id}))
        except StoreError as error:
            log.warning("The group's new id was not kept: %s", error)  # and is told again after a restart


def _messages(text: str, reply_to: int | None) -> list[dict[str, Any]]:
    """What `sendMessage` takes, for each piece. Without a parse mode, so that nothing in the text can break it."""
    pieces = [piece for piece in split_for_telegram(text) if piece.strip()]  # Telegram refuses blanks
    messages: list[dict[str, Any]] = [
        {"text": piece, "link_preview_options": {"is_disabled": True}} for piece in pieces
    ]
    if messages and reply_to is not None:
        messages[0]["reply_parameters"] = {"message_id": reply_to, "allow_sending_without_reply": True}
    return messages


def main(argv: Sequence[str], settings: Settings, out: TextIO) -> int:
    """Helps an owner to find the chat id, or sends a test message.

    Returns:
        The program's exit code.
    """
    parser = argparse.ArgumentParser(
        prog="python -m alerts.telegram", description="Finds your TELEGRAM_CHAT_ID, or sends a test message to it."
    )
    parser.add_argument(
        "--wait", type=float, default=60, metavar="SECONDS", help="how long to wait for you to press Start"
    )
    wait_s: float = parser.parse_args(argv).wait
    if settings.telegram_bot_token is None:
        return _say(out, "TELEGRAM_BOT_TOKEN is not set: make a bot with @BotFather in Telegram and set its token.", 1)
    token, url = settings.telegram_bot_token.get_secret_value(), settings.telegram_api_url
    try:
        for line in _guide(token, settings.telegram_chat_id, url, wait_s):
            _say(out, line)
    except AlertError as error:
        return _say(out, f"{error.reason[:1].upper()}{error.reason[1:]}.", 1)
    except KeyboardInterrupt:
        return _say(out, "Stopped.", 1)
    return 0


def _guide(token: str, chat_id: str | None, api_url: str, wait_s: float) -> Iterator[str]:
    api = BotApi(token, api_url)
    try:
        bot = one_line(str(as_object(api.call("getMe", {})).get("username", "")))
        yield f"The token works: it belongs to @{bot}."
        if chat_id is None:
            yield f"Open https://t.me/{bot} and press Start. I wait up to {wait_s:g} seconds."
            for found, name in _wait_for_chats(api, wait_s).items():
                yield f"{name} wrote to the bot. Put this line into .env, or into the settings of your host:"
                yield f"TELEGRAM_CHAT_ID={found}"
            return
    finally:
        api.close()
    telegram = Telegram(token, chat_id, api_url)
    try:
        asyncio.run(telegram.send("Your replica can reach you here. This was a test."))
    finally:
        telegram.close()
    yield f"The test message arrived in chat {chat_id}: look at your phone."


def _wait_for_chats(api: BotApi, wait_s: float) -> dict[str, str]:
    """Names of those who wrote to the bot, by chat id.

    They are not confirmed to Telegram, so that a second run finds them again.

    Raises:
        AlertError: nobody did in time.
    """
    end = time.monotonic() + wait_s
    offset = 0
    while True:
        left_s = max(0.0, min(POLL_S, end - time.monotonic()))
        updates = api.call("getUpdates", {"offset": offset, "timeout": math.ceil(left_s)}, wait_s=left_s)
        seen = [as_object(one) for one in cast(list[Any], updates)] if isinstance(updates, list) else []
        if chats := dict(_chats_in(seen)):
            return chats
        if seen:
            offset = seen[-1].get("update_id", 0) + 1
        if time.monotonic() >= end:
            raise AlertError(
                f"nobody wrote to the bot within {wait_s:g} seconds: press Start there, then run this again"
            )


def _chats_in(updates: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for update in updates:
        for kind in ("message", "channel_post", "my_chat_member"):
            chat = as_object(as_object(update.get(kind)).get("chat"))
            if "id" in chat:
                names = [chat.get("first_name"), chat.get("last_name"), chat.get("title")]
                name = one_line(" ".join(str(name) for name in names if name))
                yield str(chat["id"]), name or "Somebody"


def _say(out: TextIO, line: str, code: int = 0) -> int:
    out.write(f"{line}\n")
    out.flush()
    return code


def _program() -> int:
    from agent.settings import SettingsError, load_settings, read_environment

    try:
        settings = load_settings(read_environment())
    except SettingsError as error:
        return _say(sys.stdout, str(error), 1)
    return main(sys.argv[1:], settings, sys.stdout)


if __name__ == "__main__":
    raise SystemExit(_program())
