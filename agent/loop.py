"""The agent: a model in a loop with tools and guardrails, in the open.

Read `respond` from top to bottom. One turn is: ask the model; if it calls tools, run them and ask
again with their results; after `max_turns` rounds ask a last time without tools, so that a visitor
always gets text.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from agent.conversation import Conversation, Draft, Passage, Reply, ToolCall, ToolResult, WireMessage, to_wire
from agent.events import Event, Replied, TextDelta, ToolFinished, ToolStarted, TurnFinished, keep_answered
from agent.model import ChatModel, ModelError, TooLong
from agent.persona import shortened
from agent.sources import Footnote, given, without_footnote
from agent.toolkit import ToolError, Toolkit, Visit

log = logging.getLogger(__name__)

FAULT = "Sorry, I could not answer just now. Your message is kept; please try again in a moment. (Reference {})"
"""What the visitor reads when the provider fails. The reference stands in the log beside the reason."""

KEPT_TURNS = 2
"""So many turns are left of a conversation that the model cannot read."""

MAX_CALLS = 8
"""Calls of one reply that are run. No visitor needs more; a model that repeats itself makes hundreds."""

NOTICE = "The call to {} failed. Try a different way."
"""What the model reads, once, after a call that cannot be mended was taken back."""


TOO_MANY = f"You made too many calls at once: only the first {MAX_CALLS} were carried out. Answer the visitor now."
"""What it reads after a reply with more calls than that."""


@dataclass(frozen=True, slots=True)
class Replica:
    """Who answers. Frozen, and shared by all visitors."""

    model: ChatModel
    toolkit: Toolkit
    persona: str
    """The system message."""
    max_turns: int = 2
    """Rounds of one Turn in which tools may be called: the setting's name is older than the word Turn here."""
    reply_timeout_s: float = 60
    """Wall clock of a whole turn, in seconds."""
    shrunk: bool = False
    """Its persona was shortened."""
    known: frozenset[str] = frozenset()
    """Labels of what stands in the persona: what a reply may name as its source."""


async def respond(
    replica: Replica,
    conversation: Conversation,
    message: str,
    conversation_id: str = "",
    found: tuple[Passage, ...] = (),
) -> AsyncGenerator[Event]:
    """Answers one message.

    Args:
        replica: who answers.
        conversation: what was said before.
        message: what the visitor says now.
        conversation_id: passed to the tools, which store under it.
        found: passages of the knowledge for this message, where not all of it is in the persona.

    Yields:
        Events as they happen; the last one is TurnFinished, whatever the provider does.
    """
    deadline = asyncio.get_running_loop().time() + replica.reply_timeout_s
    visit = Visit(conversation_id, conversation, message)
    draft, notice = Draft(message, found=found), ""
    done: dict[tuple[str, str], str] = {}
    rounds, closing = 0, False

    while True:
        # 1. The persona, the conversation and this turn so far become the provider's messages.
        wire = to_wire(replica.persona, conversation, draft, notice)

        # 2. One streamed completion with the tools; the closing one may not call any.
        reply = Reply()
        try:
            async with aclosing(complete(replica, wire, deadline, closing=closing)) as events:
                async for event in events:
                    yield event
                    reply = event.reply if isinstance(event, Replied) else reply
        except ModelError as error:
            shorter = shrink(replica, conversation, error) if isinstance(error, TooLong) else None
            if shorter is None:
                yield failed(draft, error)
                return
            replica, conversation = shorter
            continue

        # 3. Text without a call is the answer. A blank one is asked for once more, without tools.
        if closing or not reply.calls:
            if reply.text.strip() or closing:
                reply = replace(reply, sources=given(reply.sources, labels(replica, conversation, draft)))
                yield finished(replica, draft, reply, rounds)
                return
            closing = True
            continue

        # 4. Run the calls. Those that were answered stay; one that cannot be mended is taken back as if
        #    it had never been made, and the next request says so in one line.
        results: list[ToolResult] = []
        async for event in run(replica.toolkit, reply.calls, visit, done):
            yield event
            if isinstance(event, ToolFinished) and event.result:
                results.append(event.result)
        if results:
            draft = draft.and_then(keep_answered(reply, tuple(results)))
        notice = take_back(replica.toolkit, reply.calls, results)

        # 5. The guard: after `max_turns` rounds comes the closing completion.
        rounds += 1
        closing = rounds == replica.max_turns


async def complete(
    replica: Replica, wire: list[WireMessage], deadline: float, *, closing: bool
) -> AsyncGenerator[TextDelta | Replied]:
    """One completion, the line with its sources taken out. What was shown of a broken stream stands, and its Reply
    says `cut`.

    Raises:
        ModelError: there is no reply, and nothing was shown.
    """
    reply, shown, footnote = Reply(), "", Footnote()
    stream = replica.model.stream(wire, replica.toolkit.schemas, "none" if closing else "auto")
    try:
        async with aclosing(stream) as pieces:
            while (piece := await next_piece(pieces, deadline)) is not None:
                if isinstance(piece, Reply):
                    reply = piece
                elif piece := footnote.let_through(piece):
                    shown += piece
                    yield TextDelta(piece)
    except TimeoutError:
        late = f"{replica.model.name}: no whole reply within REPLY_TIMEOUT_S"
        if not shown:
            raise ModelError(late) from None
        log.warning("A reply was cut off. %s", late)
        reply = Reply(shown, finish="cut")
    yield Replied(without_footnote(reply))


async def next_piece(pieces: AsyncGenerator[str | Reply], deadline: float) -> str | Reply | None:
    """The next piece, or None at the end. The clock runs for the whole turn: a slow drip never trips
    a provider's own time-out, which starts anew at each byte."""
    async with asyncio.timeout_at(deadline):
        return await anext(pieces, None)


def shrink(replica: Replica, conversation: Conversation, error: TooLong) -> tuple[Replica, Conversation] | None:
    """Half of the files and the last turns, for a model that can read less than was thought. Only once; after that
    the fallback is asked, if there is one."""
    if replica.shrunk:
        return (replace(replica, model=error.instead), conversation) if error.instead else None
    log.warning("The request was too long for %s: files and history are shortened", replica.model.name)
    return replace(replica, persona=shortened(replica.persona), shrunk=True), conversation.latest(KEPT_TURNS)


async def run(
    toolkit: Toolkit, calls: Sequence[ToolCall], visit: Visit, done: dict[tuple[str, str], str]
) -> AsyncGenerator[ToolStarted | ToolFinished]:
    """Runs calls in order. `done` holds what was answered in this turn: the same call is never run twice."""
    for number, call in enumerate(calls):
        if number >= MAX_CALLS:
            yield ToolFinished(call, None)
            continue
        yield ToolStarted(call)
        key = (call.name, call.arguments)
        try:
            if key not in done:
                done[key] = (await toolkit.call(call, visit)).content
        except ToolError as error:
            log.warning("A call was taken back: %s", error)
            yield ToolFinished(call, None)
        else:
            yield ToolFinished(call, ToolResult(call.id, done[key]))


def take_back(toolkit: Toolkit, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> str:
    """The notice on the calls without a result; empty when there are none. A name that the registry
    does not hold is the model's invention, and is not repeated to it."""
    answered = {result.call_id for result in results}
    if len(answered) == MAX_CALLS < len(calls):
        return TOO_MANY
    names = [
        call.name if call.name in toolkit.tools else "an unknown tool" for call in calls if call.id not in answered
    ]
    return " ".join(NOTICE.format(name) for name in dict.fromkeys(names))


def labels(replica: Replica, conversation: Conversation, draft: Draft) -> frozenset[str]:
    """What the model was given to go by: it may name nothing else as its source."""
    found = [one for turn in (*conversation.turns[conversation.summarised :], draft) for one in turn.found]
    return replica.known.union(label for one in found for label in (one.file, one.label))


def finished(replica: Replica, draft: Draft, reply: Reply, rounds: int) -> TurnFinished:
    """The turn's end with the model's last word, if it has one."""
    if not reply.text.strip():
        return failed(draft, ModelError(f"{replica.model.name}: the reply is blank"))
    return TurnFinished(draft.ended(reply), "max_turns" if rounds == replica.max_turns else "answered")


def failed(draft: Draft, error: ModelError) -> TurnFinished:
    """The turn's end when there is no answer: a sentence with a reference, and the reason in the log."""
    reference = secrets.token_hex(4)
    log.error("[%s] No reply. %s", reference, error)
    return TurnFinished(draft.ended(Reply(FAULT.format(reference))), "failed", reference)
