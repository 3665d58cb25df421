"""What the owner reads: the first lines tell enough on a lock screen."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from store.records import Alert, Contact, Question

TELEGRAM_LIMIT = 4096
"""UTF-16 units that Telegram takes in one message."""

EXCERPT_LINES = 3

ANSWER_HINT = "Reply to this message, and your words become the answer."
TALK_HINT = "Reply to this message, and the visitor is shown your words."
_HINTS = (ANSWER_HINT, TALK_HINT)

BRIEF_CHARS = 160
ADDRESS_CHARS = 340
"""An address is never cut: it has up to 320 characters, and a few words before it."""

_CONTROLS = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0)], " ")
_DIRECTIONS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])
"""Marks that turn the writing round: with them a name could show another address than the one it hides."""

_INVISIBLE = {"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"}
"""Categories of characters; those that Unicode added later, such as new emoji, are in none of them."""
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
"""Fillers that count as letters or signs and show nothing."""
_CONTINUE = frozenset(["\u034f", *map(chr, range(0xFE00, 0xFE10))])
"""They change only how the character before them looks."""

_PLAIN = _CONTROLS | _DIRECTIONS


def contact_text(contact: Contact, excerpt: Sequence[str], reference: str) -> str:
    return _contact_text("New contact:", contact, excerpt, reference)


def more_text(contact: Contact, excerpt: Sequence[str], reference: str) -> str:
    """What somebody added whose address the owner has already."""
    return _contact_text("More from", contact, excerpt, reference)


def _contact_text(opening: str, contact: Contact, excerpt: Sequence[str], reference: str) -> str:
    name = one_line(contact.name)  # one of blanks and invisible signs is none
    address = [
        contact.email if name else "",
        contact.ascii_email if contact.ascii_email.casefold() != contact.email.casefold() else "",
        "disposable address" if contact.disposable else "",
    ]
    wants = f"Wants: {contact.notes}" if contact.notes.strip() else ""
    return _lines(
        [
            f"{opening} {name or contact.email}",
            " · ".join(filter(None, address)),
            wants,
            *_quoted(excerpt),
            TALK_HINT,
            reference,
        ]
    )


def question_text(question: Question, excerpt: Sequence[str], reference: str, email: str = "") -> str:
    """What nobody could answer.

    Args:
        question: as it was passed on.
        excerpt: the last lines of the conversation.
        reference: names the alert.
        email: what the visitor left before; empty where nothing was.
    """
    left = f"They left {email}" if email else ""
    return _lines([f"I could not answer: {question.question}", left, *_quoted(excerpt), ANSWER_HINT, reference])


def without_hints(text: str) -> str:
    """The text for a channel on which nobody reads replies."""
    return "".join(line for line in text.splitlines(keepends=True) if line.rstrip("\n") not in _HINTS)


def digests(alerts: Sequence[Alert], limit: int = TELEGRAM_LIMIT) -> list[list[Alert]]:
    """The alerts in as few digests as Telegram takes in one message each, so that each goes out or does not."""
    found: list[list[Alert]] = []
    for alert in _ordered(alerts):
        if found and _fits(digest_text([*found[-1], alert]), limit):
            found[-1].append(alert)
        else:
            found.append([alert])
    return found


def digest_text(alerts: Sequence[Alert]) -> str:
    """Many alerts as one message: first how many of which kind, then a line for each, contacts first."""
    ordered = _ordered(alerts)
    counts = Counter(alert.kind for alert in ordered)
    kinds = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts.items())
    return "\n".join([f"{len(ordered)} alerts in one: {kinds}", *map(_brief, ordered)])


def _ordered(alerts: Sequence[Alert]) -> list[Alert]:
    return sorted(alerts, key=lambda alert: (alert.kind != "contact", alert.kind != "trouble", alert.id))


def one_line(text: str) -> str:
    """Text of a stranger as one line without control characters."""
    return " ".join(text.translate(_PLAIN).split())


def is_visible(text: str) -> bool:
    """There is something to read: not only blanks, marks of direction and the like."""
    return any(
        unicodedata.category(one) not in _INVISIBLE and one not in _BLANK_LETTERS and one not in _CONTINUE
        for one in text
    )


def split_for_telegram(text: str, limit: int = TELEGRAM_LIMIT) -> list[str]:
    """Pieces that Telegram takes; joined, they are the text.

    They end with a line where they can, else between words, else anywhere.

    Args:
        text: of any length.
        limit: UTF-16 units in a piece, at least 2.
    """
    pieces: list[str] = []
    while text:
        head = text[: _fitting(text, limit)]
        if len(head) < len(text):
            head = head[: _cut(head, "\n") or _cut(head, " ") or len(head)]
        pieces.append(head)
        text = text[len(head) :]
    return pieces


def _fitting(text: str, limit: int) -> int:
    """How many characters fit into `limit` UTF-16 units."""
    if limit < 2:
        raise ValueError(f"a character may need 2 units, not {limit!r}")
    units = 0
    for index, character in enumerate(text):
        units += 2 if character > "\uffff" else 1
        if units > limit:
            return index
    return len(text)


def _fits(text: str, limit: int) -> bool:
    return _fitting(text, limit) == len(text)


def _cut(head: str, mark: str) -> int:
    """Where `head` ends after its last `mark`; 0 where that would leave a piece without a letter, which is refused."""
    end = head.rfind(mark) + 1
    return end if head[:end].strip() else 0


def _brief(alert: Alert) -> str:
    """The alert on one line, without the excerpt."""
    left_out = (*_HINTS, alert.reference)
    told = [line for line in alert.text.splitlines() if not line.startswith("> ") and line not in left_out]
    return " · ".join([*map(_shortened, told), alert.reference])


def _shortened(line: str) -> str:
    limit = ADDRESS_CHARS if "@" in line else BRIEF_CHARS
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def _quoted(excerpt: Sequence[str]) -> list[str]:
    return [f"> {line}" for line in map(one_line, excerpt[-EXCERPT_LINES:]) if line]


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(filter(None, map(one_line, lines)))
