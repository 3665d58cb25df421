"""The two servers that nobody here wrote: llmock as the provider, telegram-test-api as the owner's phone."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.programs import Program, clean_environment, eventually, free_port, python
from tests.fakes.wire import faults

HERE = Path(__file__).parent
EMULATOR = HERE / "node_modules" / "telegram-test-api"
CHUNK_DELAY_MS = 20
"""Between two words of a reply: slow enough to see it grow."""


class Llmock:
    """A scripted provider. Behaviours are taken in order; without one it answers at random, as models do."""

    def __init__(self, url: str) -> None:
        self.base_url = f"{url}/v1"
        self.refused: list[str] = []
        """What a strict provider would have found wrong with the requests before the last reset."""
        self._client = httpx.AsyncClient(base_url=f"{url}/_llmock", timeout=10)

    async def says(self, text: str, **more: Any) -> None:
        await self.does({"type": "reply", "text": text, **more})

    async def calls(self, tool: str, arguments: dict[str, Any], **more: Any) -> None:
        await self.does({"type": "reply", "tool_calls": [{"name": tool, "arguments": arguments}], **more})

    async def does(self, *behaviours: dict[str, Any]) -> None:
        (await self._client.post("/scenario", json={"behaviors": behaviours})).raise_for_status()

    async def requests(self) -> list[dict[str, Any]]:
        """The bodies of all requests since the last reset, in order of arrival."""
        answer = (await self._client.get("/requests")).raise_for_status().json()
        return [request["body"] for request in answer["requests"]]

    async def behaves(self) -> None:
        """Drops the behaviours that are left."""
        (await self._client.delete("/scenario")).raise_for_status()

    async def reset(self) -> None:
        """Forgets behaviours and requests; of these it keeps what was wrong with them."""
        self.refused += [fault for request in await self.requests() for fault in faults(request)]
        (await self._client.post("/reset")).raise_for_status()

    async def refuses_nothing(self) -> None:
        """Resets.

        Raises:
            AssertionError: a strict provider would have refused a request since this was last asked.
        """
        await self.reset()
        refused, self.refused = self.refused, []
        assert refused == []

    async def close(self) -> None:
        await self._client.aclose()


class Phone:
    """The owner's side of a chat with the bot."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.token = "987654321:e2e-BotTokenThatMustNotShowAnywhere"
        self.chat_id = "4711"
        self._client = httpx.AsyncClient(base_url=url, timeout=10)

    async def texts(self) -> list[str]:
        """Everything that arrived in the owner's chat, oldest first."""
        answer = await self._client.post("/getUpdatesHistory", json={"token": self.token})
        messages = [update["message"] for update in answer.raise_for_status().json()["result"]]
        return [message["text"] for message in messages if str(message["chat_id"]) == self.chat_id]

    async def gets(self, part: str, within_s: float = 15) -> str:
        """Waits for an alert with this text in it.

        Raises:
            AssertionError: none came.
        """
        seen: list[str] = []

        async def look() -> str | None:
            seen[:] = await self.texts()
            return next((text for text in reversed(seen) if part in text), None)

        return await eventually(look, within_s, lambda: f"no alert with {part!r} came; there are {seen!r}")

    async def close(self) -> None:
        await self._client.aclose()


@asynccontextmanager
async def llmock(folder: Path, *options: str) -> AsyncGenerator[Llmock]:
    """Runs llmock, with more options of its command line. In the end a strict provider must find nothing wrong with
    any request that it got."""
    port = free_port()
    # A script of the package, beside the interpreter; `-m llmock` does not exist.
    command = python("-c", "from llmock.cli import app; app()", "serve", "--port", str(port), "--tool-mode", "off")
    command += ["--stream-chunk-delay-ms", str(CHUNK_DELAY_MS), "--log-level", "warning", *options]
    program = Program(command, folder, clean_environment(folder), folder / "llmock.log")
    try:
        await program.answers(f"http://127.0.0.1:{port}/_llmock/requests")
        peer = Llmock(f"http://127.0.0.1:{port}")
        yield peer
        await peer.refuses_nothing()
        await peer.close()
    finally:
        await program.stop()


@asynccontextmanager
async def phone(folder: Path) -> AsyncGenerator[Phone]:
    port = free_port()
    script = (
        "const TelegramServer = require('telegram-test-api');"
        f"new TelegramServer({{ port: {port}, host: '127.0.0.1', storeTimeout: 86400 }}).start();"
    )
    environment = clean_environment(folder) | {"NODE_PATH": str(EMULATOR.parent)}
    program = Program(["node", "-e", script], folder, environment, folder / "telegram.log")
    try:
        await program.answers(f"http://127.0.0.1:{port}/botnone/getMe")
        peer = Phone(f"http://127.0.0.1:{port}")
        yield peer
        await peer.close()
    finally:
        await program.stop()


def why_no_phone() -> str:
    """Why the emulator cannot run here; empty when it can. It is installed if only that is missing."""
    if not shutil.which("node"):
        return "the Telegram emulator needs node, which is not installed"
    if EMULATOR.exists():
        return ""
    if not shutil.which("npm"):
        return "the Telegram emulator is not installed, and there is no npm: run `npm ci` in tests/e2e"
    installed = subprocess.run(
        ["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=HERE, env=os.environ, capture_output=True, check=False
    )
    return (
        "" if installed.returncode == 0 else "the Telegram emulator could not be installed: run `npm ci` in tests/e2e"
    )
