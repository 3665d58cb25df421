"""Real HTTP servers on 127.0.0.1 that fail on request: what the doubles of Telegram and of a webhook stand on."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast
from urllib.parse import parse_qsl, urlsplit

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
    message_id: int = 0


class WireServer:
    """A server whose next answers can be faults."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.requests: list[str] = []
        """Method and path of everything that was asked, faults as well."""
        self.changed = threading.Condition()
        self.closing = threading.Event()
        self._faults: deque[Fault | None] = deque()
        self._always: dict[str, Fault | None] = {}
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

    def fail_always(self, fault: Fault | None, method: str = "") -> None:
        """Every request (or every call of this method) meets this fault; None: no longer."""
        self._always[method] = fault

    def wait_for_messages(self, count: int) -> list[Message]:
        """Blocks until so many messages have arrived in all."""
        self.wait_until(lambda: len(self.messages) >= count, f"{count} messages, got {self.messages}")
        return list(self.messages)

    def wait_for_requests(self, count: int) -> list[str]:
        """Blocks until so much was asked in all, faults as well."""
        self.wait_until(lambda: len(self.requests) >= count, f"{count} requests, got {self.requests}")
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
            if self._faults:
                return self._faults.popleft()
            return self._always.get(line.rpartition("/")[2]) or self._always.get("")

    def answer(self, path: str, payload: dict[str, Any]) -> Status:
        raise NotImplementedError

    def wait_until(self, done: Any, what: str) -> None:
        with self.changed:
            assert self.changed.wait_for(done, PATIENCE_S), f"waited in vain for {what}"


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
