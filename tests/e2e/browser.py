"""A visitor in a headless Chromium, and what the browser complains of or sends elsewhere meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    async_playwright,
    expect,
)

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MACOS = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")

ANSWER_S = 20.0

WATCH = """
addEventListener('securitypolicyviolation', (e) => console.error(`CSP: ${e.violatedDirective} ${e.blockedURI}`));
window.seen = [];  // every length at which the newest reply was seen
new MutationObserver(() => {
  const bots = document.querySelectorAll('[data-testid=bot]');
  const length = bots.length ? bots[bots.length - 1].textContent.length : 0;
  if (length && window.seen.at(-1) !== length) window.seen.push(length);
}).observe(document, { subtree: true, childList: true, characterData: true });
"""


def chromium() -> str | None:
    """The browser of this machine; None where there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return found or (str(MACOS) if MACOS.exists() else None)


@asynccontextmanager
async def browser() -> AsyncGenerator[Browser]:
    expect.set_options(timeout=ANSWER_S * 1000)  # a busy machine is slow, and that is no fault
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield running
        await running.close()


@dataclass
class Complaints:
    """What a good page never causes."""

    origin: str
    found: list[str] = field(default_factory=list[str])

    def watch(self, context: BrowserContext) -> None:
        context.on("request", self._on_request)
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.found.append(f"error in a script: {error.error}"))

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob", "about") and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.found.append(f"a request to elsewhere: {request.url}")

    def _on_console(self, message: ConsoleMessage) -> None:
        # An event stream that the page closes is reported as aborted.
        if message.type == "error" and "net::ERR_ABORTED" not in message.text:
            self.found.append(f"console: {message.text} ({message.location.get('url', '')})")


class Visitor:
    """One person with one tab."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.box = page.locator("textarea")
        self.questions = page.get_by_test_id("user")
        self.replies = page.get_by_test_id("bot")
        self.turns = page.locator("article")
        self.notice = page.locator("p[role=status]")
        """The page's own; Gradio has one that says `Loading`."""

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name)

    @property
    def reply(self) -> Locator:
        """The newest one."""
        return self.replies.last

    async def arrive(self) -> None:
        """Opens the page and waits until one can write."""
        await self.page.goto("/")
        await expect(self.page.get_by_role("heading", level=1)).to_be_visible()  # drawn by the page's own script
        await expect(self.box).to_be_editable()

    async def say(self, text: str) -> None:
        """Writes and sends; does not wait for the answer."""
        before = await self.questions.count()
        await self.box.fill(text)
        await self.box.press("Enter")
        await expect(self.questions).to_have_count(before + 1)

    async def ask(self, text: str) -> str:
        """Writes, sends, waits for the whole answer and reads it."""
        await self.say(text)
        return await self.hears()

    async def hears(self) -> str:
        """Waits until the newest reply is whole, and reads it."""
        await self.settled()
        await expect(self.reply).not_to_be_empty(timeout=ANSWER_S * 1000)
        return await self.reply.inner_text()

    async def settled(self) -> None:
        """Waits until nothing is being written."""
        await expect(self.page.locator("[data-testid=bot][aria-busy=true]")).to_have_count(0, timeout=ANSWER_S * 1000)
        await expect(self.button("Stop")).to_be_hidden()

    async def lengths(self) -> list[int]:
        """Lengths at which the newest reply was seen, in order."""
        return await self.page.evaluate("window.seen")

    async def conversation(self) -> str:
        """The id that the browser keeps; empty before the first reply."""
        kept: list[str] = await self.page.evaluate("Object.values(localStorage)")
        return next((value for value in kept if len(value) == 32), "")


@dataclass
class Visitors:
    """Lets people in. All that their browsers complain of is collected."""

    browser: Browser
    origin: str
    complaints: Complaints
    contexts: list[BrowserContext] = field(default_factory=list[BrowserContext])

    async def one(self, **context: Any) -> Visitor:
        """Somebody new, with an empty browser, who has opened the page."""
        return await self.tab(await self.context(**context))

    async def on_a_phone(self, **context: Any) -> Visitor:
        return await self.one(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, **context)

    async def context(self, **context: Any) -> BrowserContext:
        made = await self.browser.new_context(base_url=self.origin, locale="en-GB", **context)
        self.complaints.watch(made)
        await made.add_init_script(WATCH)
        self.contexts.append(made)
        return made

    async def tab(self, context: BrowserContext) -> Visitor:
        visitor = Visitor(await context.new_page())
        await visitor.arrive()
        return visitor

    async def leave(self) -> None:
        for context in self.contexts:
            await context.close()
