"""What people write to a bot, kept as Telegram keeps it until the bot has it: by long polling or by a webhook."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

AGAIN_S = 0.05
"""Before Telegram tries a webhook again that failed, in seconds."""
LONGEST_POLL_S = 50.0


class Refused(Exception):
    """Telegram says no."""

    def __init__(self, code: int, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.description = description


@dataclass
class Hook:
    """Where updates are pushed to."""

    url: str
    secret_token: str = ""
    last_error: str = ""
    options: dict[str, Any] = field(default_factory=dict[str, Any])


class Mailbox:
    """The updates of one bot. Only one at a time may fetch them, and nobody while there is a webhook.

    Args:
        changed: notified when something arrives.
        closing: set when the server ends.
        hosts: where the names in webhooks' addresses really are, such as {"https://me.example": "http://127.0.0.1:1"}.
    """

    def __init__(self, changed: threading.Condition, closing: threading.Event, hosts: dict[str, str]) -> None:
        self.hook: Hook | None = None
        self.first_id = 1000
        """Number of the next update."""
        self.delivered: list[tuple[int, int]] = []
        """Number of an update, and the status that the webhook answered."""
        self._changed = changed
        self._closing = closing
        self._hosts = hosts
        self._updates: list[dict[str, Any]] = []
        self._allowed: list[str] | None = None
        self._poll = 0
        self._polling = 0

    @property
    def unread(self) -> list[int]:
        """Numbers of the updates that nobody has confirmed."""
        with self._changed:
            return [one["update_id"] for one in self._updates]

    @property
    def polled(self) -> bool:
        """Somebody waits for updates."""
        return self._polling > 0

    def put(self, content: dict[str, Any]) -> int:
        with self._changed:
            update_id = self.first_id
            if self._allowed is None or set(content) <= set(self._allowed):
                self._updates.append({"update_id": update_id, **content})
                self.first_id += 1
            self._changed.notify_all()
            return update_id

    def fetch(self, payload: dict[str, Any]) -> list[dict[str, Any]]:
        """getUpdates.

        Raises:
            Refused: a webhook is set, or a newer call took this one's place.
        """
        offset, timeout = int(payload.get("offset", 0)), float(payload.get("timeout", 0))
        with self._changed:
            if self.hook:
                raise Refused(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook")
            self._allow(payload)
            self._poll = mine = self._poll + 1
            self._polling += 1
            self._changed.notify_all()
            self._confirm(offset)
            try:
                self._changed.wait_for(
                    lambda: self._updates or self._poll != mine or self._closing.is_set(),
                    min(timeout, LONGEST_POLL_S),
                )
            finally:
                self._polling -= 1
            if self._poll != mine:
                raise Refused(409, "Conflict: terminated by other getUpdates request; make sure that only one runs")
            return list(self._updates[:100])

    def set_hook(self, payload: dict[str, Any]) -> None:
        """setWebhook.

        Raises:
            Refused: the address or the secret cannot be used.
        """
        url, secret = str(payload.get("url", "")), str(payload.get("secret_token", ""))
        if urlsplit(url).scheme != "https":
            raise Refused(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
        if urlsplit(url).port not in (None, 80, 88, 443, 8443):
            raise Refused(400, "Bad Request: bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
        if secret and not re.fullmatch(r"[\w-]{1,256}", secret, re.ASCII):
            raise Refused(400, "Bad Request: secret token contains unallowed characters")
        with self._changed:
            self._allow(payload)
            self.hook = Hook(url, secret, options=payload)
            self._poll += 1
            self._changed.notify_all()
        threading.Thread(target=self._push, args=(self.hook,), daemon=True).start()

    def delete_hook(self) -> None:
        with self._changed:
            self.hook = None
            self._changed.notify_all()

    def hook_info(self) -> dict[str, Any]:
        hook = self.hook
        info: dict[str, Any] = {"url": hook.url if hook else "", "pending_update_count": len(self.unread)}
        return info | ({"last_error_message": hook.last_error} if hook and hook.last_error else {})

    def _allow(self, payload: dict[str, Any]) -> None:
        if "allowed_updates" in payload:
            self._allowed = payload["allowed_updates"] or None

    def _confirm(self, offset: int) -> None:
        """A number from the future confirms nothing: Telegram takes it as if there were none."""
        if offset <= self.first_id + 10:
            self._updates = [one for one in self._updates if one["update_id"] >= offset]

    def _push(self, hook: Hook) -> None:
        """One update at a time, again and again until it is taken."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._updates or self._is_over(hook))
                if self._is_over(hook):
                    return
                update = self._updates[0]
            status = self._post(hook, update)
            with self._changed:
                self.delivered.append((update["update_id"], status))
                if 200 <= status < 300:
                    self._confirm(update["update_id"] + 1)
                else:
                    hook.last_error = f"Wrong response from the webhook: {status}"
                self._changed.notify_all()
            if not 200 <= status < 300:
                self._closing.wait(AGAIN_S)

    def _is_over(self, hook: Hook) -> bool:
        return self.hook is not hook or self._closing.is_set()

    def _post(self, hook: Hook, update: dict[str, Any]) -> int:
        public = urlsplit(hook.url)
        place = self._hosts.get(f"https://{public.netloc}")
        if place is None:
            return 502
        headers = {"Content-Type": "application/json"}
        if hook.secret_token:
            headers["X-Telegram-Bot-Api-Secret-Token"] = hook.secret_token
        connection = HTTPConnection(urlsplit(place).netloc, timeout=5)
        try:
            connection.request("POST", public.path, json.dumps(update), headers)
            return connection.getresponse().status
        except (OSError, HTTPException):
            return 502
        finally:
            connection.close()
