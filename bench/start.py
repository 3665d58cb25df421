"""From the start of the process to its first page, beside an empty Gradio app; pairs in turn.

`python -m bench.start --large` starts with ten megabytes of knowledge and a warm index, beside a start with none.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import median

import httpx
import psutil

from bench.finding import FILES, PASSAGES_EACH, made_up
from bench.page import aim, say
from tests.e2e.programs import Program, clean_environment, copy_of_the_product, end_in_order, free_port, python

EMPTY = """
import gradio as gr
with gr.Blocks() as demo:
    pass
demo.launch(ssr_mode=False, quiet=True)
"""
POLL_S = 0.005


async def first_page(command: list[str], folder: Path, settings: dict[str, str]) -> tuple[float, float]:
    """Seconds until `/` answers 200: by the clock, and of CPU, which a busy machine disturbs less."""
    port = free_port()
    environment = clean_environment(folder) | {"GRADIO_SERVER_PORT": str(port)} | settings
    environment.pop("PYTHONDONTWRITEBYTECODE")  # as an owner runs it: compiled at the second start
    began = time.perf_counter()
    program = Program(command, folder, environment, folder / "start.log")
    try:
        async with httpx.AsyncClient(timeout=30) as client:
            while True:
                try:
                    if (await client.get(f"http://127.0.0.1:{port}/")).status_code == 200:
                        spent = psutil.Process(program.pid).cpu_times()
                        return time.perf_counter() - began, spent.user + spent.system
                except httpx.TransportError:
                    assert time.perf_counter() - began < 60, program.log
                    await asyncio.sleep(POLL_S)
    finally:
        await program.stop()


async def main(rounds: int, is_large: bool) -> None:
    end_in_order()
    work = Path(tempfile.mkdtemp(prefix="bench-"))
    product = copy_of_the_product(work / "ours")
    if is_large:
        await with_large_knowledge(rounds, work, product)
        return
    empty = work / "empty"
    empty.mkdir()
    (empty / "app.py").write_text(EMPTY, encoding="utf-8")
    own, other = await pairs(
        rounds,
        ("ours", lambda: first_page(python("app.py"), product, {})),
        ("empty", lambda: first_page(python("app.py"), empty, {"GRADIO_ANALYTICS_ENABLED": "False"})),
    )
    compare(own, other, "ours", "an empty Gradio app", 1.15)


async def with_large_knowledge(rounds: int, work: Path, product: Path) -> None:
    """With a provider, which is not asked, and without any."""
    (work / "nothing").mkdir()
    write_markdown(work / "large")
    for name, provider in (("a provider", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}), ("no provider", {})):
        large = {"KNOWLEDGE_DIR": str(work / "large"), "DATA_DIR": str(work / f"data {name}")} | provider
        nothing = {"KNOWLEDGE_DIR": str(work / "nothing"), "DATA_DIR": str(work / f"other {name}")} | provider
        cold = await first_page(python("app.py"), product, large)
        say(f"\nWith {name}: the first start, which builds the index, {cold[0]:.1f} s, {cold[1]:.1f} s of CPU")
        own, other = await pairs(
            rounds,
            ("large", partial(first_page, python("app.py"), product, large)),
            ("none", partial(first_page, python("app.py"), product, nothing)),
        )
        compare(own, other, "60,000 passages", "no knowledge", 1.2)


def write_markdown(folder: Path) -> None:
    folder.mkdir()
    (folder / "00-me.md").write_text("# Jo Example\n\nI build bridges.\n", encoding="utf-8")
    for file, of_file in groupby(made_up(FILES * PASSAGES_EACH), key=lambda one: one.file):
        parts = (f"## {one.heading.rpartition(' › ')[2]} {place}\n\n{one.text}" for place, one in enumerate(of_file))
        (folder / file).with_suffix(".md").write_text("\n\n".join(parts), encoding="utf-8")


Times = list[tuple[float, float]]
Start = Callable[[], Awaitable[tuple[float, float]]]


async def pairs(rounds: int, first: tuple[str, Start], second: tuple[str, Start]) -> tuple[Times, Times]:
    times: tuple[Times, Times] = [], []
    for number in range(rounds + 1):
        pair = await first[1](), await second[1]()
        if number:  # the first pair warms up
            times[0].append(pair[0])
            times[1].append(pair[1])
            say(f"round {number}: {first[0]} {pair[0][0]:.2f} s, {second[0]} {pair[1][0]:.2f} s")
    return times


def compare(own: Times, other: Times, name: str, other_name: str, limit: float) -> None:
    for what, index in (("clock", 0), ("CPU", 1)):
        first, second = (median(times[index] for times in one) for one in (own, other))
        say(f"\nStart to the first page, {what}, s (median): {name} {first:.2f}, {other_name} {second:.2f}")
        aim(f"{name} / {other_name}", first / second, limit)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--large", action="store_true", help="with large knowledge, beside none")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.rounds, arguments.large))
