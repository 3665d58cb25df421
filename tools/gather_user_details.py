"""Takes a visitor's contact details: checks the address, stores the contact, alerts the owner."""

from __future__ import annotations

from typing import Annotated, Any, assert_never

from pydantic import BeforeValidator, Field

from agent.toolkit import Arguments, Tool, Visit
from alerts.outbox import Outbox
from store.records import Contact
from tools.emails import Accepted, Address, Outcome, Refused, Several, Suggested, check, meant_by
from tools.excerpt import excerpt
from tools.find_emails import address_key, addresses_in, spelled_out_in

NAME = "gather_user_details"

INVALID = (
    "ERROR: Invalid email format provided. "
    "Please inform the user that the email is invalid and ask them to provide a valid one."
)
NOT_WRITTEN = (
    "NOT STORED: the visitor has not written this address in the conversation. "
    "Ask them to type their email address, and never fill one in for them."
)
FULL = (
    "NOT STORED: this conversation has left as many contact details as it may. "
    "Tell the visitor kindly that what they left before is stored, and that the rest can wait until the owner writes."
)
_QUESTION = 'NOT STORED YET: ask the visitor whether they mean "'
"""Begins the result that asks about a slip; a later turn is recognised by it."""

MANY = 5
"""So many of several addresses are looked at."""


def _none_is_empty(value: Any) -> Any:
    return "" if value is None else value


class GatherUserDetails(Arguments):
    """Stores the visitor's contact details and alerts the owner, who can then write to them.

    Call it as soon as the visitor has typed an email address of their own in this conversation and may be contacted
    with it: for an interview, an offer, a project, a follow-up, an answer by mail, or to keep in touch. An address
    alone, typed because you asked for it, is enough. Pass it as the visitor typed it, even if it looks wrong: it is
    checked here, and the result says what to tell the visitor.

    Do not call it while the visitor has typed no address: ask for one. Never invent, guess, complete or correct an
    address. Do not call it for somebody else's address, for one that stands only in your knowledge, or again for one
    that is already stored; unless the visitor has since said more that the owner needs to know (a budget, a date,
    another number): then pass only that as the notes.

    The result `ok` means stored. Any other result means not stored: do what it says, and do not say that the details
    were passed on.
    """

    email: str = Field(
        description="The visitor's email address, exactly as they typed it, or as they confirmed it when asked."
    )
    notes: str = Field(
        max_length=4000,
        description=(
            "What the owner needs to know before writing back, in a few sentences: who the visitor is, what they want, "
            "and anything they said about role, company, dates or terms. Only what was said."
        ),
    )
    name: Annotated[str, BeforeValidator(_none_is_empty)] = Field(
        default="", max_length=200, description="The visitor's name, if they gave it; otherwise leave it empty."
    )


def gather_user_details(outbox: Outbox) -> Tool[GatherUserDetails]:
    async def run(arguments: GatherUserDetails, visit: Visit) -> str:
        decided = decide(check(arguments.email), visit)
        if isinstance(decided, str):
            return decided
        contact = Contact(
            conversation_id=visit.conversation_id,
            email=decided.email,
            ascii_email=decided.ascii_email,
            notes=arguments.notes,
            name=" ".join(arguments.name.split()) or decided.name,
            disposable=decided.disposable,
        )
        return FULL if await outbox.contact(contact, excerpt(visit)) == "full" else "ok"

    return Tool(
        name=NAME,
        arguments=GatherUserDetails,
        run=run,
        working="Noting your details…",
        done="Passed your details on",
        habit=(
            "`gather_user_details`: call it as soon as a visitor has written their own e-mail address, even in the "
            "middle of another question. Never call it with an address that the visitor did not write."
        ),
    )


def decide(outcome: Outcome, visit: Visit) -> Address | str:
    """The address to store, or the sentence for the model.

    A malformed address is called that, whoever made it up. Any other counts only if the visitor wrote it, or was
    asked about it in an earlier turn; within a turn nobody can have answered.
    """
    match outcome:
        case Refused():
            return INVALID
        case Several(written):
            return _decide_several(written, visit)
        case Suggested(suggestion, written, address):
            if address is not None and _keys(address) & _asked_about(visit):
                return address
            # What can be stored must be the visitor's own; what cannot may be the model's way to write what it read.
            origins = {address_key(written)} if address is not None else {address_key(written), address_key(suggestion)}
            return _question(suggestion, written) if origins & (_written(visit) | _spelled_out(visit)) else NOT_WRITTEN
        case Accepted(address):
            if _keys(address) & (_written(visit) | _asked_about(visit)):
                return address
            if (written := _slip_that_means(address, visit)) is not None:
                return _question(address.email, written)
            return NOT_WRITTEN
        case _:
            assert_never(outcome)


def _decide_several(written: tuple[str, ...], visit: Visit) -> Address | str:
    """Asks which one, unless the model added all the others."""
    decided = {raw: decide(check(raw), visit) for raw in written[:MANY]}
    own = {raw: each for raw, each in decided.items() if each != NOT_WRITTEN}
    match tuple(own):
        case ():
            return NOT_WRITTEN
        case (only,):
            return own[only]
        case several:
            named = ", ".join(f'"{raw}"' for raw in several)
            return f"NOT STORED YET: the visitor gave several addresses, {named}; ask which one to use and call again."


def _question(suggestion: str, written: str) -> str:
    one_line = " ".join(written.replace('"', "'").split())
    instead = f' as they wrote "{one_line}",' if 0 < len(one_line) <= 100 else ""
    return f'{_QUESTION}{suggestion}",{instead} and call again with the address that they confirm.'


def _asked_about(visit: Visit) -> set[str]:
    """Addresses in the questions of earlier turns, both the suggested and the written ones."""
    questions = [
        result.content
        for turn in visit.conversation.turns
        for step in turn.steps
        for call, result in zip(step.reply.calls, step.results, strict=True)
        if call.name == NAME and result.content.startswith(_QUESTION)
    ]
    return {address_key(raw) for question in questions for raw in addresses_in(question)}


def _keys(address: Address) -> set[str]:
    return {address_key(address.email), address_key(address.ascii_email)}


def _written(visit: Visit) -> set[str]:
    return {address_key(raw) for message in visit.visitor_messages for raw in addresses_in(message)}


def _spelled_out(visit: Visit) -> set[str]:
    return {address_key(raw) for message in visit.visitor_messages for raw in spelled_out_in(message)}


def _slip_that_means(address: Address, visit: Visit) -> str | None:
    """What the visitor wrote where the model, rightly or not, read `address`; empty if they spelled it out."""
    wanted = _keys(address)
    mailbox = address_key(address.email).rpartition("@")[0]
    for message in visit.visitor_messages:
        for raw in addresses_in(message):
            if address_key(raw).rpartition("@")[0] != mailbox:
                continue
            meant = meant_by(raw)
            if meant is not None and _keys(meant) & wanted:
                return raw
    return "" if wanted & _spelled_out(visit) else None
