"""Strict doubles of Telegram's Bot API and of a webhook: real HTTP servers on 127.0.0.1 that fail on request.

with FakeTelegram() as api:
    telegram = Telegram(api.token, api.chat_id, api.url)
    api.fail_next(Status(429, {"ok": False, "parameters": {"retry_after": 3}}))
    ...
    (message,) = await api.messages_arrive(1)
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast
from urllib.parse import parse_qsl, unquote, urlsplit

PATIENCE_S = 10.0
"""How long a test waits for a message before it fails, in seconds."""


@dataclass(frozen=True)
class Status:
    """Answers with this status; a body that is no string becomes JSON."""

    status: int
    body: Any = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Silence:
    """Does not answer until `over` is set (or the server closes), then as if nothing had been."""

    over: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Hangup:
    """Takes the message, then closes the connection without an answer, or after a part of one."""

    part: bytes = b""


@dataclass(frozen=True)
class Drip:
    """Answers one byte at a time, for ever."""

    every_s: float = 0.02


Fault = Status | Silence | Hangup | Drip


@dataclass(frozen=True)
class Message:
    """What arrived at the other end."""

    text: str
    chat_id: str
    payload: dict[str, Any]


class WireServer:
    """A server whose next answers can be faults."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.requests: list[str] = []
        """Method and path of everything that was asked, faults as well."""
        self.changed = threading.Condition()
        self.closing = threading.Event()
        self._faults: deque[Fault | None] = deque()
        self._always: Fault | None = None
        self._server = _Server(("127.0.0.1", 0), _Handler, self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        with self.changed:
            self.changed.notify_all()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def fail_next(self, *faults: Fault | None) -> None:
        """The next requests meet these faults, one each; None: that one goes well."""
        self._faults.extend(faults)

    def fail_always(self, fault: Fault | None) -> None:
        """Every request meets this fault; None: no longer."""
        self._always = fault

    def wait_for_messages(self, count: int) -> list[Message]:
        """Blocks until so many messages have arrived in all."""
        self._wait(lambda: len(self.messages) >= count, f"{count} messages, got {self.messages}")
        return list(self.messages)

    def wait_for_requests(self, count: int) -> list[str]:
        """Blocks until so much was asked in all, faults as well."""
        self._wait(lambda: len(self.requests) >= count, f"{count} requests, got {self.requests}")
        return list(self.requests)

    async def messages_arrive(self, count: int) -> list[Message]:
        return await asyncio.to_thread(self.wait_for_messages, count)

    async def requests_arrive(self, count: int) -> list[str]:
        return await asyncio.to_thread(self.wait_for_requests, count)

    def keep(self, message: Message) -> None:
        with self.changed:
            self.messages.append(message)
            self.changed.notify_all()

    def take_fault(self, line: str) -> Fault | None:
        with self.changed:
            self.requests.append(line)
            self.changed.notify_all()
        return self._faults.popleft() if self._faults else self._always

    def answer(self, path: str, payload: dict[str, Any]) -> Status:
        raise NotImplementedError

    def _wait(self, done: Any, what: str) -> None:
        with self.changed:
            assert self.changed.wait_for(done, PATIENCE_S), f"waited in vain for {what}"


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
        self.has_webhook = False
        self._updates: list[dict[str, Any]] = []
        self._polling = False

    def press_start(self, chat_id: str, **person: str) -> None:
        """Somebody opens the bot and presses Start."""
        chat = {"id": int(chat_id), "type": "private", **person}
        self.update(message={"message_id": 1, "chat": chat, "from": chat, "text": "/start"})
        self.chats.add(chat_id)

    def update(self, **content: Any) -> None:
        with self.changed:
            self._updates.append({"update_id": 1000 + len(self._updates), **content})
            self.changed.notify_all()

    def answer(self, path: str, payload: dict[str, Any]) -> Status:
        found = re.fullmatch(r"/bot(\d+:[\w-]{20,})/(\w+)", unquote(path))
        if not found:
            return _refused(404, "Not Found")
        if found[1] != self.token:
            return _refused(401, "Unauthorized")
        match found[2]:
            case "getMe":
                return _result({"id": 123456789, "is_bot": True, "first_name": "Replica", "username": self.username})
            case "sendMessage":
                return self._send_message(payload)
            case "getUpdates":
                return self._get_updates(int(payload.get("offset", 0)), float(payload.get("timeout", 0)))
            case _:
                return _refused(404, "Not Found: method not found")

    def _send_message(self, payload: dict[str, Any]) -> Status:
        chat_id, text = str(payload.get("chat_id", "")), payload.get("text")
        if chat_id in self.moved:
            new = {"migrate_to_chat_id": int(self.moved[chat_id])}
            return _refused(400, "Bad Request: group chat was upgraded to a supergroup chat", new)
        if chat_id not in self.chats:
            return _refused(400, "Bad Request: chat not found")
        if chat_id in self.blocked:
            return _refused(403, "Forbidden: bot was blocked by the user")
        if not isinstance(text, str) or not text.strip():
            return _refused(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le", "surrogatepass")) > 2 * 4096:
            return _refused(400, "Bad Request: message is too long")
        if "parse_mode" in payload:
            return _refused(400, "Bad Request: can't parse entities")
        self.keep(Message(text, chat_id, payload))
        return _result({"message_id": len(self.messages), "chat": {"id": chat_id}, "text": text})

    def _get_updates(self, offset: int, timeout: float) -> Status:
        with self.changed:
            if self.has_webhook:
                return _refused(409, "Conflict: can't use getUpdates method while webhook is active")
            if self._polling:
                return _refused(409, "Conflict: terminated by other getUpdates request")
            self._polling = True
            self._updates = [one for one in self._updates if one["update_id"] >= offset]
            self.changed.wait_for(lambda: self._updates or self.closing.is_set(), min(timeout, 50))
            self._polling = False
            return _result(list(self._updates))


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


def _result(value: Any) -> Status:
    return Status(200, {"ok": True, "result": value})


def _refused(code: int, description: str, parameters: dict[str, Any] | None = None) -> Status:
    body: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
    return Status(code, body | ({"parameters": parameters} if parameters else {}))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], fake: WireServer) -> None:
        super().__init__(address, handler)
        self.fake = fake

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave early are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """The tests look at `requests` instead."""

    def do_GET(self) -> None:
        self._serve(dict(parse_qsl(urlsplit(self.path).query)))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        is_json = self.headers.get("Content-Type", "").startswith("application/json")
        self._serve(json.loads(body) if is_json else dict(parse_qsl(body)))

    def _serve(self, payload: dict[str, Any]) -> None:
        fake = cast(_Server, self.server).fake
        path = urlsplit(self.path).path
        match fake.take_fault(f"{self.command} {path}"):
            case Status() as status:
                self._answer(status)
            case Silence(over):
                while not (over.wait(0.02) or fake.closing.is_set()):
                    pass
                self._answer(fake.answer(path, payload))
            case Hangup(part):
                fake.answer(path, payload)
                self.wfile.write(part)
                self.close_connection = True
            case Drip(every_s):
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not fake.closing.is_set():
                    self.wfile.write(b" ")
                    time.sleep(every_s)
            case None:
                self._answer(fake.answer(path, payload))

    def _answer(self, status: Status) -> None:
        text = status.body if isinstance(status.body, str) else json.dumps(status.body)
        raw = text.encode()
        self.send_response(status.status)
        for name, value in status.headers.items():
            self.send_header(name, value)
        if status.status != 204:
            self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if status.status != 204:
            self.wfile.write(raw)
