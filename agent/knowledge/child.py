"""Reads files in a process of its own, which a hostile file can neither hold up for long nor fill the memory with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Timer
from typing import IO, Any

from agent.knowledge.readers import read_bounded
from agent.knowledge.values import Reading, Unreadable

SECONDS = 10.0
"""For one file."""
SECONDS_IN_ALL = 30.0
"""For all the files of a folder: what is slow to the last file must not add up."""
MAX_MEMORY = 1024 * 1024 * 1024
"""Bytes of addresses, where the system knows such a limit."""

ROOT = Path(__file__).parents[2]


class Child:
    """A process that reads files one after the other. It is started for the first one, and again after it was ended."""

    def __init__(self, seconds: float = SECONDS, in_all: float = SECONDS_IN_ALL, memory: int = MAX_MEMORY) -> None:
        self._seconds = seconds
        self._left = in_all
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, path: Path) -> Reading:
        """Raises Unreadable."""
        limit = min(self._seconds, self._left)
        if limit <= 0:
            raise Unreadable("not read, since the files before it took too long; mend or remove those")
        begun = time.monotonic()
        answer = self._ask(path, limit)
        took = time.monotonic() - begun
        self._left -= took
        if not answer.endswith(b"\n"):
            self.close()
            if took >= limit:
                raise Unreadable(f"takes longer than {max(1, round(limit))} s to read; save it again, or a part of it")
            raise Unreadable("damaged, or far larger than it looks; save it again, or a part of it")
        found: dict[str, Any] = json.loads(answer)
        if why := found.get("unreadable"):
            raise Unreadable(why)
        return Reading(**found)

    def close(self) -> None:
        """Ends the process, whatever it is doing."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe:
                with suppress(OSError):
                    pipe.close()
        process.wait()

    def _ask(self, path: Path, limit: float) -> bytes:
        """The line that it answers; nothing, or half of one, where it was ended."""
        process = self._process = self._process or _start(self._memory)
        assert process.stdin
        assert process.stdout
        alarm = Timer(limit, process.kill)
        alarm.start()
        try:
            process.stdin.write(json.dumps(str(path.absolute())).encode() + b"\n")
            process.stdin.flush()
            return process.stdout.readline()
        except OSError:
            return b""
        finally:
            alarm.cancel()


def _start(memory: int) -> subprocess.Popen[bytes]:
    # Nothing of the environment goes along: it holds keys. Windows' programs cannot do without.
    environment = None if os.name == "nt" else {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-X", "utf8", "-m", "agent.knowledge.child", str(memory)],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def answer_all(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Reads the file that each line names, and answers with a line."""
    for question in questions:
        answers.write(json.dumps(_answer(Path(json.loads(question)))).encode() + b"\n")
        answers.flush()


def _answer(path: Path) -> dict[str, object]:
    try:
        reading = read_bounded(path)
    except Unreadable as error:
        return {"unreadable": str(error)}
    except (MemoryError, RecursionError):
        return {"unreadable": "far larger or deeper than it looks; save it again, or a part of it"}
    except Exception as error:
        # A reader may fail in any way on a damaged file.
        return {"unreadable": f"damaged or not readable ({type(error).__name__}); save it again"}
    return {"text": reading.text, "pages": reading.pages, "detail": reading.detail}


def main(memory: int) -> None:
    """What the process does: libraries that print must not disturb the answers."""
    with suppress(ImportError, ValueError, OSError):
        resource: Any = import_module("resource")
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    answer_all(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main(int(sys.argv[1]))
