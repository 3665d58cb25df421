"""Where visitors wait: one cap on replies at once, one reply at a time in a conversation, a transcript that stays."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from agent.briefing import Briefing
from agent.calls import ModelCall, collected, collecting
from agent.conversation import Draft, Reply, Transcript, Turn, mended
from agent.events import Event, Progress, StopReason, TurnFinished
from agent.limits import Ceiling, Gate
from agent.loop import Replica, respond
from agent.model import ChatModel
from agent.record import Record, name_of

log = logging.getLogger(__name__)

MAX_WAITING_TABS = 1
"""Messages of one conversation that may wait for an earlier one: more would fill the line for everybody else."""

UNLIMITED = 1_000_000_000
"""Messages a minute."""

BLANK = "Please write a message first."
TOO_LONG = "That message is too long for me: please keep it under {} characters. Nothing was sent."
OTHER_TAB = "I am still answering you in another tab. Please wait for that reply, then try again."
TROUBLE = "Sorry, something went wrong on my side. Your message is kept; please try again. (Reference {})"
NOT_KEPT = (
    "Sorry, something went wrong on my side, and your message could not be kept. Please try again. (Reference {})"
)
CLOSED = "This chat is closed for a while. Please come back later."
UNFOUNDED = "the answer to a question names no source, so it may be made up; the transcript has it"
NO_STORE = "the store does not keep what is said; the log says why beside the reference {}"


class Refused(Exception):
    """The message is not taken. The text is a sentence for the visitor."""

    def __init__(self, sentence: str, kind: str) -> None:
        super().__init__(sentence)
        self.kind = kind
        """Names the limit, for the metrics."""


class Transcripts(Protocol):
    """What the reception needs of a store."""

    async def transcript(self, conversation_id: str) -> Transcript: ...
    async def open_turn(self, conversation_id: str, message: str) -> int: ...
    async def close_turn(
        self, conversation_id: str, number: int, turn: Turn, stop: str, calls: Sequence[ModelCall] = ()
    ) -> None: ...
    async def drop_last_turn(self, conversation_id: str) -> str | None: ...


class Watch(Protocol):
    """Counts along. No word of a visitor's reaches it."""

    def refused(self, kind: str) -> None: ...
    def finished(self, stop: StopReason, duration_s: float) -> None: ...
    def unfounded(self) -> None: ...


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
        gate: how often somebody may write; None: as often as they like.
        ceiling: on the tokens of a day; None: there is none.
        watch: counts turns and refusals.
        briefing: what the model is told beside a message.
        is_paused: the owner has closed the chat for a while.
    """

    def __init__(
        self,
        replica: Replica,
        store: Transcripts,
        *,
        max_replies: int,
        max_message_chars: int,
        on_trouble: OnTrouble | None = None,
        gate: Gate | None = None,
        ceiling: Ceiling | None = None,
        watch: Watch | None = None,
        briefing: Briefing | None = None,
        is_paused: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self.replica = replica
        self.store = store
        self._max_chars = max_message_chars
        self._slots = asyncio.Semaphore(max_replies)
        self._turnstiles: dict[str, _Turnstile] = {}
        self._on_trouble = on_trouble
        self._gate = gate or Gate(UNLIMITED)
        self._ceiling = ceiling
        self._watch = watch
        self._briefing = briefing or Briefing()
        self._is_paused = is_paused
        self.running = 0
        """Replies under way."""
        self.trouble = ""
        """What went wrong with the last reply, for the owner; empty when it went well."""

    @property
    def waiting(self) -> int:
        """Messages that wait for a reply to begin."""
        return self._gate.waiting

    async def answer(self, conversation_id: str, message: str, address: str = "") -> AsyncGenerator[Opened | Event]:
        """Answers a message and keeps the turn, however it ends.

        Args:
            conversation_id: whose message it is.
            message: what the visitor writes.
            address: where it comes from, see `client_address`; empty: it is counted for its conversation alone.

        Raises:
            Refused: the message is blank or too long, or a limit is reached.
        """
        message = mended(message).strip()
        if not message:
            raise self._refused("blank", BLANK)
        if len(message) > self._max_chars:
            raise self._refused("too_long", TOO_LONG.format(self._max_chars))
        async with self._place(conversation_id, address), aclosing(self._answer(conversation_id, message)) as events:
            async for event in events:
                yield event

    async def retry(self, conversation_id: str, address: str = "") -> AsyncGenerator[Opened | Event]:
        """Answers the last message once more; the earlier answer leaves the transcript."""
        async with self._place(conversation_id, address):
            with self._store_at_hand():
                message = await self.store.drop_last_turn(conversation_id)
            if message is None:
                raise self._refused("blank", BLANK)
            async with aclosing(self._answer(conversation_id, message)) as events:
                async for event in events:
                    yield event

    async def _answer(self, conversation_id: str, message: str) -> AsyncGenerator[Opened | Event]:
        transcript, number = await self._open(conversation_id, message)
        record = Record(Progress(Draft(message)), self.replica.toolkit.tools)
        try:
            yield Opened(number)
            conversation = transcript.conversation
            if resting := await self._resting_model():
                brief = await self._briefing.brief_for_quotes(replace(self.replica, model=resting), conversation)
            else:
                with collecting(record.calls):
                    brief = await self._briefing.brief(self.replica, conversation_id, conversation, message)
            record.progress = Progress(Draft(message, found=brief.found))
            answering = respond(brief.replica, brief.conversation, message, conversation_id, brief.found)
            async with aclosing(collected(answering, record.calls)) as events:
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

    async def _open(self, conversation_id: str, message: str) -> tuple[Transcript, int]:
        """What was said before, and the number under which the message is kept."""
        with self._store_at_hand():
            transcript = await self.store.transcript(conversation_id)
            return transcript, await self.store.open_turn(conversation_id, message)

    async def _close(self, conversation_id: str, number: int, record: Record) -> None:
        turn = record.turn or record.progress.stopped()
        log.info("%s", record.line(conversation_id, number))
        if self._watch:
            self._watch.finished(record.stop, record.duration_s)
        if record.rests_on_nothing:
            log.warning("turn %s: %s", name_of(conversation_id, number), UNFOUNDED)
            if self._watch:
                self._watch.unfounded()
        try:
            await self.store.close_turn(conversation_id, number, turn, record.stop, record.calls)
            await self._report(record)
        except LookupError:
            log.info("The conversation was forgotten while it was answered")
        except Exception as error:
            self._store_failed(error)  # the visitor has read the answer: an error must not take its place

    async def _report(self, record: Record) -> None:
        """Tells the owner how replies are going."""
        if record.stop != "failed":
            self.trouble = "" if record.stop != "stopped" else self.trouble
            return
        self.trouble = f"the last reply failed; the log says why beside the reference {record.reference}"
        if self._on_trouble:
            await self._on_trouble(record.reference)

    @contextmanager
    def _store_at_hand(self) -> Generator[None]:
        """Without the store nothing is promised: the visitor keeps the message and reads why."""
        try:
            yield
        except Refused:
            raise
        except Exception as error:
            raise self._refused("store", NOT_KEPT.format(self._store_failed(error))) from None

    def _store_failed(self, error: Exception) -> str:
        """Tells the owner. Returns the reference beside which the log says more."""
        self.trouble = NO_STORE.format(reference := secrets.token_hex(4))
        log.error("[%s] The store failed (%s)", reference, type(error).__name__, exc_info=error)
        return reference

    async def _resting_model(self) -> ChatModel | None:
        """Who answers when the day's tokens are used up; None: they are not."""
        ceiling = self._ceiling
        if ceiling is None or not await ceiling.allowance.is_spent():
            return None
        if self._watch:
            self._watch.refused("daily_tokens")
        if day := ceiling.allowance.once_a_day():
            log.warning("The tokens of this day (DAILY_TOKENS) are used up")
            await ceiling.on_spent(day)
        return ceiling.resting

    @asynccontextmanager
    async def _place(self, conversation_id: str, address: str) -> AsyncGenerator[None]:
        """A place among the replies, after those who came before."""
        if (turnstile := self._turnstiles.get(conversation_id)) and turnstile.waiting > MAX_WAITING_TABS:
            raise self._refused("other_tab", OTHER_TAB)
        if refusal := self._gate.admit(conversation_id, address):
            raise self._refused(refusal.kind, refusal.sentence)
        turnstile = self._turnstiles.setdefault(conversation_id, _Turnstile())
        turnstile.waiting += 1
        try:
            with ExitStack() as line:
                line.enter_context(self._gate.in_line(address))
                async with turnstile.lock, self._slots:
                    line.close()
                    self.running += 1
                    try:
                        with self._store_at_hand():
                            if self._is_paused and await self._is_paused():
                                raise self._refused("paused", CLOSED)
                        yield
                    finally:
                        self.running -= 1
        finally:
            turnstile.waiting -= 1
            if not turnstile.waiting:
                self._turnstiles.pop(conversation_id, None)

    def _refused(self, kind: str, sentence: str) -> Refused:
        if self._watch:
            self._watch.refused(kind)
        return Refused(sentence, kind)


class OnTrouble(Protocol):
    async def __call__(self, reference: str) -> None: ...


class _Turnstile:
    """Lets the messages of one conversation through in order, one at a time."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0
