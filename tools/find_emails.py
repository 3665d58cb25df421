"""Finds what looks like a mail address in what people write, at a cost that grows with the length of the text only."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from tools.legible import legible

MAX_CHARS = 320
"""The longest thing that is looked at as an address: 64 + 1 + 255, as the mail standards have it."""


def addresses_in(text: str) -> tuple[str, ...]:
    """Everything in `text` that looks like a mail address, right or wrong, in order and without repeats.

    Around each @ at most `MAX_CHARS` characters are looked at on either side.
    """
    found: dict[str, str] = {}
    for raw in _candidates(legible(text)):
        found.setdefault(address_key(raw), raw)
    return tuple(found.values())


def spelled_out_in(text: str) -> tuple[str, ...]:
    """Addresses that no machine should read, or can: `jane at acme dot com`, `jane (at) acme.com`, `jane,doe@acme.com`.

    What this finds is a guess ("I work at acme.com" gives one too): ask before it is used.
    """
    words = " ".join(legible(text).lower().split())
    return addresses_in(_DOT_WORD.sub(".", _AT_WORD.sub("@", words)))


def address_key(email: str) -> str:
    """The same for two spellings of one address.

    Not `casefold`, which makes two domains of Germany or Greece one (straße.de, strasse.de).
    """
    composed = unicodedata.normalize("NFKC", email[: MAX_CHARS * 2])
    return unicodedata.normalize("NFKC", composed.lower())


_STOP = r"\s\x00-\x1f\x7f<>()\[\]{}\"`;:=,@"
_BEFORE = re.compile(rf"[^{_STOP}]*")
"""The mailbox, read backwards from the @: whatever is glued to it, so that `xjane@…` is never taken for `jane@…`."""
_AFTER = re.compile(r"[A-Za-z0-9._\-\u0080-\U0010ffff]*")
"""The domain. Beyond ASCII only letters, marks and digits are left by `legible`."""

_OPENING = "*~'\N{MIDDLE DOT}\N{KATAKANA MIDDLE DOT}"
"""Quotes, Markdown and bullets at the start: no mailbox begins with one."""
_CLOSED = "_"
"""Markdown only where it stands at the end too; else a part of the mailbox."""

_TWO_PARTS = ("co", "com", "org", "ac")
_COUNTRIES = ("uk", "jp", "nz", "za", "kr", "il", "th", "au", "br", "mx", "tr", "cn", "tw", "hk", "sg")
_ENDINGS = ("com", "net", "org", "edu", "gov", "info", "biz", "dev", "app", "online", "tech", "cloud", "agency")

_AT_WORD = re.compile(r" ?[(\[{<] ?(?:at|ät|arroba|arobase|@) ?[)\]}>] ?| (?:at|ät|arroba|arobase) | ?@ ?")
_DOT_WORD = re.compile(r"(?<=\w),(?=\w)| ?[(\[{<] ?(?:dot|punkt|punto|point|\.) ?[)\]}>] ?| (?:dot|punkt|punto|point) ")


def _candidates(text: str) -> Iterator[str]:
    parts = text.split("@")
    taken = 0  # how much of the present part belongs to the domain of the address before
    at = 0
    while at < len(parts) - 1:
        mailbox = _mailbox(parts[at], taken)
        first = at = at + 1
        while at < len(parts) - 1 and _is_glued(parts[at]):
            at += 1
        domain, taken = _domain(parts[at])
        glued = parts[first:at]
        if mailbox and (domain or glued) and len(mailbox) + len(domain) < MAX_CHARS and len(glued) < 8:
            closing = parts[at][len(domain) : len(domain) + 4]
            yield "@".join([_unwrapped(mailbox, closing), *glued, domain])


def _mailbox(part: str, taken: int) -> str:
    window = part[max(taken, len(part) - MAX_CHARS - 1) :]
    match = _BEFORE.match(window[::-1])
    mailbox = match[0][::-1] if match else ""
    # `//…@…` is a web address with a user in it.
    return "" if len(mailbox) > MAX_CHARS or mailbox.startswith("//") else mailbox


def _domain(part: str) -> tuple[str, int]:
    """The domain at the start of `part`, and where what follows it begins."""
    end = _end_of_domain(part, 0)
    while part[end : end + 1] == ",":
        rest = part[end + 1 : _end_of_domain(part, end + 1)].rstrip("._").lower()
        if not _comma_stands_for_a_dot(part[:end].replace(",", "."), rest):
            break
        end += 1 + len(rest)
    domain = part[:end].rstrip("._")
    return domain, end + 1 if domain else 0


def _end_of_domain(part: str, start: int) -> int:
    match = _AFTER.match(part, start, start + MAX_CHARS + 1)
    return match.end() if match else start


def _comma_stands_for_a_dot(domain: str, rest: str) -> bool:
    """`acme,com`, `acme.co,uk`, but not `acme.com,thanks`."""
    if "." in domain:
        return domain.rpartition(".")[2] in _TWO_PARTS and rest in _COUNTRIES
    ending = rest.rpartition(".")[2]
    return bool(domain) and ending.isalpha() and (len(ending) == 2 or ending in _ENDINGS)


def _is_glued(part: str) -> bool:
    """No end of a domain in it: `a@b@c` is one thing, and wrong."""
    return len(part) <= MAX_CHARS and _AFTER.fullmatch(part) is not None


def _unwrapped(mailbox: str, closing: str) -> str:
    while mailbox and (mailbox[0] in _OPENING or (mailbox[0] in _CLOSED and mailbox[0] in closing)):
        mailbox = mailbox[1:]
    return mailbox
