"""What a message of the owner's does, and what the bot answers to it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from alerts.inbound import Words
from alerts.text import is_visible, one_line
from store.owner import Owner
from store.records import Contact, Origin, Target
from store.tables import storable

MAX_CHARS = 4000
"""Length of an answer, in characters."""
LISTED = 10
"""So many contacts or questions are listed."""
STATS_DAYS = 7
BY_API = "api."
"""Conversations of programs begin with it: they have no page on which anything could be shown later."""
BRIEF_CHARS = 200

PAUSED = "paused"
"""State of the installation: set while visitors find the replica closed."""

HELP = (
    "Reply to an alert about a question: your text becomes my answer to it, for everybody.\n"
    "Reply to an alert about a contact: the visitor reads your text on the page, as your own words.\n"
    "Without a reply, begin with a reference, such as Q-7KQ2M: your text"
)
ONLY_TEXT = "I understand only text. Please write it."
EMPTY = "There is no text behind the reference. Write it like this: {reference}: your text"
TOO_LONG = f"That is longer than {MAX_CHARS} characters, so I have not taken it. Please make it shorter."
UNKNOWN_MESSAGE = (
    "I do not know what that message was about; perhaps it was forgotten. "
    "Begin your text with a reference, such as Q-7KQ2M: your text"
)
UNKNOWN_REFERENCE = "I know no {reference}. /questions and /leads list what I know."
SEVERAL = (
    "That message was about several things. "
    "Begin your text with the reference of one of them, such as {reference}: your text"
)
NOTHING_TO_READ = "There is nothing to read in that text, so I have not taken it."
ANOTHER = "An edit changes only the text, and not whom it is for. Please send a new message for that reference."
NOBODY_THERE = "That alert was about the replica itself: there is no visitor to answer."

_COMMAND = re.compile(r"/(\w+)(?:@(\w+))?(?:\s+(.*))?", re.DOTALL)
_REFERENCE = re.compile(
    r"([CQA]-[2-9B-DF-HJKMNP-TV-Z]{5})(?:-\d+)?(?![\w-])\s*(?::|[;,.–—-](?=\s|$))?\s*", re.IGNORECASE
)
"""With whatever stands between it and the text. The letters are those of `store.alert_queue`."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the bot."""

    name: str
    description: str
    """Shown in Telegram's menu."""
    run: Callable[[Owner, str, datetime], str]
    """Gets what was written behind the command, and the present."""


def respond(words: Words, owner: Owner, now: datetime, bot: str = "") -> str | None:
    """Does what the owner wrote. Everything that it writes to the store is in the caller's transaction.

    Args:
        words: what they wrote.
        owner: what an owner can do in the store.
        now: the present, with its zone.
        bot: the bot's own name, as commands in groups carry it.

    Returns:
        The bot's answer; None when there is nothing to say.
    """
    if words.edited:
        return _edit(words, owner)
    if not words.text:
        return ONLY_TEXT if words.other and words.for_us else None
    if command := _COMMAND.fullmatch(words.text):
        if command[2] and bot and command[2].lower() != bot.lower():
            return None  # for another bot in the group
        return _run(command[1].lower(), (command[3] or "").strip(), owner, now)
    if reference := _REFERENCE.match(words.text):
        return _by_reference(reference[1].upper(), words.text[reference.end() :], owner, _origin(words))
    if words.answers is not None:
        return _to_message(words, words.answers, owner)
    return HELP + "\n/help" if words.for_us else None


def menu() -> list[dict[str, str]]:
    """The commands, as Telegram's menu takes them."""
    return [{"command": one.name, "description": one.description} for one in COMMANDS]


def _run(name: str, argument: str, owner: Owner, now: datetime) -> str:
    if name == "start":
        return "Your replica is here: its alerts come to this chat.\n\n" + _help(owner, argument, now)
    found = next((one for one in COMMANDS if one.name == name), None)
    return found.run(owner, argument, now) if found else f"I know no command /{name[:32]}.\n\n{_help(owner, '', now)}"


def _edit(words: Words, owner: Owner) -> str | None:
    """Changes the text that the message brought, if that is still there. A command is not run from an edit.

    Telegram tells of edits that changed nothing to read, too.
    """
    written = owner.written_in(_origin(words))
    found = _REFERENCE.match(words.text)
    text = words.text[found.end() :] if found else words.text
    if written is None or not text or storable(text) == written.text or _COMMAND.fullmatch(words.text):
        return None
    meant = owner.target_named(found[1].upper()) if found else None
    if written.reference:
        target = owner.target_named(written.reference)
        if target is None:
            return None
        return ANOTHER if found and meant != target else _take(target, text, owner, _origin(words))
    if found and (meant is None or meant.conversation_id != written.conversation_id):
        return ANOTHER
    if problem := _problem(text):
        return problem
    if words.answers is not None:
        owner.target_of(words.chat_id, words.answers)  # what a message to the bot's reply will mean
    owner.tell_anew(_origin(words), text)
    return "Changed: the visitor reads your new text in the place of the old one."


def _origin(words: Words) -> Origin:
    return Origin(words.chat_id, words.message_id)


def _by_reference(reference: str, text: str, owner: Owner, origin: Origin) -> str:
    if not text:
        return EMPTY.format(reference=reference)
    target = owner.target_named(reference)
    return UNKNOWN_REFERENCE.format(reference=reference) if target is None else _take(target, text, owner, origin)


def _to_message(words: Words, message_id: int, owner: Owner) -> str | None:
    targets = owner.target_of(words.chat_id, message_id)
    if not targets:
        return UNKNOWN_MESSAGE if words.for_us else None
    if len(targets) > 1:
        return SEVERAL.format(reference=targets[0].reference)
    return _take(targets[0], words.text, owner, _origin(words))


def _take(target: Target, text: str, owner: Owner, origin: Origin) -> str:
    if problem := _problem(text):
        return problem
    if target.kind in ("question", "answer"):
        return _answer(target, text, owner, origin)
    if target.conversation_id is None:
        return NOBODY_THERE
    if target.conversation_id.startswith(BY_API):
        return f"That visitor came through the API and cannot read this; write to {one_line(target.email)}"
    owner.tell(target.conversation_id, text, origin)
    address = _address(target.email, "They can also be reached at")
    return f"Shown to the visitor as your own words: at once if the page is open, else when they return.{address}"


def _problem(text: str) -> str:
    """Why a text is not taken; empty where nothing is wrong with it."""
    return TOO_LONG if len(text) > MAX_CHARS else "" if is_visible(text) else NOTHING_TO_READ


def _answer(target: Target, text: str, owner: Owner, origin: Origin) -> str:
    answer = owner.answer(target, text, origin)
    address = _address(target.email, "Whoever asked left an address:")
    shown = "I use it from now on, and show it to the visitor who asked."
    if (target.conversation_id or "").startswith(BY_API):
        shown = "I use it from now on. Whoever asked came through the API and is not shown it."
    return (
        f"Kept as {answer.reference}. {shown}{address}\n"
        f"The question: {_brief(answer.question)}\n"
        f"Reply again to change it; /forget {answer.reference} takes it back."
    )


def _address(email: str, words: str) -> str:
    return f"\n{words} {one_line(email)}" if email else ""


# Commands


def _leads(owner: Owner, _: str, now: datetime) -> str:
    contacts = owner.contacts(LISTED)
    if not contacts:
        return "Nobody has left an address yet."
    return _listed("The newest contacts:", (_lead(reference, one, now - left) for reference, one, left in contacts))


def _lead(reference: str, contact: Contact, ago: timedelta) -> str:
    who = " · ".join(filter(None, [one_line(contact.name), one_line(contact.email)]))
    return "\n".join(filter(None, [f"{reference} · {_ago(ago)}", who, _brief(contact.notes)]))


def _questions(owner: Owner, _: str, now: datetime) -> str:
    questions = owner.open_questions(LISTED)
    if not questions:
        return "No question waits for an answer."
    lines = (f"{reference} · {_ago(now - asked)}\n{_brief(question)}" for reference, question, asked in questions)
    return _listed("Questions that wait for your answer:", lines, f"To answer: {questions[0][0]}: your text")


def _stats(owner: Owner, _: str, now: datetime) -> str:
    stats = owner.stats(now - timedelta(days=STATS_DAYS))
    return "\n".join(
        [
            f"The last {STATS_DAYS} days:",
            f"Conversations: {stats.conversations}, with {stats.messages} messages",
            f"Contacts: {stats.contacts}",
            f"Questions passed on: {stats.questions}; waiting: {stats.open_questions}",
            f"Answers of yours: {stats.answers}",
            f"Thumbs: {stats.thumbs_up} up, {stats.thumbs_down} down",
            f"Cost: {stats.cost:.2f} USD, where prices are known",
        ]
    )


def _forget(owner: Owner, argument: str, now: datetime) -> str:
    found = _REFERENCE.match(argument)
    if not found:
        return (
            "/forget A-7KQ2M takes back an answer.\n"
            "/forget with the reference of a contact or question deletes all that this visitor wrote and left."
        )
    reference = found[1].upper()
    forgotten = owner.forget(reference)
    return UNKNOWN_REFERENCE.format(reference=reference) if forgotten is None else f"Forgotten: {forgotten}."


def _pause(owner: Owner, _: str, now: datetime) -> str:
    if owner.state(PAUSED) is None:
        owner.set_state(PAUSED, json.dumps({"since": now.isoformat()}))
    return "Closed: visitors read that the chat is closed for a while. /resume opens it again."


def _resume(owner: Owner, _: str, now: datetime) -> str:
    owner.set_state(PAUSED, None)
    return "Open: the replica answers visitors."


def _help(owner: Owner, _: str, now: datetime) -> str:
    commands = "\n".join(f"/{one.name} – {one.description}" for one in COMMANDS)
    return f"{HELP}\n\n{commands}"


COMMANDS = (
    Command("leads", "the newest contacts", _leads),
    Command("questions", "questions that wait for your answer", _questions),
    Command("stats", f"numbers of the last {STATS_DAYS} days", _stats),
    Command("forget", "take back an answer, or delete a visitor's data", _forget),
    Command("pause", "close the replica for visitors", _pause),
    Command("resume", "open it again", _resume),
    Command("help", "how to answer from here", _help),
)


def _listed(opening: str, items: Iterable[str], closing: str = "") -> str:
    return "\n\n".join(filter(None, [opening, *items, closing]))


def _ago(passed: timedelta) -> str:
    hours = int(passed.total_seconds() // 3600)
    if hours < 1:
        return "just now"
    return f"{hours} h ago" if hours < 48 else f"{hours // 24} days ago"


def _brief(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= BRIEF_CHARS else f"{line[: BRIEF_CHARS - 1].rstrip()}…"
