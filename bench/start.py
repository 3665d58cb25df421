"""From the start of the process to its first page, beside an empty Gradio app; pairs in turn."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

import httpx
import psutil

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


async def main(rounds: int) -> None:
    end_in_order()
    work = Path(tempfile.mkdtemp(prefix="bench-"))
    product = copy_of_the_product(work / "ours")
    empty = work / "empty"
    empty.mkdir()
    (empty / "app.py").write_text(EMPTY, encoding="utf-8")
    quiet = {"GRADIO_ANALYTICS_ENABLED": "False"}
    own: list[tuple[float, float]] = []
    other: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        pair = (
            await first_page(python("app.py"), product, {}),
            await first_page(python("app.py"), empty, quiet),
        )
        if number:  # the first pair warms up
            own.append(pair[0])
            other.append(pair[1])
            say(f"round {number}: ours {pair[0][0]:.2f} s, empty {pair[1][0]:.2f} s")
    for what, index in (("clock", 0), ("CPU", 1)):
        first, second = (median(times[index] for times in one) for one in (own, other))
        say(f"\nStart to the first page, {what}, s (median): ours {first:.2f}, an empty Gradio app {second:.2f}")
        aim("ours / empty", first / second, 1.15)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    asyncio.run(main(parser.parse_args().rounds))
