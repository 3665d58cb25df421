"""The second channel: a POST of JSON to the owner's address, in a form that Slack, Discord and many more take."""

from __future__ import annotations

import asyncio

import requests

from alerts.channel import AlertError
from alerts.text import split_for_telegram
from alerts.wire import TIMEOUT_S, Answer, Unreachable, hide_in_logs, post

PIECE = 2000
"""Characters that Discord takes at once."""


class Webhook:
    """Owns the connection. The address is a secret: whoever has it can write to the owner."""

    name = "webhook"

    def __init__(self, url: str, *, timeout_s: tuple[float, float] = TIMEOUT_S) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._session = requests.Session()
        hide_in_logs(*_secrets_in(url))

    async def send(self, text: str) -> None:
        await asyncio.to_thread(self.push, text)

    def push(self, text: str) -> None:
        """Posts the text; blocks.

        Raises:
            AlertError: it was not taken.
        """
        for piece in split_for_telegram(text, PIECE):
            if piece.strip():
                self._post(piece)

    def close(self) -> None:
        self._session.close()

    def _post(self, piece: str) -> None:
        try:
            answer = post(self._session, self._url, {"text": piece, "content": piece}, self._timeout_s)
        except Unreachable as error:
            raise AlertError(f"this host cannot reach the webhook ({error}): check ALERT_WEBHOOK_URL") from None
        if not answer.ok:
            raise _refusal(answer)


def _refusal(answer: Answer) -> AlertError:
    if answer.status == 429:
        return AlertError("the webhook asks for a pause", retry_after_s=answer.retry_after_s)
    if answer.status >= 500:
        return AlertError(f"the webhook has a fault of its own ({answer.status})", retry_after_s=answer.retry_after_s)
    return AlertError(f"the webhook refused the alert ({answer.status}): check ALERT_WEBHOOK_URL", permanent=True)


def _secrets_in(url: str) -> list[str]:
    """The path with its query, as written and as sent; a bare host is none."""
    try:
        sent = requests.Request("POST", url).prepare().path_url
    except (requests.RequestException, ValueError):
        return [url]
    return [url] if sent == "/" else [url, sent, sent.partition("?")[0]]
