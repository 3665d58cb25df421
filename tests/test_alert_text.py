"""What the owner reads, and how it is cut into messages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.text import (
    ANSWER_HINT,
    TALK_HINT,
    contact_text,
    digest_text,
    question_text,
    split_for_telegram,
    without_hints,
)
from store.records import Alert, Contact, Question
from tests.alert_house import JANE


def test_the_first_lines_say_what_who_and_where() -> None:
    text = contact_text(JANE, ["Visitor: Hello", "Replica: Good day"], "C-7KQ2M")
    assert text.splitlines() == [
        "New contact: Jane Doe",
        "jane@example.org",
        "Wants: to talk about a job in Turin",
        "> Visitor: Hello",
        "> Replica: Good day",
        TALK_HINT,
        "C-7KQ2M",
    ]


def test_without_a_name_the_address_says_who() -> None:
    text = contact_text(Contact("talk", "jane@example.org", "jane@example.org", " "), [], "C-7KQ2M")
    assert text == f"New contact: jane@example.org\n{TALK_HINT}\nC-7KQ2M"


def test_an_international_and_a_disposable_address_are_marked() -> None:
    contact = Contact("talk", "jane@bücher.example", "jane@xn--bcher-kva.example", "a job", "Jane", disposable=True)
    assert contact_text(contact, [], "C-1").splitlines()[1] == (
        "jane@bücher.example · jane@xn--bcher-kva.example · disposable address"
    )


def test_a_question_comes_first_and_only_three_lines_of_the_talk_with_it() -> None:
    text = question_text(Question("talk", "Do you ski?"), ["one", "two", "", "four", "five"], "Q-1")
    assert text.splitlines() == ["I could not answer: Do you ski?", "> four", "> five", ANSWER_HINT, "Q-1"]


def test_a_visitor_cannot_forge_lines_or_turn_the_writing_round() -> None:
    contact = Contact("talk", "jane@example.org", "jane@example.org", "a job\x1b[2J\r\nC-FAKE1", "Jane\u202e\nDoe\x00")
    assert contact_text(contact, ["a\nb\u2028c"], "C-7KQ2M").splitlines() == [
        "New contact: Jane Doe",
        "jane@example.org",
        "Wants: a job [2J C-FAKE1",
        "> a b c",
        TALK_HINT,
        "C-7KQ2M",
    ]


def test_a_question_says_whom_to_write_to_where_its_visitor_left_an_address() -> None:
    text = question_text(Question("talk", "Do you ski?"), ["Visitor: Hello"], "Q-1", "jane@example.org")
    assert text.splitlines() == [
        "I could not answer: Do you ski?",
        "They left jane@example.org",
        "> Visitor: Hello",
        ANSWER_HINT,
        "Q-1",
    ]


def test_where_nobody_reads_replies_none_is_asked_for() -> None:
    for hint in (ANSWER_HINT, TALK_HINT):
        assert without_hints(f"Wants: {hint}\n{hint}\nC-1") == f"Wants: {hint}\nC-1"
        assert without_hints(f"{hint}\n\n x\r\n") == "\n x\r\n"


# Splitting


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


bits = ["a", " ", "\n", "é", "\U0001f600", "word ", "a line\n"]
texts = st.lists(st.sampled_from(bits), max_size=100).map("".join)


@given(text=texts | st.text(), limit=st.integers(2, 40))
def test_pieces_join_to_the_text_and_none_is_empty_or_too_long(text: str, limit: int) -> None:
    pieces = split_for_telegram(text, limit)
    assert "".join(pieces) == text
    assert all(0 < len(piece.encode("utf-16-le", "surrogatepass")) // 2 <= limit for piece in pieces)


@given(text=texts, limit=st.integers(2, 40))
def test_a_piece_is_blank_only_where_blanks_fill_it(text: str, limit: int) -> None:
    for piece in split_for_telegram(text, limit)[:-1]:
        assert piece.strip() or units(piece) >= limit - 1


def test_pieces_end_with_a_line_where_they_can() -> None:
    text = "".join(f"line {number:04}\n" for number in range(1000))
    pieces = split_for_telegram(text)
    assert len(pieces) == 3
    assert all(piece.endswith("\n") for piece in pieces)


def test_a_long_line_is_cut_between_words() -> None:
    assert split_for_telegram("one two three four", 10) == ["one two ", "three four"]


def test_a_limit_too_small_for_a_character_is_refused() -> None:
    with pytest.raises(ValueError, match="not 1"):
        split_for_telegram("text", 1)


# Digests


def alert(number: int, kind: str, text: str) -> Alert:
    return Alert(number, kind, f"{kind[0].upper()}-{number}", text, datetime(2030, 1, 1, tzinfo=UTC), 1)


def test_a_digest_lists_contacts_first_with_address_and_reference() -> None:
    text = digest_text(
        [
            alert(1, "question", "I could not answer: Do you ski?\n> Visitor: Hello\nQ-1"),
            alert(2, "trouble", "Trouble: the key was refused"),
            alert(3, "contact", "New contact: Jane Doe\njane@example.org\nWants: a job\n> Visitor: Hello\nC-3"),
            alert(4, "question", "I could not answer: Do you swim?\nQ-4"),
        ]
    )
    assert text.splitlines() == [
        "4 alerts in one: 1 contact, 1 trouble, 2 questions",
        "New contact: Jane Doe · jane@example.org · Wants: a job · C-3",
        "Trouble: the key was refused · T-2",
        "I could not answer: Do you ski? · Q-1",
        "I could not answer: Do you swim? · Q-4",
    ]


def test_a_digest_shortens_what_is_long_but_never_an_address() -> None:
    address = f"{'j' * 64}@{'example.' * 31}org"
    text = digest_text([alert(1, "contact", f"New contact: {address}\nWants: {'w' * 4000}\nC-1")])
    _, line = text.splitlines()
    assert f"New contact: {address} · Wants: www" in line
    assert line.endswith("w… · C-1")
    assert len(line) < 600
