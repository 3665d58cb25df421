"""Telegram's Bot API: a call gives its result, or says in plain words why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import requests

from alerts.channel import AlertError
from alerts.text import one_line
from alerts.wire import TIMEOUT_S, Answer, Unreachable, as_object, hide_in_logs, post

_REFUSALS = {
    401: "Telegram refused the token: check TELEGRAM_BOT_TOKEN",
    403: "Telegram does not let the bot write to you: open the bot in Telegram and press Start (or unblock it)",
    404: "Telegram does not know such a bot: check TELEGRAM_BOT_TOKEN and TELEGRAM_API_URL",
    409: "another program reads this bot's messages, or the bot has a webhook: stop the one, or delete the other",
}

_NO_CHAT = "Telegram does not find the chat: open the bot in Telegram, press Start, and check TELEGRAM_CHAT_ID"


class ChatMoved(AlertError):
    """The group has become a supergroup with another id."""

    def __init__(self, chat_id: str) -> None:
        super().__init__(f"the group has a new id: set TELEGRAM_CHAT_ID to {chat_id}", permanent=True)
        self.chat_id = chat_id


class Conflict(AlertError):
    """Somebody else gets the bot's messages, which may end by itself: during an update of a host both run a while."""


class BotApi:
    """Owns the connections to the Bot API."""

    def __init__(self, token: str, api_url: str, *, timeout_s: tuple[float, float] = TIMEOUT_S) -> None:
        self._token = token
        self._root = f"{api_url.rstrip('/')}/bot{quote(token, safe=':')}"
        self._timeout_s = timeout_s
        self._session = requests.Session()
        hide_in_logs(token, quote(token, safe=":"))

    def call(self, method: str, payload: Mapping[str, Any], *, wait_s: float = 0) -> Any:
        """Calls a method; blocks.

        Args:
            method: as the Bot API names it.
            payload: its parameters.
            wait_s: how much longer than usual the answer may take, in seconds.

        Raises:
            AlertError: the call failed.
        """
        connect_s, read_s = self._timeout_s
        try:
            answer = post(self._session, f"{self._root}/{method}", payload, (connect_s, read_s + wait_s))
        except Unreachable as error:
            advice = "set TELEGRAM_API_URL to a relay, or ALERT_WEBHOOK_URL"
            raise AlertError(f"this host cannot reach Telegram ({error}): {advice}") from None
        if answer.ok and answer.body.get("ok") is True:
            return answer.body.get("result")
        raise self._refusal(answer)

    def close(self) -> None:
        self._session.close()

    def _refusal(self, answer: Answer) -> AlertError:
        status = answer.status
        if answer.ok and isinstance(code := answer.body.get("error_code"), int):
            status = code  # some relays answer 200 whatever Telegram said
        if status == 429:
            return AlertError("Telegram asks for a pause", retry_after_s=answer.retry_after_s)
        if status >= 500:
            return AlertError(f"Telegram has a fault of its own ({status})", retry_after_s=answer.retry_after_s)
        # What is not Telegram's own answer may be gone in a minute: a page to log in, a relay that restarts.
        if 300 <= status < 400:
            return AlertError(f"TELEGRAM_API_URL leads elsewhere ({status}): set it to where it leads, if that lasts")
        if answer.body.get("ok") is not False:
            return AlertError(f"what answers is not Telegram ({status}): check TELEGRAM_API_URL, if that lasts")
        return self._refusal_of_telegram(status, answer.body)

    def _refusal_of_telegram(self, status: int, body: Mapping[str, Any]) -> AlertError:
        description = one_line(str(body.get("description", "")).replace(self._token, "…"))[:200]
        if moved_to := as_object(body.get("parameters")).get("migrate_to_chat_id"):
            return ChatMoved(str(moved_to))
        if "chat not found" in description.lower():
            return AlertError(_NO_CHAT, permanent=True)
        if status == 409:
            return Conflict(_REFUSALS[status], permanent=True)
        if status in _REFUSALS:
            return AlertError(_REFUSALS[status], permanent=True)
        # It may be about this one message: the others are not to wait for it.
        return AlertError(f"Telegram refused the message ({status}: {description})")
