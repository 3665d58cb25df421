"""Where visitors wait: one cap on replies at once, one reply at a time in a conversation, a transcript that stays."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from agent.conversation import Draft, Reply, Transcript, Turn, Usage
from agent.events import Event, Progress, Replied, StopReason, TextDelta, ToolFinished, TurnFinished
from agent.loop import Replica, respond

log = logging.getLogger(__name__)

MAX_WAITING_TABS = 1
"""Messages of one conversation that may wait for an earlier one: more would fill the line for everybody else."""

BLANK = "Please write a message first."
TOO_LONG = "That message is too long for me: please keep it under {} characters. Nothing was sent."
OTHER_TAB = "I am still answering you in another tab. Please wait for that reply, then try again."
TROUBLE = "Sorry, something went wrong on my side. Your message is kept; please try again. (Reference {})"


class Refused(Exception):
    """The message is not taken. The text is a sentence for the visitor."""


class Transcripts(Protocol):
    """What the reception needs of a store."""

    async def transcript(self, conversation_id: str) -> Transcript: ...
    async def open_turn(self, conversation_id: str, message: str) -> int: ...
    async def close_turn(self, conversation_id: str, number: int, turn: Turn, stop: str) -> None: ...
    async def drop_last_turn(self, conversation_id: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Opened:
    """The message is taken and kept; its turn has this number."""

    number: int


class Reception:
    """Takes messages in; owns the line and the locks.

    Args:
        replica: who answers.
        store: keeps the transcripts.
        max_replies: replies at once, over everything that calls this object.
        max_message_chars: length of a message, in characters.
        on_trouble: told in plain words when a reply failed.
    """

    def __init__(
        self,
        replica: Replica,
        store: Transcripts,
        *,
        max_replies: int,
        max_message_chars: int,
        on_trouble: OnTrouble | None = None,
    ) -> None:
        self.replica = replica
        self.store = store
        self._max_chars = max_message_chars
        self._slots = asyncio.Semaphore(max_replies)
        self._turnstiles: dict[str, _Turnstile] = {}
        self._on_trouble = on_trouble
        self.trouble = ""
        """What went wrong with the last reply, for the owner; empty when it went well."""

    async def answer(self, conversation_id: str, message: str) -> AsyncGenerator[Opened | Event]:
        """Answers a message and keeps the turn, however it ends.

        Raises:
            Refused: the message is blank or too long, or too many wait in this conversation.
        """
        message = message.strip()
        if not message:
            raise Refused(BLANK)
        if len(message) > self._max_chars:
            raise Refused(TOO_LONG.format(self._max_chars))
        async with self._one_at_a_time(conversation_id), aclosing(self._answer(conversation_id, message)) as events:
            async for event in events:
                yield event

    async def retry(self, conversation_id: str) -> AsyncGenerator[Opened | Event]:
        """Answers the last message once more; the earlier answer leaves the transcript."""
        async with self._one_at_a_time(conversation_id):
            message = await self.store.drop_last_turn(conversation_id)
            if message is None:
                raise Refused(BLANK)
            async with aclosing(self._answer(conversation_id, message)) as events:
                async for event in events:
                    yield event

    async def _answer(self, conversation_id: str, message: str) -> AsyncGenerator[Opened | Event]:
        transcript = await self.store.transcript(conversation_id)
        number = await self.store.open_turn(conversation_id, message)
        record = _Record(Progress(Draft(message)))
        try:
            yield Opened(number)
            async with aclosing(respond(self.replica, transcript.conversation, message, conversation_id)) as events:
                async for event in events:
                    record.note(event)
                    yield event
        except (asyncio.CancelledError, GeneratorExit):
            record.stop = "stopped"
            raise
        except Exception as error:
            # A fault of ours: the traceback is for the log, the visitor gets a sentence and its reference.
            record.reference = secrets.token_hex(4)
            log.exception("[%s] The turn failed (%s)", record.reference, type(error).__name__)
            turn = record.progress.draft.ended(Reply(TROUBLE.format(record.reference)))
            record.note(TurnFinished(turn, "failed", record.reference))
            yield TurnFinished(turn, "failed", record.reference)
        finally:
            # Shielded: the visitor may leave, but what was said is kept.
            await asyncio.shield(self._close(conversation_id, number, record))

    async def _close(self, conversation_id: str, number: int, record: _Record) -> None:
        turn = record.turn or record.progress.stopped()
        await self.store.close_turn(conversation_id, number, turn, record.stop)
        log.info("%s", record.line(conversation_id, number))
        if record.stop != "failed":
            self.trouble = "" if record.stop != "stopped" else self.trouble
            return
        self.trouble = f"the last reply failed; the log says why beside the reference {record.reference}"
        if self._on_trouble:
            await self._on_trouble(record.reference)

    @asynccontextmanager
    async def _one_at_a_time(self, conversation_id: str) -> AsyncGenerator[None]:
        turnstile = self._turnstiles.setdefault(conversation_id, _Turnstile())
        if turnstile.waiting > MAX_WAITING_TABS:
            raise Refused(OTHER_TAB)
        turnstile.waiting += 1
        try:
            async with turnstile.lock, self._slots:
                yield
        finally:
            turnstile.waiting -= 1
            if not turnstile.waiting:
                self._turnstiles.pop(conversation_id, None)


class OnTrouble(Protocol):
    async def __call__(self, reference: str) -> None: ...


class _Turnstile:
    """Lets the messages of one conversation through in order, one at a time."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class _Record:
    """What the transcript and the log want to know of a turn: a fold over its events."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.turn: Turn | None = None
        self.stop: StopReason = "stopped"
        self.reference = ""
        self._began = time.monotonic()
        self._first_token_s: float | None = None
        self._tools: list[str] = []
        self._usages: list[Usage] = []

    def note(self, event: Event) -> None:
        self.progress = self.progress.after(event)
        match event:
            case TextDelta():
                self._first_token_s = self._first_token_s or time.monotonic() - self._began
            case Replied(reply) if reply.usage:
                self._usages.append(reply.usage)
            case ToolFinished(call, result):
                self._tools.append(f"{call.name}={'failed' if result is None else _verdict(result.content)}")
            case TurnFinished(turn, stop, reference):
                self.turn, self.stop, self.reference = turn, stop, reference
            case _:
                pass

    def line(self, conversation_id: str, number: int) -> str:
        """One line for a person: no word of the visitor's stands in it."""
        first = "-" if self._first_token_s is None else f"{self._first_token_s:.2f} s"
        read, written = sum(u.prompt for u in self._usages), sum(u.completion for u in self._usages)
        tokens = f"{read} in, {written} out" if self._usages else "not counted"
        return (
            f"turn {conversation_id[:6]}/{number}: {self.stop}, first word after {first}, "
            f"whole {time.monotonic() - self._began:.2f} s, tokens {tokens}, tools {', '.join(self._tools) or 'none'}"
            + (f", reference {self.reference}" if self.reference else "")
        )


def _verdict(content: str) -> str:
    return content if content == "ok" else "asked back"
