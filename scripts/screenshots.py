"""Pictures of the chat page: desktop and phone, light and dark; each of the states below.

Run it with `python -m scripts.screenshots [folder [state ...]]`. It starts all that it needs.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import expect

from store.store import Store
from tests import owner_house
from tests.e2e.browser import Complaints, Visitor, Visitors, browser
from tests.e2e.programs import end_in_order
from tests.e2e.replica import ROOMY, Site, provided_by, site
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
PASSED_ON = "I do not know that, and have passed your question on."
THANKS = "Thank you, Grace. I have passed your details on, and you will hear from the owner of this page."
LONG = WORK.split("\n\n", maxsplit=1)[0] + " It began with a visit to Mr Babbage's house, where the small engine stood"


QUESTION = "Which programming language would you choose for a music box?"
ANSWERED = """I would not choose one before I knew the box. If it has **less than 64 KB**, then Forth; else Rust.

I wrote about [composing by machine](https://example.org) in Note A."""
SOURCED = f"{WORK.split(':', maxsplit=1)[0]}.\n\nSources: 02-analytical-engine.md › What each Note covers; 04-faq.md"


@dataclass
class Scene:
    """What a state is reached with."""

    provider: Provider
    site: Site

    @asynccontextmanager
    async def store(self) -> AsyncGenerator[Store]:
        store = Store.open(f"sqlite:///{self.site.folder / 'data' / 'carboncopy.db'}")
        try:
            yield store
        finally:
            await store.close()


def contact() -> Answer:
    details = {"email": "grace@example.org", "notes": "Would like to talk about compilers.", "name": "Grace Hopper"}
    return calls(("gather_user_details", json.dumps(details)))


async def empty(visitor: Visitor, scene: Scene) -> None:
    await visitor.page.evaluate("document.activeElement.blur()")


async def conversation(visitor: Visitor, scene: Scene) -> None:
    scene.provider.script = [says(WORK), contact(), says(THANKS)]
    await visitor.ask("What did you do on the Analytical Engine?")
    await visitor.ask("I would like to talk about compilers. I am Grace Hopper, grace@example.org")
    await visitor.button("Good reply").last.click()


async def busy(visitor: Visitor, scene: Scene) -> None:
    scene.provider.script = [says(THANKS), says(LONG)]
    scene.provider.script[-1].hold = asyncio.Event()
    await visitor.ask("May I leave my address?")
    await visitor.say("And how did it begin?")
    await expect(visitor.reply).to_contain_text("small engine stood")


async def failed(visitor: Visitor, scene: Scene) -> None:
    scene.provider.script = [says("Good day. What would you like to know?"), Answer(status=401)]
    await visitor.ask("Good day!")
    await visitor.ask("What did you do on the Analytical Engine?")


async def owner(visitor: Visitor, scene: Scene) -> None:
    scene.provider.script = [
        calls(("inform_unknown", json.dumps({"question": "What to write for a music box in?"}))),
        says(PASSED_ON),
    ]
    await visitor.ask(QUESTION)
    talk = await visitor.conversation()
    async with scene.store() as store:
        reference = await owner_house.ask(store, QUESTION, talk)
        await owner_house.answer(store, reference, ANSWERED)
        await owner_house.did(store, lambda owner: owner.tell(talk, "I have also sent you a letter."))
    await expect(visitor.page.get_by_test_id("owner")).to_have_count(2)


async def unseen(visitor: Visitor, scene: Scene) -> None:
    scene.provider.script = [says(WORK), says(WORK)]
    await visitor.ask("What did you do on the Analytical Engine?")
    await visitor.ask("Once more, please?")
    await visitor.page.locator("#talk").evaluate("node => { node.scrollTop = 60; }")
    talk = await visitor.conversation()
    async with scene.store() as store:
        await owner_house.did(store, lambda owner: owner.tell(talk, "I have also sent you a letter."))
    await expect(visitor.button("wrote to you")).to_be_visible()


async def sources(visitor: Visitor, scene: Scene) -> None:
    scene.provider.script = [says(SOURCED), says(SOURCED)]
    await visitor.ask("What did you do on the Analytical Engine?")
    await visitor.ask("Once more, please?")
    await visitor.page.locator(".sources button").nth(2).click()


async def closed(visitor: Visitor, scene: Scene) -> None:
    scene.provider.script = [says(THANKS)]
    await visitor.ask("May I leave my address?")
    await visitor.box.fill("What I wrote meanwhile")
    async with scene.store() as store:
        await store.set_state("paused", "{}")
        await expect(visitor.page.locator("#sign")).to_contain_text("closed")
        await store.set_state("paused", None)


STATES: dict[str, Callable[[Visitor, Scene], Awaitable[None]]] = {
    "empty": empty,
    "conversation": conversation,
    "busy": busy,
    "failed": failed,
    "owner": owner,
    "unseen": unseen,
    "sources": sources,
    "closed": closed,
}


async def main(folder: Path, states: list[str]) -> None:
    end_in_order()
    home = Path(tempfile.mkdtemp(prefix="screenshots-")) / "replica"
    async with (
        serving() as provider,
        site(home, **provided_by(provider.base_url), **ROOMY) as running,
        browser() as chromium,
    ):
        scene = Scene(provider, running)
        for state in states or STATES:
            for shape, options in SHAPES.items():
                for scheme in SCHEMES:
                    visitors = Visitors(chromium, running.url, Complaints(running.url))
                    visitor = await visitors.one(color_scheme=scheme, **options)
                    await STATES[state](visitor, scene)
                    picture = folder / f"{state}-{shape}-{scheme}.png"
                    await visitor.page.screenshot(path=picture, animations="disabled")
                    sys.stdout.write(f"{picture}\n")
                    if await visitor.button("Stop").is_visible():
                        await visitor.button("Stop").click()
                        await visitor.settled()
                    await visitors.leave()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/screenshots"), sys.argv[2:]))
