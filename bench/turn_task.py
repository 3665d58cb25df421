"""The turn that is measured, the same for all: a visitor leaves an address, a tool stores it, an answer is streamed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agent.toolkit import Tool, Visit
from tools.gather_user_details import NAME, GatherUserDetails

MODEL = "bench"
MAX_TOKENS = 800

_FACT = (
    "Since {year} I have built payment systems for a bank in Lisbon: ledgers, settlement, and the reports that "
    "auditors read, in Python and Go, with a team of {people} people whom I hired and who still work together. "
)
PERSONA = "You are the digital replica of Ada.\n" + "".join(
    _FACT.format(year=1980 + number, people=number + 2) for number in range(42)
)
"""About 2,000 tokens."""
MESSAGE = "We look for somebody to lead our payments team. Please write to me: grace@example.org, Grace Hopper"
ARGUMENTS = {
    "email": "grace@example.org",
    "notes": "Looks for somebody to lead a payments team.",
    "name": "Grace Hopper",
}
_SENTENCE = "thank you Grace I have passed your address on and will write to you soon"
ANSWER = tuple(f"{word} " for word in _SENTENCE.split()) * 4
"""60 tokens."""

Show = Callable[[str], None]
"""Takes each piece of the answer as it comes."""
AnswerOnce = Callable[[Show], Awaitable[None]]
"""One whole turn, from the visitor's message to the end of the answer."""


class Contacts:
    """Where everybody's tool puts a contact. Nothing is stored: a database would cost all of them the same."""

    def __init__(self) -> None:
        self.kept: list[dict[str, str]] = []

    def keep(self, email: str, notes: str, name: str = "") -> str:
        self.kept.append({"email": email, "notes": notes, "name": name})
        return "ok"


def our_tool(contacts: Contacts) -> Tool[GatherUserDetails]:
    """The product's tool with its real schema and validation; only what it does is left out."""

    async def run(arguments: GatherUserDetails, _: Visit) -> str:
        return contacts.keep(arguments.email, arguments.notes, arguments.name)

    return Tool(NAME, GatherUserDetails, run, working="", done="")


def tool_schema() -> dict[str, Any]:
    """The tool as the chat-completions format declares it."""
    return our_tool(Contacts()).schema()


def description() -> str:
    """What the model reads about the tool: the same text for all."""
    return tool_schema()["function"]["description"]
