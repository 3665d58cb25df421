"""Programs beside the tests: started on a free port, waited for, and ended whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import httpx

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
PRODUCT = ("app.py", "agent", "alerts", "pages", "store", "tools", "knowledge")
POLL_S = 0.05
"""Between two looks at another program, in seconds."""
START_S = 60.0
END_S = 15.0


def end_in_order() -> None:
    """Lets SIGTERM end this program as Ctrl-C does: else the programs that it started would live on."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


async def eventually(look: Callable[[], Awaitable[T | None]], within_s: float, otherwise: Callable[[], str]) -> T:
    """Looks until there is something to see: another program tells nobody when it is done.

    Raises:
        AssertionError: there was nothing within that time; `otherwise` says what there was instead.
    """
    deadline = asyncio.get_running_loop().time() + within_s
    while True:
        if (seen := await look()) is not None:
            return seen
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(otherwise())
        await asyncio.sleep(POLL_S)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


class Program:
    """A process of its own. What it writes goes to a log that is kept."""

    def __init__(self, command: Sequence[str], cwd: Path, env: Mapping[str, str], log_file: Path) -> None:
        self.log_file = log_file
        self._name = Path(command[1] if len(command) > 1 else command[0]).name
        with log_file.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    async def answers(self, url: str, within_s: float = START_S) -> None:
        """Waits until the address answers 200.

        Raises:
            AssertionError: the program ended, or the time is over.
        """
        async with httpx.AsyncClient(timeout=5) as client:

            async def look() -> bool | None:
                if self._process.poll() is not None:
                    raise AssertionError(f"{self._name} ended with {self._process.returncode}:\n{self.log[-4000:]}")
                with contextlib.suppress(httpx.TransportError):
                    return (await client.get(url)).is_success or None

            await eventually(look, within_s, lambda: f"{self._name} does not answer at {url}:\n{self.log[-4000:]}")

    async def ended(self, within_s: float = START_S) -> int:
        """Waits until the program ends by itself, and gives its exit code."""
        return await asyncio.to_thread(self._process.wait, within_s)

    async def stop(self) -> int:
        """Asks the program to end, and makes it if it does not. Gives its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return await asyncio.to_thread(self._process.wait, END_S)
        except subprocess.TimeoutExpired:
            return -1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await asyncio.to_thread(self._process.wait)


def clean_environment(home: Path) -> dict[str, str]:
    """What a program needs to run here, and no setting of whoever runs the tests."""
    kept = ("PATH", "LANG", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        "HOME": str(home),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def copy_of_the_product(folder: Path) -> Path:
    """The product in a folder of its own: no `.env` and no data of the developer's is there."""
    for name in PRODUCT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / name)
    return folder


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]
