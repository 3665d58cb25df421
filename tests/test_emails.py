"""What is an address, what is a slip, and what is neither."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.emails import Accepted, Outcome, Refused, Several, Suggested, check
from tools.find_emails import address_key, addresses_in, spelled_out_in
from tools.typos import nearest_domain

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "emails.jsonl").read_text("utf-8").split("\n")
    if line
]


def as_in_the_cases(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Accepted(address):
            right: dict[str, Any] = {"accepted": True, "address": address.email}
            right |= {"name": address.name} if address.name else {}
            return right | ({"flag": "disposable"} if address.disposable else {})
        case Suggested(suggestion):
            return {"accepted": False, "suggest": suggestion}
        case Refused() | Several():
            return {"accepted": False}


@pytest.mark.parametrize("case", CASES, ids=[ascii(case["email"][:40]) for case in CASES])
def test_every_case_comes_out_right(case: dict[str, Any]) -> None:
    assert as_in_the_cases(check(case["email"])) == case["right"]


def test_two_addresses_are_both_named() -> None:
    assert check("a@b.co; Jane <c@d.co>") == Several(("a@b.co", "c@d.co"))


def test_a_slip_among_several_is_named_as_it_was_written() -> None:
    assert check("jane@gmial.com or c@d.co") == Several(("jane@gmial.com", "c@d.co"))


def test_a_slip_that_is_a_usable_address_comes_with_it() -> None:
    outcome = check("Jane Doe <jane@gmial.com>")
    assert isinstance(outcome, Suggested)
    assert outcome.address is not None
    assert (outcome.address.email, outcome.address.name) == ("jane@gmial.com", "Jane Doe")


def test_a_slip_that_is_no_address_comes_without_one() -> None:
    outcome = check("jane@acme,com")
    assert isinstance(outcome, Suggested)
    assert outcome.address is None


@pytest.mark.parametrize(
    ("written", "ascii_form"),
    [
        ("jané@exämple.de", "jané@xn--exmple-cua.de"),
        ("jane@straße.de", "jane@xn--strae-oqa.de"),
        ("jane@acme.com", "jane@acme.com"),
    ],
)
def test_the_domain_has_an_ascii_form(written: str, ascii_form: str) -> None:
    outcome = check(written)
    assert isinstance(outcome, Accepted)
    assert outcome.address.ascii_email == ascii_form


@pytest.mark.parametrize(
    "domain",
    [
        "photon.me",
        "hmail.com",
        "fmail.com",
        "tmail.com",
        "mail.co",
        "live.co",
        "me.co",
        "prontomail.com",
        "comcast.co",
        "gmail.h5ma.cn",
    ],
)
def test_a_company_near_a_provider_is_not_asked_about(domain: str) -> None:
    assert nearest_domain(domain) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Write to jane@acme.com, please.", ("jane@acme.com",)),
        ("a@b.co,c@d.co and A@B.co", ("a@b.co", "c@d.co")),
        ("xjane@acme.com", ("xjane@acme.com",)),
        ("jane@acme.community", ("jane@acme.community",)),
        ("reach me at jane@acme,com or so", ("jane@acme,com",)),
        ("jane@acme.com,or call", ("jane@acme.com",)),
        ("jané@exämple.de", ("jané@exämple.de",)),
        ("Mail（用户@例子.广告）吧", ("用户@例子.广告",)),
        ("first line\njane@acme.com\nBcc: x@y.zz", ("jane@acme.com", "x@y.zz")),
        ("wrong: .jane@acme..com", (".jane@acme..com",)),
        ("a@b@c.com", ("a@b@c.com",)),
        ("ask @jane, 5 @ 3 euro, https://x.com/@jane.doe", ()),
        ("", ()),
    ],
)
def test_addresses_are_found_as_they_stand(text: str, found: tuple[str, ...]) -> None:
    assert addresses_in(text) == found


def test_an_address_spelled_out_in_a_sentence_is_found() -> None:
    assert "jane.doe@acme.com" in spelled_out_in("You get me under jane dot doe at acme dot com.")


def test_the_same_domain_for_casefold_is_another_domain_here() -> None:
    assert address_key("Jane@Straße.de") == address_key("jane@straße.de") != address_key("jane@strasse.de")


@given(st.text(alphabet=st.characters()) | st.text(alphabet="ab.,@ <>()'*_-\n:;/?%0Aätdo\u200b\u0301＠"))
def test_no_text_makes_it_raise(text: str) -> None:
    outcome = check(text)
    found = addresses_in(text)
    spelled_out_in(text)
    if isinstance(outcome, Accepted) and "%" not in text:
        assert len(found) == 1
    assert all(address_key(raw) == address_key(raw.strip()) for raw in found)


LABELS = st.text(alphabet="abcxyz019", min_size=1, max_size=8)
MAILBOXES = st.lists(LABELS, min_size=1, max_size=3).map(".".join)
ENDINGS = st.sampled_from(["com", "de", "co.uk", "museum"])
DOMAINS = st.tuples(LABELS, ENDINGS).map(lambda parts: f"q{parts[0]}q.{parts[1]}")


@given(
    MAILBOXES, DOMAINS, st.sampled_from(["{}", "<{}>", "Jo <{}>", "mailto:{}", "**{}**", "{}.", "“{}”", " {}\u00a0"])
)
def test_a_good_address_is_accepted_whatever_stands_around_it(mailbox: str, domain: str, around: str) -> None:
    outcome = check(around.format(f"{mailbox}@{domain}"))
    assert isinstance(outcome, Accepted)
    assert outcome.address.email == f"{mailbox}@{domain}"


@given(MAILBOXES, DOMAINS, LABELS)
def test_what_is_glued_to_an_address_makes_it_another(mailbox: str, domain: str, glue: str) -> None:
    email = f"{mailbox}@{domain}"
    assert email not in addresses_in(f"{glue}{email}")
    assert email not in addresses_in(f"{email}{glue}")


HOSTILE = [
    "@",
    "a",
    "a@",
    " ",
    "a@b ",
    "a@b.c,",
    "\u0301",
    "\u0327\u0301",
    "<",
    "a@b,co",
    " at ",
    "( ",
    "a,",
    "＠",
    "a@a.",
    "'",
    "//@",
]


@pytest.mark.parametrize("find", [addresses_in, spelled_out_in], ids=["addresses", "spelled out"])
@pytest.mark.parametrize("piece", HOSTILE, ids=ascii)
def test_eight_times_the_text_takes_about_eight_times_as_long(
    piece: str, find: Callable[[str], tuple[str, ...]]
) -> None:
    short, long = (seconds(find, (piece * length)[:length]) for length in (20_000, 160_000))
    assert long < 24 * max(short, 0.001)  # a square would take 64 times as long


def seconds(find: Callable[[str], tuple[str, ...]], text: str) -> float:
    def once() -> float:
        begun = time.perf_counter()
        find(text)
        return time.perf_counter() - begun

    return min(once() for _ in range(3))


def test_a_hundred_thousand_characters_are_no_address() -> None:
    assert check("a" * 100_000 + "@acme.com") == Refused()
    assert check("jane@acme.com " * 8_000) == Refused()
