"""One turn that takes a lead, through `respond`, beside a bare loop over the SDK and three frameworks: CPU and clock.

Each runs in a process of its own, in an environment that this makes in bench/.venv; the provider is another process.
They take their turns one after the other, round by round, so that a busy machine disturbs all alike. To measure newer
versions, delete bench/.venv.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.page import aim, say
from tests.e2e.programs import ROOT, Program, clean_environment, end_in_order, free_port

ENVIRONMENT = ROOT / "bench" / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
MADE = ENVIRONMENT / "made"
"""Stands there when everything is installed."""

BARE, OURS = "bare loop", "ours"
PEERS = {"openai-agents": "openai-agents", "langchain": "langchain", "pydantic-ai": "pydantic-ai-slim"}
"""With the package that each stands in."""
CONTESTANTS = (BARE, OURS, *PEERS)
WARM_UP = 30
"""Turns before the first that counts."""
PAUSES_MS = {1.0: "each token by itself, 1 ms apart", 0.0: "all tokens at once"}


def make_environment() -> None:
    """Installs what is measured, once."""
    if MADE.exists():
        return
    say(f"Installing bench/requirements.txt into {ENVIRONMENT.relative_to(ROOT)}")
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    install = [str(PYTHON), "-m", "pip", "install", "-qq", "-r", str(ROOT / "bench" / "requirements.txt")]
    subprocess.run(install, check=True)
    MADE.touch()


def versions() -> str:
    code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    packages = ("openai", *PEERS.values())
    told = subprocess.run([str(PYTHON), "-c", code, *packages], check=True, capture_output=True, text=True)
    return ", ".join(f"{package} {one}" for package, one in zip(packages, told.stdout.split(), strict=True))


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a turn, in seconds."""

    cpu_s: float
    wall_s: float


class Worker:
    """A contestant's process. It is asked for turns on its standard input."""

    def __init__(self, process: asyncio.subprocess.Process, name: str) -> None:
        self._process = process
        self._name = name

    async def turns(self, count: int) -> Cost:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{count}\n".encode())
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name} ended with {await self._process.wait()}; what it wrote stands above")
        return Cost(*json.loads(line))


@asynccontextmanager
async def worker(name: str, base_url: str, home: Path) -> AsyncGenerator[Worker]:
    command = [str(PYTHON), "-m", "bench.turn_worker", name, base_url]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, env=clean_environment(home), stdin=pipe, stdout=pipe
    )
    try:
        yield Worker(process, name)
    finally:
        if process.stdin:
            process.stdin.close()  # it ends by itself
        await process.wait()


async def measure(pause_ms: float, rounds: int, turns: int) -> dict[str, list[Cost]]:
    home, port = Path(tempfile.mkdtemp(prefix="bench-")), free_port()
    costs: dict[str, list[Cost]] = {name: [] for name in CONTESTANTS}
    command = [str(PYTHON), "-m", "bench.turn_provider", str(port), str(pause_ms / 1000)]
    async with AsyncExitStack() as stack:
        provider = Program(command, ROOT, clean_environment(home), home / "provider.log")
        stack.push_async_callback(provider.stop)
        await provider.answers(f"http://127.0.0.1:{port}/")
        base_url = f"http://127.0.0.1:{port}/v1"
        workers = {name: await stack.enter_async_context(worker(name, base_url, home)) for name in CONTESTANTS}
        for one in workers.values():
            await one.turns(WARM_UP)
        for number in range(rounds):
            # Every other round runs backwards, so that nobody always comes after the same one.
            for name in CONTESTANTS if number % 2 else reversed(CONTESTANTS):
                costs[name].append(await workers[name].turns(turns))
    return costs


def show(costs: dict[str, list[Cost]]) -> None:
    """Medians; ratios are taken within each round first."""
    say("                 CPU, ms   / bare loop   (quarters)    wall, ms   / bare loop")
    for name, own in costs.items():
        cpu = ratios([one.cpu_s for one in own], [one.cpu_s for one in costs[BARE]])
        wall = ratios([one.wall_s for one in own], [one.wall_s for one in costs[BARE]])
        say(
            f"{name:15} {median(one.cpu_s for one in own) * 1000:8.2f} {median(cpu):13.2f}   "
            f"{quarter(cpu, 1):.2f} - {quarter(cpu, 3):.2f} {median(one.wall_s for one in own) * 1000:11.1f} "
            f"{median(wall):13.2f}"
        )
    say("")
    aim("CPU of ours / bare loop", pair_ratio(costs, BARE), 1.15)
    for name in PEERS:
        aim(f"CPU of ours / {name}", pair_ratio(costs, name), 1)


def ratios(own: Sequence[float], other: Sequence[float]) -> list[float]:
    return sorted(one / two for one, two in zip(own, other, strict=True))


def quarter(values: Sequence[float], number: int) -> float:
    return values[(len(values) - 1) * number // 4]


def pair_ratio(costs: dict[str, list[Cost]], other: str) -> float:
    return median(ratios([one.cpu_s for one in costs[OURS]], [one.cpu_s for one in costs[other]]))


async def main(rounds: int, turns: int) -> None:
    end_in_order()
    make_environment()
    say(f"Python {sys.version.split()[0]}, {versions()}")
    for pause_ms, how in PAUSES_MS.items():
        say(f"\nA turn, {how} (median of {rounds} rounds of {turns} turns)\n")
        show(await measure(pause_ms, rounds, turns))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--turns", type=int, default=20, help="in each round")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.rounds, arguments.turns))
