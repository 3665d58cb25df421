"""A talk of many turns with a scripted provider: what each request holds beside the one before it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.answers import Answers
from agent.briefing import Briefing
from agent.finding.index import open_index
from agent.fitting import SUMMARISE, Fitting
from agent.loop import Replica
from agent.model import open_provider
from agent.reception import Reception
from agent.room import estimate_tokens, room_for
from alerts.outbox import Outbox
from store.store import Store
from tests.fakes.provider import Answer, Provider, says
from tests.shelves import library_of
from tools.registry import toolkit

FACT = "I am Sarah Field of TechFirm, and we need a bridge over the Humber by 2031."
"""What the visitor says first."""
KEPT = "Sarah Field"
MAX_OUTPUT_TOKENS = 800


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a talk."""

    text: str
    """Tools and messages as a provider reads them: the tools come first."""
    system: str
    first: str
    """The first message that was not summarised."""

    def shared_with(self, before: Request) -> float:
        """The share of this request, from its beginning, that the one before had."""
        pairs = enumerate(zip(self.text, before.text, strict=False))
        apart = next((place for place, (now, then) in pairs if now != then), min(len(self.text), len(before.text)))
        return apart / len(self.text)

    def is_shortened_from(self, before: Request) -> bool:
        return self.first != before.first or self.system != before.system

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.text)


async def talk(
    provider: Provider, folder: Path, data: Path, questions: Sequence[str], context_tokens: int = 16_000
) -> list[Request]:
    """Has a talk over a folder of files, a request a question."""
    provider.answer = copying
    store = Store.open(f"sqlite:///{data}/talk.db")
    model = open_provider("scripted", None, provider.base_url, max_output_tokens=MAX_OUTPUT_TOKENS, timeout_s=30)
    tools = toolkit(Outbox(store, []))
    room = room_for(tools, context_tokens, MAX_OUTPUT_TOKENS, 2)
    with closing(open_index(data)) as index:
        library = library_of(folder, index, room, tools)
        briefing = Briefing(library, Answers(store, room.for_answers), Fitting(room, can_write=True))
        reception = Reception(
            Replica(model, tools, ""), store, max_replies=1, max_message_chars=4000, briefing=briefing
        )
        for question in questions:
            async for _ in reception.answer("c", question):
                pass
    await model.close()
    await store.close()
    return [read(asked) for asked in provider.requests if asked["messages"][0]["content"] != SUMMARISE]


def read(asked: dict[str, Any]) -> Request:
    messages = asked["messages"]
    text = json.dumps([asked.get("tools"), messages], ensure_ascii=False)
    return Request(text, messages[0]["content"], messages[1]["content"])


def copying(asked: dict[str, Any]) -> Answer:
    """Answers in three sentences; of a summary, copies whatever was said of the visitor."""
    system, last = (asked["messages"][place]["content"] for place in (0, -1))
    if system == SUMMARISE:
        kept = [line for line in last.splitlines() if KEPT in line]
        return says(f"They talked about bridges. {' '.join(kept)[:400]}")
    words = [word.strip("?.,") for word in last.split()[:6]]
    return says(
        f"You ask about {' '.join(words)}. I built it with two colleagues in the years that I spent at Northwind, "
        "and it is still in use. It taught me more than any course that I took, and I like to talk about it."
    )


def write_files(folder: Path, sections: int, words: Sequence[str]) -> list[str]:
    """A folder about a person, the same at each run. Gives a question for each of fifty turns."""
    draw = random.Random(7)
    folder.mkdir(parents=True)
    (folder / "00-me.md").write_text("# Jo Example\n\nI build bridges.\n\n## Work\n\nAt Northwind since 2019.\n")
    told = list(_sections(draw, sections, words))
    for start in range(0, sections, 50):
        text = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in told[start : start + 50])
        (folder / f"notes-{start:05}.md").write_text(text)
    asked = [f"What is it about {' and '.join(draw.sample(text.split(), 3))}?" for _, text in told]
    return [FACT, *(asked[place * len(asked) // 49] for place in range(49))]


def _sections(draw: random.Random, count: int, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number in range(count):
        sentences = [" ".join(draw.choices(words, k=draw.randint(8, 16))).capitalize() for _ in range(5)]
        yield f"{draw.choice(words).capitalize()} {number}", ". ".join(sentences) + "."
