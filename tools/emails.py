"""Decides of one mail address whether it can be used, must be asked about, or is none."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import unquote

from disposable_email_domains import blocklist
from email_validator import EmailNotValidError, validate_email

from tools.find_emails import MAX_CHARS, addresses_in, spelled_out_in
from tools.legible import has_control, legible
from tools.typos import nearest_domain


@dataclass(frozen=True, slots=True)
class Address:
    """An address that mail can be sent to, as far as its form tells."""

    email: str
    """As a person writes it; international letters stay."""
    ascii_email: str
    """With the domain in its ASCII form, as it is looked up. The mailbox in front of it stays as it is."""
    name: str = ""
    """Whose it is, where that was written beside it."""
    disposable: bool = False
    """The domain gives out throw-away addresses."""


@dataclass(frozen=True, slots=True)
class Accepted:
    address: Address


@dataclass(frozen=True, slots=True)
class Refused:
    """This is no address."""


@dataclass(frozen=True, slots=True)
class Suggested:
    """Probably a slip: to be asked about, not mended in silence."""

    suggestion: str
    """The address that was probably meant."""
    written: str
    """What was passed instead."""
    address: Address | None
    """What was passed, where mail could be sent to it all the same."""


@dataclass(frozen=True, slots=True)
class Several:
    """More than one: somebody has to choose."""

    written: tuple[str, ...]
    """As they stand; each of them has to be checked when it was chosen."""


Outcome = Accepted | Refused | Suggested | Several


def check(text: str) -> Outcome:
    """What to do with the one address that `text` should hold.

    Around the address may stand what people and mail programs put there: a name, brackets, quotes, Markdown,
    `mailto:`, the punctuation of a sentence. Of reserved names, `example` and its kin are taken, as RFC 6761 asks
    of applications: a visitor who only tries the page types `me@example.com` and should see it work. Names that can
    never receive mail (`.test`, `.local`, `.invalid`, `localhost`) are refused.
    """
    if len(text) > MAX_CHARS * 10:
        return Refused()
    text = _without_mailto(legible(text).strip())
    if _breaks_the_line(text):
        return Refused()
    match addresses_in(text):
        case ():
            return _check_spelled_out(text)
        case (raw,):
            return _check_one(raw, text)
        case several:
            return _check_several(several)


def parse_address(raw: str) -> Address | None:
    """The address that `raw` is, with nothing around it; None where no mail can be sent to it."""
    if len(raw) > MAX_CHARS:
        return None
    try:
        valid = validate_email(raw, check_deliverability=False, strict=True)
    except EmailNotValidError:
        return None
    ending = valid.ascii_domain.rpartition(".")[2]
    if not (ending.isalpha() and len(ending) > 1) and not ending.startswith("xn--"):
        return None
    ascii_email = f"{valid.local_part}@{valid.ascii_domain}"
    return Address(valid.normalized, ascii_email, disposable=_is_disposable(valid.ascii_domain))


def meant_by(raw: str) -> Address | None:
    """The address that was probably meant; None where `raw` shows no slip."""
    mailbox, _, domain = raw.rpartition("@")
    dotted = domain.replace(",", ".")
    meant = nearest_domain(dotted) or dotted
    return parse_address(f"{mailbox}@{meant}") if meant != domain else None


def _check_one(raw: str, text: str) -> Outcome:
    before, _, after = text.partition(raw)
    address = parse_address(raw)
    if address is not None:
        address = replace(address, name=_name(before, after))
    if (meant := meant_by(raw)) is not None:
        return Suggested(meant.email, raw, address)
    if address is None:
        return Refused()
    half = _HALF.search(before[-MAX_CHARS:])
    if half is None or half["word"].lower() in _LEADS:
        return Accepted(address)
    # `jane doe@acme.com`, `jane,doe@acme.com`: the rest of a sentence, or half of the mailbox?
    whole = parse_address(f"{half['word']}.{raw}") if half["comma"] else address
    return Suggested(whole.email, text, None) if whole else Refused()


def _check_several(found: tuple[str, ...]) -> Outcome:
    match _usable(found):
        case ():
            return Refused()
        case ((_, only),):
            return Suggested(only, ", ".join(found), None)
        case several:
            return Several(tuple(raw for raw, _ in several))


def _check_spelled_out(text: str) -> Outcome:
    match _usable(spelled_out_in(text)):
        case ((_, only),):
            return Suggested(only, text, None)
        case _:
            return Refused()


def _usable(found: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """What was written, and the address that it means, of all that mean one."""
    return tuple((raw, address.email) for raw in found if (address := meant_by(raw) or parse_address(raw)))


def _is_disposable(domain: str) -> bool:
    """Its own name or one above it is listed: the services give out subdomains too."""
    labels = domain.lower().split(".")
    return any(".".join(labels[start:]) in blocklist for start in range(len(labels) - 1))


_HALF = re.compile(r"(?P<word>[\w.+-]*\w)(?: +|(?P<comma>,))\Z")
_LEADS = frozenset(
    ["mail", "email", "e-mail", "address", "adresse", "is", "ist", "est", "es", "me", "at", "to", "on", "via"]
)
"""Words after which an address begins for sure."""

_MAILTO = re.compile("mailto:", re.IGNORECASE)
_AROUND_NAMES = " \t\"'`*_~,;:-"


def _without_mailto(text: str) -> str:
    """Without the scheme of a mail link, its codes, and the subject or body that it may carry."""
    if _MAILTO.search(text) is None:
        return text
    return legible(_MAILTO.sub("", unquote(text.partition("?")[0])))


def _name(before: str, after: str) -> str:
    """`Jane Doe <address>`, or `address (Jane Doe)`."""
    if before.endswith("<"):
        written = before[:-1]
    elif after.lstrip().startswith("(") and after.rstrip().endswith(")"):
        written = after.strip()[1:-1]
    else:
        return ""
    name = " ".join(written.split()).strip(_AROUND_NAMES)
    return "" if "@" in name else name


def _breaks_the_line(text: str) -> bool:
    """A line break, plain or written as a code: the way into the head of a mail."""
    return has_control(text) or any(code in text.lower() for code in ("%0a", "%0d", "\\n", "\\r"))
