"""The model when there is none: it answers by quoting the owner's files, and calls the same tools."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol, cast

from agent.conversation import Reply, ToolCall, WireMessage
from agent.finding.search import asked_in
from agent.model import ToolChoice
from agent.passages import Passage, footnote
from agent.small_talk import bare, is_question, small_talk, wants_contact
from agent.toolkit import OK
from agent.toolless import FindAddresses, addresses_in, call_for_address, calling, tool_asking_for, without_addresses

NOTICE = "(No language model is set up here, so I answer by quoting my notes.)"
NOTICE_RESTING = (
    "(I have talked enough for today, so I answer by quoting my notes. "
    "Leave your e-mail address here and I will pass it on.)"
)
"""When the day's tokens are used up."""

UNKNOWN = (
    "My notes do not answer that, so I have passed your question on. "
    "If you would like the answer, leave your e-mail address here."
)
UNKNOWN_WITH_ADDRESS = (
    "My notes do not answer that, so I have passed your question on. The answer can go to the address that you left."
)
UNKNOWN_KEPT = "My notes do not answer that."
INVITE = "Leave your e-mail address here, with a line about what you have in mind, and I will pass it on."
NOT_A_QUESTION = (
    "I am not sure what you would like to know. Ask me about my work, my background or how to get in touch."
)
DID_YOU_MEAN = "Did you mean"
BAD_ADDRESS = "That e-mail address does not look right. Could you check it and write it again?"


class Finder(Protocol):
    """What the keyless model needs of a search."""

    async def answering(self, question: str) -> tuple[Passage, ...]:
        """The passages that answer, best first; empty when none does."""
        ...


class OfflineModel:
    """Quotes passages. It knows the tools by what they ask for, as any model does.

    Args:
        owner: whose replica it is.
        line: about them.
        notes: finds the passages.
        notice: why it quotes, said once in a conversation.
        find_addresses: finds them in what a visitor wrote.
    """

    def __init__(
        self,
        owner: str,
        line: str,
        notes: Finder,
        notice: str = NOTICE,
        find_addresses: FindAddresses = addresses_in,
    ) -> None:
        self.name = "quoting notes (no model configured)"
        self._owner = owner
        self._line = line
        self._notes = notes
        self._notice = notice
        self._find_addresses = find_addresses

    async def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        asked = _confirmed(messages) or _last_question(messages)
        results = _results(messages)
        call = None if results or tool_choice == "none" else await self._call(asked, tools)
        if call:
            yield Reply(calls=(call,), finish="tool_calls")
            return
        text = await self._text(asked, results, messages)
        for sentence in re.findall(r"\S+\s*|\s+", text):
            yield sentence
        yield Reply(text)

    async def close(self) -> None:
        """Nothing to give back."""

    async def _call(self, asked: str, tools: Sequence[dict[str, Any]]) -> ToolCall | None:
        if call := call_for_address(asked, tools, self._find_addresses):
            return call
        if small_talk(asked) or wants_contact(asked) or not is_question(asked):
            return None
        if (tool := tool_asking_for("question", tools)) and not await self._find(asked):
            return calling(tool, question=asked_in(asked))
        return None

    async def _text(self, asked: str, results: Sequence[tuple[str, str]], messages: Sequence[WireMessage]) -> str:
        has_address = _has_left_address(messages)
        parts = [self._after_tool(asked, arguments, result, has_address) for arguments, result in results]
        sources: Sequence[str] = ()
        if not results or self._find_addresses(asked):
            answer, sources = await self._answer(without_addresses(asked), alone=not results)
            parts.append(answer)
        if not any(
            self._notice in str(message.get("content")) for message in messages if message["role"] == "assistant"
        ):
            parts.append(f"*{self._notice}*")
        return "\n\n".join(part for part in parts if part) + footnote(sources)

    async def _answer(self, asked: str, *, alone: bool) -> tuple[str, Sequence[str]]:
        """What the notes say, and where. Beside a tool's result (not `alone`) silence is better than a phrase."""
        found = await self._find(asked) if is_question(asked) or (alone and not small_talk(asked)) else ()
        talk = self._small_talk_answer(small_talk(asked)) if alone else ""
        if talk:
            return talk, ()
        if found:
            return "\n\n".join(one.text for one in found), tuple(dict.fromkeys(one.label for one in found))
        if not alone:
            return "", ()
        if wants_contact(asked):
            return INVITE, ()
        return (UNKNOWN_KEPT if is_question(asked) else NOT_A_QUESTION), ()

    async def _find(self, asked: str) -> tuple[Passage, ...]:
        return await self._notes.answering(asked)

    def _after_tool(self, asked: str, arguments: str, result: str, has_address: bool) -> str:
        values = cast(dict[str, Any], json.loads(arguments))
        if "email" not in values:
            passed_on = UNKNOWN_WITH_ADDRESS if has_address else UNKNOWN
            return passed_on if result == OK else UNKNOWN_KEPT
        if result == OK:
            return f"Thank you. I have passed your details on: {self._owner} can write to you at {values['email']}."
        named = [address for address in self._find_addresses(result) if address.lower() not in asked.lower()]
        if named:
            return f"{DID_YOU_MEAN} {named[0]}? Say yes, or write the address again."
        if len(self._find_addresses(asked)) > 1:
            return f"Which address should I pass on: {' or '.join(self._find_addresses(asked))}?"
        return BAD_ADDRESS

    def _small_talk_answer(self, kind: str) -> str:
        about = f" {self._line}" if self._line else ""
        return {
            "greeting": f"Hello, I am the digital replica of {self._owner}. What would you like to know?",
            "thanks": "You are welcome. Is there anything else you would like to know?",
            "farewell": "Goodbye, and thank you for coming by.",
            "who": (
                f"I am the digital replica of {self._owner}: not the person, but a page that answers from their own "
                f"notes.{about} {INVITE}"
            ),
        }.get(kind, "")


def _last_question(messages: Sequence[WireMessage]) -> str:
    return next((str(message["content"]) for message in reversed(messages) if message["role"] == "user"), "")


def _confirmed(messages: Sequence[WireMessage]) -> str:
    """The address that the visitor says yes to; empty when they say something else, or were not asked."""
    answer = max((number for number, message in enumerate(messages) if message["role"] == "user"), default=0)
    before = [str(message["content"]) for message in messages[:answer] if message["role"] == "assistant"]
    if not before or DID_YOU_MEAN not in before[-1] or not _YES.fullmatch(bare(_last_question(messages))):
        return ""
    return next(iter(addresses_in(before[-1].partition(DID_YOU_MEAN)[2])), "")


def _has_left_address(messages: Sequence[WireMessage]) -> bool:
    """A call with an address was answered by `ok`, in this turn or before."""
    took = {
        call["id"]
        for message in messages
        for call in message.get("tool_calls", ())
        if '"email"' in str(call["function"]["arguments"])
    }
    return any(message.get("tool_call_id") in took and message["content"] == OK for message in messages)


def _results(messages: Sequence[WireMessage]) -> list[tuple[str, str]]:
    """The calls of this turn, as pairs of arguments and result."""
    since = max((i for i, message in enumerate(messages) if message["role"] == "user"), default=-1) + 1
    arguments = {
        call["id"]: str(call["function"]["arguments"])
        for message in messages[since:]
        for call in message.get("tool_calls", ())
    }
    return [
        (arguments[message["tool_call_id"]], str(message["content"]))
        for message in messages[since:]
        if message["role"] == "tool"
    ]


_YES = re.compile(
    r"(yes|yep|yeah|yup|sure|right|correct|exactly|ok(ay)?|👍)( please| thats? (right|correct|it))?"
    r"|thats? (right|correct|it)"
)
