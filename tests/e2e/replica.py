"""The product as an owner runs it: `python app.py` in a folder of its own."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from store.records import Contact, Question
from store.store import Store
from tests.e2e.peers import Phone
from tests.e2e.programs import Program, clean_environment, copy_of_the_product, eventually, free_port, python

ROOMY = {"MESSAGES_PER_MINUTE": "100000"}
"""All tests come from one address, so that a limit a minute would hit them together."""

WATCH = Path(__file__).parent / "watch"
CONNECTIONS = "connections.txt"


@dataclass
class Site:
    """A running replica."""

    url: str
    program: Program
    folder: Path
    secrets: list[str] = field(default_factory=list[str])
    """What may show up nowhere."""
    excused: bool = False
    """A traceback in the log is part of what the test is about."""

    @property
    def log(self) -> str:
        return self.program.log

    async def logs(self, pattern: str, within_s: float = 15) -> str:
        """Waits for a line that matches.

        Raises:
            AssertionError: none came.
        """

        async def look() -> str | None:
            return next((line for line in self.log.splitlines() if re.search(pattern, line)), None)

        return await eventually(look, within_s, lambda: f"no line like {pattern!r} in the log:\n{self.log[-4000:]}")

    async def contacts(self) -> list[Contact]:
        async with self._store() as store:
            return await store.contacts()

    async def questions(self) -> list[Question]:
        async with self._store() as store:
            return await store.questions()

    async def alert_counts(self) -> dict[str, int]:
        async with self._store() as store:
            return await store.alert_counts()

    async def thumbs(self, conversation_id: str) -> tuple[bool | None, ...]:
        async with self._store() as store:
            return (await store.transcript(conversation_id)).feedback

    @asynccontextmanager
    async def _store(self) -> AsyncGenerator[Store]:
        """The database as the product left it on the disk, read by a second program as an owner would."""
        store = Store.open(f"sqlite:///{self.folder / 'data' / 'carboncopy.db'}")
        try:
            yield store
        finally:
            await store.close()

    def check_the_log(self) -> None:
        """Neither a traceback nor a secret stands there, and the process wanted to talk to no stranger."""
        assert self.excused or "Traceback" not in self.log, self.log[-6000:]
        assert [secret for secret in self.secrets if secret in self.log] == []
        assert not (self.folder / CONNECTIONS).exists(), (self.folder / CONNECTIONS).read_text()


@asynccontextmanager
async def site(folder: Path, **settings: str) -> AsyncGenerator[Site]:
    """Starts a replica, and ends it as a host does: by SIGTERM, upon which it has to leave in order.

    Started again in the same folder, it finds its data.
    """
    if not (folder / "app.py").exists():
        copy_of_the_product(folder)
    url, program = start(folder, settings)
    secrets = [value for name, value in settings.items() if name.endswith(("_API_KEY", "_TOKEN", "_PASSWORD"))]
    running = Site(url, program, folder, secrets)
    try:
        await program.answers(f"{url}/healthz")
        yield running
        code = await program.stop()
        assert code == 0, f"the replica ended with {code}:\n{program.log[-4000:]}"
        running.check_the_log()
    finally:
        await program.stop()


def start(folder: Path, settings: dict[str, str]) -> tuple[str, Program]:
    """`python app.py` with these settings and no others. Gives the address and the process."""
    port = free_port()
    watched = {"PYTHONPATH": str(WATCH), "CONNECTIONS": str(folder / CONNECTIONS)}
    environment = clean_environment(folder) | watched | {"GRADIO_SERVER_PORT": str(port)} | settings
    if Path("/data").exists():
        environment.setdefault("DATA_DIR", str(folder / "data"))
    program = Program(python("app.py"), folder, environment, folder / "app.log")
    return f"http://127.0.0.1:{port}", program


def alerts_to(phone: Phone) -> dict[str, str]:
    return {"TELEGRAM_API_URL": phone.url, "TELEGRAM_BOT_TOKEN": phone.token, "TELEGRAM_CHAT_ID": phone.chat_id}


def provided_by(base_url: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "sk-e2e-KeyThatMustNotShowAnywhere", "OPENAI_MODEL": "mock"}
