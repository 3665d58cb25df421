"""A PostgreSQL server for the tests: Debian's, started by the first test that needs it, gone with the last one."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from sqlalchemy import create_engine, text

TEMPLATE = "carboncopy"

_QUICK = ("fsync", "synchronous_commit", "full_page_writes", "autovacuum", "log_checkpoints")
"""Switched off: what is written here need not outlive the server."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs, reached by a socket in a folder of its own."""

    folder: Path

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@/{database}?host={self.folder}"

    def run(self, statement: str) -> None:
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()

    @contextmanager
    def database(self, template: str = "template0") -> Generator[str]:
        """The address of a fresh database, dropped at the end even if somebody is still connected."""
        name = f"test_{uuid4().hex}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8'")
        yield self.url(name)
        self.run(f"DROP DATABASE {name} WITH (FORCE)")


def run_sql(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Past the store. Returns the rows, if it has any."""
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            result = connection.execute(text(statement))
            return [tuple(row) for row in result] if result.returns_rows else []
    finally:
        engine.dispose()


def find_server() -> Path | None:
    """The folder of the newest server's programs; None where there is none."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin/initdb"), *map(Path, filter(None, [shutil.which("initdb")]))]
    found.sort(key=lambda path: int(path.parts[-3]) if path.parts[-3].isdigit() else 0)
    return found[-1].parent if found else None


@contextmanager
def running_server(programs: Path) -> Generator[Server]:
    """It ends with the block, and at the latest with this process: the kernel sees to that."""
    with tempfile.TemporaryDirectory(prefix="postgresql-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        as_whom: list[str] = []
        if os.geteuid() == 0:  # the server refuses to run as root
            user = _somebody()
            shutil.chown(folder, user)
            as_whom = ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups"]
            as_whom += ["--pdeathsig=QUIT"]
        data = folder / "data"
        initdb = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        subprocess.run([*as_whom, *initdb], check=True, capture_output=True, cwd=folder)
        options = [part for option in _QUICK for part in ("-c", f"{option}=off")]
        options += ["-c", "timezone=Asia/Kathmandu"]  # a time that is taken for a local one is seen at once
        server = subprocess.Popen(
            [*as_whom, programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", *options],
            stderr=subprocess.PIPE,
            cwd=folder,
        )
        try:
            _await_ready(server)
            yield Server(folder)
        finally:
            server.send_signal(signal.SIGQUIT)  # at once
            server.wait(30)


def _await_ready(server: subprocess.Popen[bytes]) -> None:
    assert server.stderr is not None
    said = b""
    for line in server.stderr:
        said += line
        if b"ready to accept connections" in line:
            threading.Thread(target=_drain, args=(server.stderr,), daemon=True).start()
            return
    raise RuntimeError(f"PostgreSQL did not start: {said.decode(errors='replace')}")


def _drain(pipe: IO[bytes]) -> None:
    """A full pipe would stop the server."""
    with pipe:
        pipe.read()


def _somebody() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
