"""Strict doubles of Telegram's Bot API and of a webhook: real HTTP servers on 127.0.0.1 that fail on request.

with FakeTelegram() as api:
    telegram = Telegram(api.token, api.chat_id, api.url)
    api.fail_next(Status(429, {"ok": False, "parameters": {"retry_after": 3}}))
    ...
    (message,) = await api.messages_arrive(1)
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from tests.fakes.mailbox import Mailbox, Refused
from tests.fakes.server import Drip, Fault, Hangup, Message, Silence, Status, WireServer

__all__ = ["Drip", "FakeTelegram", "FakeWebhook", "Fault", "Hangup", "Message", "Silence", "Status"]


class FakeTelegram(WireServer):
    """The Bot API, as far as alerts need it, with the refusals of the real one."""

    def __init__(self, token: str = "123456789:AAF-fake_token_of_a_fake_bot_123456", chat_id: str = "4242") -> None:
        super().__init__()
        self.token = token
        self.chat_id = chat_id
        self.username = "fake_replica_bot"
        self.chats = {chat_id}
        """Chats whose owner pressed Start."""
        self.blocked: set[str] = set()
        self.moved: dict[str, str] = {}
        """Groups that became supergroups: old id to new id."""
        self.names: dict[str, str] = {}
        """Numbers of channels and groups by their @name."""
        self.details: dict[str, dict[str, Any]] = {}
        """What getChat says of a chat beside its number."""
        self.hosts: dict[str, str] = {}
        """Where the hosts of webhooks really listen."""
        self.mailbox = Mailbox(self.changed, self.closing, self.hosts)
        self.commands: list[dict[str, str]] = []
        """The menu of commands."""
        self._message_ids = 0

    def press_start(self, chat_id: str, **person: str) -> None:
        """Somebody opens the bot and presses Start."""
        chat = {"id": int(chat_id), "type": "private", **person}
        self.update(message={"message_id": self.new_message_id(), "chat": chat, "from": chat, "text": "/start"})
        self.chats.add(chat_id)

    def update(self, **content: Any) -> int:
        return self.mailbox.put(content)

    def new_message_id(self) -> int:
        with self.changed:
            self._message_ids += 1
            return self._message_ids

    def wait_for_poll(self) -> None:
        """Blocks until somebody waits for updates."""
        self.wait_until(lambda: self.mailbox.polled, "somebody who fetches updates")

    def wait_for_reading(self) -> None:
        """Blocks until everything that was written to the bot is confirmed."""
        self.wait_until(lambda: not self.mailbox.unread, "the bot to read its messages")

    async def is_polled(self) -> None:
        await asyncio.to_thread(self.wait_for_poll)

    async def is_read(self) -> None:
        await asyncio.to_thread(self.wait_for_reading)

    def answer(self, path: str, payload: dict[str, Any]) -> Status:
        found = re.fullmatch(r"/bot(\d+:[\w-]{20,})/(\w+)", unquote(path))
        if not found:
            return _refused(404, "Not Found")
        if found[1] != self.token:
            return _refused(401, "Unauthorized")
        methods: dict[str, Callable[[dict[str, Any]], Any]] = {
            "getMe": self._get_me,
            "getChat": self._get_chat,
            "sendMessage": self._send_message,
            "getUpdates": self.mailbox.fetch,
            "setWebhook": lambda asked: self.mailbox.set_hook(asked) or True,
            "deleteWebhook": lambda _: self.mailbox.delete_hook() or True,
            "getWebhookInfo": lambda _: self.mailbox.hook_info(),
            "setMyCommands": self._set_my_commands,
        }
        if found[2] not in methods:
            return _refused(404, "Not Found: method not found")
        try:
            result = methods[found[2]](payload)
        except Refused as refused:
            return _refused(refused.code, refused.description)
        return result if isinstance(result, Status) else Status(200, {"ok": True, "result": result})

    def _get_me(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"id": 123456789, "is_bot": True, "first_name": "Replica", "username": self.username}

    def _get_chat(self, payload: dict[str, Any]) -> Status | dict[str, Any]:
        chat_id = str(payload.get("chat_id", ""))
        if chat_id in self.moved:
            return self._has_moved(chat_id)
        if chat_id not in self.chats:
            raise Refused(400, "Bad Request: chat not found")
        number = self.names.get(chat_id, chat_id)
        return {"id": int(number), "type": "private", **self.details.get(chat_id, {})}

    def _has_moved(self, chat_id: str) -> Status:
        new = {"migrate_to_chat_id": int(self.moved[chat_id])}
        return _refused(400, "Bad Request: group chat was upgraded to a supergroup chat", new)

    def _set_my_commands(self, payload: dict[str, Any]) -> bool:
        commands: list[dict[str, str]] = payload.get("commands", [])
        fits = all(
            re.fullmatch(r"[a-z0-9_]{1,32}", one["command"]) and 1 <= len(one["description"]) <= 256 for one in commands
        )
        if not (0 < len(commands) <= 100 and fits):
            raise Refused(400, "Bad Request: BOT_COMMAND_INVALID")
        self.commands = commands
        return True

    def _send_message(self, payload: dict[str, Any]) -> Status | dict[str, Any]:
        chat_id, text = str(payload.get("chat_id", "")), payload.get("text")
        if chat_id in self.moved:
            return self._has_moved(chat_id)
        if chat_id not in self.chats:
            raise Refused(400, "Bad Request: chat not found")
        if chat_id in self.blocked:
            raise Refused(403, "Forbidden: bot was blocked by the user")
        if not isinstance(text, str) or not text.strip():
            raise Refused(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le", "surrogatepass")) > 2 * 4096:
            raise Refused(400, "Bad Request: message is too long")
        if "parse_mode" in payload:
            raise Refused(400, "Bad Request: can't parse entities")
        message_id = self.new_message_id()
        self.keep(Message(text, chat_id, payload, message_id))
        return {"message_id": message_id, "chat": {"id": int(self.names.get(chat_id, chat_id))}, "text": text}


class FakeWebhook(WireServer):
    """Takes JSON with a `text` and a `content` of at most 2000 characters, at a secret path."""

    path = "/hooks/B00-secret-of-the-webhook"

    @property
    def address(self) -> str:
        return self.url + self.path

    def answer(self, path: str, payload: dict[str, Any]) -> Status:
        text = payload.get("text")
        if path != self.path:
            return Status(404, "no_service")
        if not isinstance(text, str) or not text.strip() or len(text) > 2000 or payload.get("content") != text:
            return Status(400, "invalid_payload")
        self.keep(Message(text, "", payload))
        return Status(204)


def _refused(code: int, description: str, parameters: dict[str, Any] | None = None) -> Status:
    body: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
    return Status(code, body | ({"parameters": parameters} if parameters else {}))
