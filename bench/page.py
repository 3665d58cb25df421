"""What a streamed reply costs the server, and how soon its first words are seen, beside a plain `gr.ChatInterface`.

Both are asked in turn, by a headless browser, with the same scripted provider behind them.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
from playwright.async_api import Browser, Page

from agent.conversation import Reply, Step, Turn
from bench.talk import earlier
from store.store import Store
from tests.e2e.browser import browser
from tests.e2e.programs import ROOT, Program, clean_environment, end_in_order, free_port, python
from tests.e2e.replica import ROOMY, provided_by, site

TOKENS = (60, 600)
EARLIER = (0, 40, 200)
AT_ONCE = 3
QUIET_S = 0.5
"""A server is idle when it used next to no CPU for so long."""

WATCH = """
window.marked = (mark) => new Promise((resolve) => {
  const times = {};
  const see = (text) => {
    if (!times.first && text.includes(`${mark}-first`)) times.first = performance.now();
    if (text.includes(`${mark}-last`)) times.last = performance.now();
    if (times.last) { observer.disconnect(); resolve(times); }
  };
  const pressed = (event) => { if (event.key === 'Enter') times.enter = performance.now(); };
  addEventListener('keydown', pressed, { capture: true, once: true });
  const observer = new MutationObserver((changes) => {
    for (const change of changes) {
      if (change.type === 'characterData') see(change.target.data);
      for (const node of change.addedNodes) see(node.textContent || '');
    }
  });
  observer.observe(document.body, { subtree: true, childList: true, characterData: true });
});
"""


@dataclass(frozen=True)
class Subject:
    """A running page."""

    name: str
    url: str
    pid: int
    store: Store | None = None
    """Ours keeps what was said there; the plain page starts with it."""

    def cpu_s(self) -> float:
        """CPU time of the server and its children so far, in seconds."""
        root = psutil.Process(self.pid)
        times = [process.cpu_times() for process in (root, *root.children(recursive=True))]
        return sum(one.user + one.system for one in times)

    async def idle(self) -> None:
        before = self.cpu_s()
        while True:
            await asyncio.sleep(QUIET_S)
            now = self.cpu_s()
            if now - before <= 0.02:
                return
            before = now


@asynccontextmanager
async def ours(folder: Path, base_url: str) -> AsyncGenerator[Subject]:
    async with site(folder, **provided_by(base_url), **ROOMY) as running:
        store = Store.open(f"sqlite:///{folder / 'data' / 'carboncopy.db'}")
        yield Subject("ours", running.url, running.program.pid, store)
        await store.close()


@asynccontextmanager
async def plain(folder: Path, base_url: str, messages: int) -> AsyncGenerator[Subject]:
    port = free_port()
    settings = {"PORT": str(port), "BASE_URL": base_url, "EARLIER": str(messages), "GRADIO_ANALYTICS_ENABLED": "False"}
    environment = clean_environment(folder) | settings
    program = Program(python("-m", "bench.plain_page"), ROOT, environment, folder / f"plain-{messages}.log")
    try:
        url = f"http://127.0.0.1:{port}"
        await program.answers(url)
        yield Subject("plain", url, program.pid)
    finally:
        await program.stop()


@asynccontextmanager
async def visit(browser: Browser, subject: Subject, messages: int) -> AsyncGenerator[Page]:
    """A visitor whose page shows so many earlier messages, and is done loading."""
    context = await browser.new_context(base_url=subject.url)
    await context.add_init_script(WATCH)
    if subject.store and messages:
        conversation = secrets.token_urlsafe(24)
        for question, answer in earlier(messages // 2):
            number = await subject.store.open_turn(conversation, question)
            turn = Turn(question, (Step(Reply(answer)),))
            await subject.store.close_turn(conversation, number, turn, "answered")
        await context.add_init_script(f"localStorage.setItem('replica.conversation', '{conversation}')")
    page = await context.new_page()
    await page.goto("/")
    await page.locator("textarea").wait_for()
    shown = page.locator("[data-testid=bot]")
    await shown.nth(messages // 2 - 1).wait_for() if messages else None
    assert await shown.count() == messages // 2, f"{subject.name} shows {await shown.count()} replies"
    await subject.idle()  # the page's own script runs by now
    # What comes once in a long conversation is not what we measure: ours writes a summary of its beginning.
    await ask(page, 2)
    await subject.idle()
    yield page
    await context.close()


async def ask(page: Page, tokens: int) -> float:
    """Sends a message and waits for the whole reply. Gives the time from Enter to the first words, in seconds."""
    mark = f"m{secrets.token_hex(4)}"
    await page.locator("textarea").fill(f"go {tokens} {mark}")
    seen = asyncio.create_task(page.evaluate(f"marked('{mark}')"))
    await page.evaluate("1")  # the watching has begun
    await page.locator("textarea").press("Enter")
    times: dict[str, float] = await asyncio.wait_for(seen, 120)
    return (times["first"] - times["enter"]) / 1000


async def cpu_of_a_reply(browser: Browser, subject: Subject, messages: int, tokens: int) -> float:
    """In seconds."""
    async with visit(browser, subject, messages) as page:
        before = subject.cpu_s()
        await ask(page, tokens)
        await subject.idle()
        return subject.cpu_s() - before


async def first_words(browser: Browser, subject: Subject, messages: int) -> list[float]:
    """Of each of several visitors who press Enter at the same time, in seconds. The provider's first words come at
    once, so that there is nothing of its own to take off."""
    async with AsyncExitStack() as stack:
        pages = [await stack.enter_async_context(visit(browser, subject, messages)) for _ in range(AT_ONCE)]
        return list(await asyncio.gather(*(ask(page, TOKENS[0]) for page in pages)))


class Table:
    """Prints medians side by side, and how they stand to the aims."""

    def __init__(self) -> None:
        self.cpu: dict[tuple[str, int, int], list[float]] = {}
        self.first: dict[tuple[str, int], list[float]] = {}

    def show(self) -> None:
        say("\nServer CPU of one streamed reply, ms (median)\n")
        say("tokens  earlier     ours    plain   plain/ours")
        for tokens, messages in sorted({key[1:] for key in self.cpu}):
            own, other = (median(self.cpu[name, tokens, messages]) for name in ("ours", "plain"))
            say(f"{tokens:6}  {messages:7}  {own * 1000:7.0f}  {other * 1000:7.0f}  {other / own:10.1f}x")
        say(f"\nEnter to the first words, ms, {AT_ONCE} visitors at once (median, worst)\n")
        say("earlier          ours         plain")
        for messages in sorted({key[1] for key in self.first}):
            cells = [self.first[name, messages] for name in ("ours", "plain")]
            say(f"{messages:7}" + "".join(f"  {median(c) * 1000:6.0f} {max(c) * 1000:5.0f}" for c in cells))
        self._aims()

    def _aims(self) -> None:
        own = {key[2]: median(values) for key, values in self.cpu.items() if key[:2] == ("ours", 600)}
        other = {key[2]: median(values) for key, values in self.cpu.items() if key[:2] == ("plain", 600)}
        say("")
        aim("ours / plain at 600 tokens after 200 messages", own[200] / other[200], 1 / 5)
        aim("ours at 600 tokens: after 200 messages / after none", own[200] / own[0], 1.3)
        for messages in (0, 200):
            value = median(self.first["ours", messages]) * 1000
            aim(f"ms to our first words after {messages} messages", value, 120)


def aim(what: str, value: float, most: float) -> None:
    say(f"{'met   ' if value <= most else 'MISSED'}  {what}: {value:.3g} (aim: at most {most:.3g})")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(rounds: int) -> None:
    end_in_order()
    table = Table()
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    async with AsyncExitStack() as stack:
        port = free_port()
        provider = Program(python("-m", "bench.provider", str(port)), ROOT, clean_environment(folder), folder / "p.log")
        stack.push_async_callback(provider.stop)
        await provider.answers(f"http://127.0.0.1:{port}/")
        base_url = f"http://127.0.0.1:{port}/v1"
        own = await stack.enter_async_context(ours(folder / "ours", base_url))
        others = {n: await stack.enter_async_context(plain(folder, base_url, n)) for n in EARLIER}
        chromium = await stack.enter_async_context(browser())
        for messages in EARLIER:  # warms up; not counted
            await cpu_of_a_reply(chromium, own, messages, TOKENS[0])
            await cpu_of_a_reply(chromium, others[messages], messages, TOKENS[0])
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for messages in EARLIER:
                for tokens in TOKENS:
                    for subject in (own, others[messages]):
                        spent = await cpu_of_a_reply(chromium, subject, messages, tokens)
                        table.cpu.setdefault((subject.name, tokens, messages), []).append(spent)
            for messages in (EARLIER[0], EARLIER[-1]):
                for subject in (own, others[messages]):
                    times = await first_words(chromium, subject, messages)
                    table.first.setdefault((subject.name, messages), []).extend(times)
    table.show()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="each pair is measured so many times")
    asyncio.run(main(parser.parse_args().rounds))
