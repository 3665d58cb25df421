"""What a visitor wrote is read for addresses where the model takes no tools."""

from __future__ import annotations

import pytest

from agent.toolless import addresses_in
from tools.likely_addresses import likely_addresses_in


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("Write to jo@acme.com, please.", ("jo@acme.com",)),
        ("jo＠acme.com", ("jo@acme.com",)),
        ("jo [at] acme.com", ("jo@acme.com",)),
        ("jo(at)acme.com", ("jo@acme.com",)),
        ("It is JO AT ACME DOT COM", ("jo@acme.com",)),
        ("I work at acme.com and like dots", ()),
        ("Let us meet at noon", ()),
        ("My code: git@github.com:jo/notes.git", ()),
        ("git@github.com:x", ()),
        ("https://jo:secret@acme.com/login", ()),
        ("deploy@server.example:www/page, or jo@acme.com: thanks", ("jo@acme.com",)),
    ],
)
def test_addresses_are_read_as_people_write_them(message: str, found: tuple[str, ...]) -> None:
    assert likely_addresses_in(message) == found


@pytest.mark.parametrize("message", ["git@github.com:x", "https://jo:secret@acme.com"])
def test_the_plain_reading_takes_no_address_of_a_machine(message: str) -> None:
    assert addresses_in(message) == []


def test_the_plain_reading_knows_the_wide_sign() -> None:
    assert addresses_in("jo＠acme.com") == ["jo@acme.com"]
