"""One contestant in a process of its own: takes as many turns as it is told to, and says what they took."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable

from agent.conversation import Conversation
from agent.events import TextDelta, TurnFinished
from agent.loop import Replica, respond
from agent.model import open_provider
from agent.toolkit import Toolkit
from bench import turn_peers
from bench.turn_task import ANSWER, ARGUMENTS, MAX_TOKENS, MESSAGE, MODEL, PERSONA, AnswerOnce, Contacts, Show, our_tool

Contestant = Callable[[str, Contacts], AnswerOnce]


def ours(base_url: str, contacts: Contacts) -> AnswerOnce:
    model = open_provider(MODEL, None, base_url, max_output_tokens=MAX_TOKENS, timeout_s=60)
    replica = Replica(model, Toolkit(our_tool(contacts)), PERSONA)

    async def answer(show: Show) -> None:
        async for event in respond(replica, Conversation(), MESSAGE, "bench"):
            match event:
                case TextDelta(text):
                    show(text)
                case TurnFinished(_, stop):
                    assert stop == "answered", stop
                case _:
                    pass

    return answer


CONTESTANTS: dict[str, Contestant] = {
    "bare loop": turn_peers.bare,
    "ours": ours,
    "openai-agents": turn_peers.openai_agents,
    "langchain": turn_peers.langchain,
    "pydantic-ai": turn_peers.pydantic_ai,
}


async def take_turns(answer: AnswerOnce, contacts: Contacts, count: int) -> tuple[float, float]:
    """CPU (user and system, all threads) and wall clock of a turn on average, in seconds. The garbage that turns leave
    is part of what they cost, so no turn is left out. The one before them is not counted: connections have been
    idle."""
    await one_turn(answer, contacts)
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(count):
        await one_turn(answer, contacts)
    return (time.process_time() - cpu) / count, (time.perf_counter() - wall) / count


async def one_turn(answer: AnswerOnce, contacts: Contacts) -> None:
    """A turn, and a look at whether everything was done: the call once, the answer whole and in pieces."""
    contacts.kept.clear()
    shown: list[str] = []
    await answer(shown.append)
    assert contacts.kept == [ARGUMENTS], contacts.kept
    assert "".join(shown).strip() == "".join(ANSWER).strip(), shown
    assert len(shown) >= len(ANSWER) - 1, f"only {len(shown)} pieces"


async def main(name: str, base_url: str) -> None:
    contacts = Contacts()
    answer = CONTESTANTS[name](base_url, contacts)
    while count := (await asyncio.to_thread(sys.stdin.readline)).strip():
        sys.stdout.write(json.dumps(await take_turns(answer, contacts, int(count))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
