"""How a model goes on that takes no tools: addresses come from what the visitor wrote, results become text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from agent.conversation import ToolCall, WireMessage

FindAddresses = Callable[[str], Sequence[str]]
"""Finds what looks like an address in a text; the tool decides whether it is one."""

MAX_NOTES_CHARS = 1000

_AROUND = "<>()[]\"'“”`*_,.!?:"
"""What stands around an address in a sentence."""


def call_in_message(
    messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], find: FindAddresses
) -> ToolCall | None:
    """The call that an address in the visitor's last message asks for; None behind the results of one."""
    last = messages[-1]
    if last["role"] != "user":
        return None
    return call_for_address(str(last["content"]), tools, find)


def call_for_address(text: str, tools: Sequence[dict[str, Any]], find: FindAddresses | None = None) -> ToolCall | None:
    """The call that takes the addresses in a text, by the tool that asks for one."""
    addresses = (find or addresses_in)(text)
    tool = tool_asking_for("email", tools) if addresses else None
    if tool is None:
        return None
    return calling(tool, email="; ".join(addresses), notes=text[:MAX_NOTES_CHARS], name=name_in(text))


def without_tools(messages: Sequence[WireMessage]) -> list[WireMessage]:
    """The same conversation for a provider that knows no tools: what they answered joins the system message."""
    system, *rest = messages
    since = max(number for number, message in enumerate(rest) if message["role"] == "user")
    results = [str(message["content"]) for message in rest[since:] if message["role"] == "tool"]
    told = (
        f"{system['content']}\n\nThe visitor's details were passed on to be stored; the answer: {results[-1]}"
        if results
        else ""
    )
    kept = [message for message in rest if message["role"] != "tool" and "tool_calls" not in message]
    return [{"role": "system", "content": told or system["content"]}, *kept]


def fields_of(tools: Sequence[dict[str, Any]]) -> dict[str, Sequence[str]]:
    """The names of the tools' fields, by the tools' names."""
    return {tool["function"]["name"]: tuple(tool["function"]["parameters"]["properties"]) for tool in tools}


def tool_asking_for(field: str, tools: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The first tool with a parameter of this name: nothing here knows a tool by its own name."""
    return next((tool for tool in tools if field in tool["function"]["parameters"]["properties"]), None)


def calling(tool: dict[str, Any], **values: str) -> ToolCall:
    """A call of a tool with those values that it has parameters for."""
    known = tool["function"]["parameters"]["properties"]
    arguments = {name: value for name, value in values.items() if name in known and value}
    return ToolCall("call_0", tool["function"]["name"], json.dumps(arguments, ensure_ascii=False))


def addresses_in(text: str) -> list[str]:
    """Whatever looks like an address; the tool decides whether it is one."""
    found = (word.strip(_AROUND) for word in _words(text) if _is_address(word))
    return list(dict.fromkeys(found))


def without_addresses(text: str) -> str:
    return " ".join(word for word in _words(text) if not _is_address(word))


def name_in(text: str) -> str:
    """The name by which a visitor introduces themselves; empty when they do not."""
    found = re.search(r"\b(?:I am|I['’]m|[Mm]y name is|[Tt]his is)\s+((?:[A-Z][\w'’-]+\s?){1,3})", text)
    return found.group(1).strip() if found else ""


def _words(text: str) -> list[str]:
    return re.split(r"[\s;]+", text.replace("\N{FULLWIDTH COMMERCIAL AT}", "@"))


def _is_address(word: str) -> bool:
    before, at, behind = word.strip(_AROUND).partition("@")
    is_of_a_machine = before == "git" or "://" in word  # where code lies, or a web address with a password in it
    return bool(before and at and behind) and not is_of_a_machine
