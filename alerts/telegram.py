"""The owner's phone by Telegram. `python -m alerts.telegram` helps to set it up."""

from __future__ import annotations

import argparse
import asyncio
import logging
import math
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO, cast

from alerts.bot_api import BotApi, ChatMoved
from alerts.channel import AlertError
from alerts.text import one_line, split_for_telegram
from alerts.wire import TIMEOUT_S, as_object

if TYPE_CHECKING:
    from agent.settings import Settings

log = logging.getLogger(__name__)

POLL_S = 20.0
"""How long one request waits for somebody to press Start, in seconds."""


class Telegram:
    """A chat with the owner. One call at a time."""

    name = "Telegram"

    def __init__(self, token: str, chat_id: str, api_url: str, *, timeout_s: tuple[float, float] = TIMEOUT_S) -> None:
        self._api = BotApi(token, api_url, timeout_s=timeout_s)
        self._chat_id = chat_id

    async def send(self, text: str) -> None:
        await asyncio.to_thread(self.push, text)

    def push(self, text: str) -> None:
        """Sends the text, in pieces where it is too long for one message; blocks.

        Raises:
            AlertError: Telegram did not take all of it.
        """
        for piece in split_for_telegram(text):
            if piece.strip():  # Telegram refuses blanks
                self._push(piece)

    def close(self) -> None:
        self._api.close()

    def _push(self, piece: str) -> None:
        # No parse mode: what a visitor wrote cannot break the message.
        message = {"text": piece, "link_preview_options": {"is_disabled": True}}
        try:
            self._api.call("sendMessage", {"chat_id": self._chat_id, **message})
        except ChatMoved as moved:
            log.warning("%s", moved.reason)
            self._chat_id = moved.chat_id
            self._api.call("sendMessage", {"chat_id": self._chat_id, **message})


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
        telegram.push("Your replica can reach you here. This was a test.")
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
