"""Pictures of the chat page: desktop and phone, light and dark; empty, in conversation, busy, failed.

Run it with `python -m scripts.screenshots [folder]`. It starts all that it needs.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from playwright.async_api import expect

from tests.e2e.browser import Complaints, Visitor, Visitors, browser
from tests.e2e.programs import end_in_order
from tests.e2e.replica import ROOMY, provided_by, site
from tests.fakes.provider import Answer, Provider, calls, says, serving

SHAPES: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
    },
}
SCHEMES = ("light", "dark")

WORK = """In 1843 I translated Menabrea's paper on the **Analytical Engine** and added seven notes, three times as \
long as the paper itself. Three things in them matter to me:

1. The engine works on anything whose relations can be written down, music among them.
2. Note G sets out, step by step, how it would compute the numbers of Bernoulli.
3. It originates nothing: it does whatever we know how to order it to perform.

| Note | What it is about |
|---|---|
| A | how the engine differs from the Difference Engine |
| G | the numbers of Bernoulli, and what the engine cannot do |
"""
THANKS = "Thank you, Grace. I have passed your details on, and you will hear from the owner of this page."
LONG = WORK.split("\n\n", maxsplit=1)[0] + " It began with a visit to Mr Babbage's house, where the small engine stood"


def contact() -> Answer:
    details = {"email": "grace@example.org", "notes": "Would like to talk about compilers.", "name": "Grace Hopper"}
    return calls(("gather_user_details", json.dumps(details)))


async def empty(visitor: Visitor, provider: Provider) -> None:
    await visitor.page.evaluate("document.activeElement.blur()")


async def conversation(visitor: Visitor, provider: Provider) -> None:
    provider.script = [says(WORK), contact(), says(THANKS)]
    await visitor.ask("What did you do on the Analytical Engine?")
    await visitor.ask("I would like to talk about compilers. I am Grace Hopper, grace@example.org")
    await visitor.button("Good reply").last.click()


async def busy(visitor: Visitor, provider: Provider) -> None:
    provider.script = [says(THANKS), says(LONG)]
    provider.script[-1].hold = asyncio.Event()
    await visitor.ask("May I leave my address?")
    await visitor.say("And how did it begin?")
    await expect(visitor.reply).to_contain_text("small engine stood")


async def failed(visitor: Visitor, provider: Provider) -> None:
    provider.script = [says("Good day. What would you like to know?"), Answer(status=401)]
    await visitor.ask("Good day!")
    await visitor.ask("What did you do on the Analytical Engine?")


STATES: dict[str, Callable[[Visitor, Provider], Awaitable[None]]] = {
    "empty": empty,
    "conversation": conversation,
    "busy": busy,
    "failed": failed,
}


async def main(folder: Path) -> None:
    end_in_order()
    home = Path(tempfile.mkdtemp(prefix="screenshots-")) / "replica"
    async with (
        serving() as provider,
        site(home, **provided_by(provider.base_url), **ROOMY) as running,
        browser() as chromium,
    ):
        for state, reach in STATES.items():
            for shape, options in SHAPES.items():
                for scheme in SCHEMES:
                    visitors = Visitors(chromium, running.url, Complaints(running.url))
                    visitor = await visitors.one(color_scheme=scheme, **options)
                    await reach(visitor, provider)
                    picture = folder / f"{state}-{shape}-{scheme}.png"
                    await visitor.page.screenshot(path=picture, animations="disabled")
                    sys.stdout.write(f"{picture}\n")
                    if await visitor.button("Stop").is_visible():
                        await visitor.button("Stop").click()
                        await visitor.settled()
                    await visitors.leave()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/screenshots")))
