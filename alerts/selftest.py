"""The self-test at the start: what the owner has to mend before alerts and answers can flow, in plain words."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from alerts.channel import AlertError
from alerts.text import one_line
from alerts.wire import as_object

WEBHOOK_PATH = "/telegram/updates"
"""Below PUBLIC_URL. A webhook with this path is the replica's own, wherever it was set."""

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Calls a method of the Bot API. Raises AlertError."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What the self-test found."""

    bot: str
    """The bot's name, without the @."""
    problems: tuple[str, ...] = ()
    """What the owner has to mend."""
    foreign: bool = False
    """Another program has set a webhook: this bot's messages are not ours."""
    hook: str = ""
    """Where Telegram sends the messages at present; empty: nowhere."""


def token_hint(token: str) -> str:
    """What is odd about a token; empty when it looks like one."""
    if re.fullmatch(r"\d+:[\w-]{20,}", token, re.ASCII):
        return ""
    return "TELEGRAM_BOT_TOKEN does not look like a token of @BotFather, such as 123456:ABC-DEF…: copy it again"


async def self_test(ask: Ask, chat_id: str) -> Findings:
    """Asks Telegram who the bot is, whether it finds the owner's chat, and where the bot's messages go.

    Raises:
        AlertError: Telegram cannot be reached, or refuses the bot.
    """
    me = as_object(await ask("getMe", {}))
    bot = one_line(str(me.get("username", "")))
    hook = as_object(await _or_nothing(ask, "getWebhookInfo", {})).get("url", "")
    foreign = bool(hook) and not is_ours(str(hook))
    problems = [await _about_chat(ask, chat_id, str(me.get("id", "")), bot)]
    if foreign:
        problems.append(
            f"another program reads @{bot}'s messages (its webhook is at {urlsplit(str(hook)).hostname}): "
            "take a bot of its own for the replica, or delete that webhook"
        )
    return Findings(bot, tuple(filter(None, problems)), foreign, str(hook))


def is_ours(hook: str) -> bool:
    return urlsplit(hook).path.endswith(WEBHOOK_PATH)


def hook_problem(info: Mapping[str, Any], url: str) -> str:
    """What is wrong with the replica's own webhook; empty when nothing is."""
    if info.get("url") != url:
        return "another program has taken the bot's messages: take a bot of its own for the replica, and restart"
    waiting, reason = info.get("pending_update_count"), one_line(str(info.get("last_error_message", "")))[:200]
    if isinstance(waiting, int) and waiting > 0 and reason:
        return f"Telegram cannot bring your messages to PUBLIC_URL: {reason}"
    return ""


async def _about_chat(ask: Ask, chat_id: str, bot_id: str, bot: str) -> str:
    if chat_id == bot_id:
        return (
            "TELEGRAM_CHAT_ID is the bot's own number: it needs yours, from `python -m alerts.telegram` "
            "without TELEGRAM_CHAT_ID"
        )
    try:
        chat = as_object(await ask("getChat", {"chat_id": chat_id}))
    except AlertError as error:
        return error.reason if error.permanent else ""
    if chat.get("type") == "private" and str(chat.get("username", "")).lower().endswith("bot"):
        return "TELEGRAM_CHAT_ID is the number of a bot, and bots do not read each other: it needs yours"
    return ""


async def _or_nothing(ask: Ask, method: str, payload: Mapping[str, Any]) -> Any:
    """What the self-test can do without: the next call shows whether Telegram can be reached."""
    try:
        return await ask(method, payload)
    except AlertError:
        return None
