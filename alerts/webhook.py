"""The second channel: a POST of JSON to the owner's address, in a form that Slack, Discord and many more take."""

from __future__ import annotations

import requests

from alerts.channel import AlertError, Halves, fingerprint_of
from alerts.text import split_for_telegram, without_hints
from alerts.wire import TIMEOUT_S, Answer, Unreachable, apart, hide_in_logs, post
from store.records import Sent

PIECE = 2000
"""Characters that Discord takes at once."""

_OWNERS = {401, 403, 404, 410}
"""Answers that only the owner can mend. Other refusals may be about one message alone."""


class Webhook:
    """Owns the connection. The address is a secret: whoever has it can write to the owner."""

    name = "webhook"

    def __init__(self, url: str, *, timeout_s: tuple[float, float] = TIMEOUT_S) -> None:
        self.fingerprint = fingerprint_of(url)
        self._url = url
        self._timeout_s = timeout_s
        self._session = requests.Session()
        self._halves = Halves[None]()
        hide_in_logs(*_secrets_in(url))

    async def send(self, text: str, reply_to: int | None = None) -> Sent:
        """Posts the text, without what it says about replies: here nobody reads them."""
        pieces = [piece for piece in split_for_telegram(without_hints(text), PIECE) if piece.strip()]
        await self._halves.send((text, reply_to), pieces, lambda piece: apart(lambda: self._post(piece)))
        return Sent("")

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
    permanent = answer.status in _OWNERS or 300 <= answer.status < 400
    return AlertError(f"the webhook refused the alert ({answer.status}): check ALERT_WEBHOOK_URL", permanent=permanent)


def _secrets_in(url: str) -> list[str]:
    """The path with its query, as written and as sent; a bare host is none."""
    try:
        sent = requests.Request("POST", url).prepare().path_url
    except (requests.RequestException, ValueError):
        return [url]
    return [url] if sent == "/" else [url, sent, sent.partition("?")[0]]
