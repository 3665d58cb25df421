"""The report for the owner: what came of each file, and which questions of visitors are left open."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

from agent.finding.encoder import Encode
from agent.knowledge import Document, cut
from agent.knowledge.__main__ import main
from agent.knowledge.lint import QUESTIONS, is_english, left_open

ALL = {question.asked for question in QUESTIONS}
ROLE, YEARS, SKILLS, EDUCATION, PLACE, LANGUAGES, FREE, TOUCH = [question.asked for question in QUESTIONS]

MIRA = """# Mira Kovač

Product designer at Lumen Labs since 2021.

I have been drawing interfaces for about a decade and a half.

My toolbox: Figma, prototyping, user research and a little front-end code.

I graduated from the Academy of Fine Arts in Ljubljana in 2009.

Home is Trieste, a short walk from the sea.

At work I switch between Slovene, Italian and English.

From March on I can take on two days a week of outside projects.

Drop me a line at mira@example.org.
"""
TOM = """# Tom Okafor

I run the finance side of a small bakery chain in Leeds and have done so for seven years.

What I am good at is cash-flow planning, pricing and explaining numbers to people who bake.

I studied economics at Hull and later sat the ACCA exams.

I grew up with Igbo at home and English at school, and my French gets me through a holiday.

I am not looking for a new job, but I do take on one charity a year as a volunteer treasurer.

The quickest way to me is the form on this page, or ring 0113 496 0000.
"""
TERSE = """# Jordan Example

Staff data engineer | pipelines that do not wake people up

Zurich, Switzerland

## Experience

Data platform lead
March 2019 - Present (5 years 4 months)

## Education

ETH Zurich

## Contact

www.linkedin.com/in/jordan

## Top Skills

Python

## Languages

German (Native or Bilingual)

## Other

Open to contract roles; two months' notice.
"""
NEAR = """# Pat Lind

I speak plainly and I listen. People say that I am a calm person.

My sister lives in Oslo and teaches Norwegian there.

The committee met for three years before the bridge was built. It is open to traffic since 1999.

The museum is closed on Mondays. Tickets are available at the door.

A good school of fish moves as one. I was never so happy as on the lake.
"""


def missing(text: str) -> set[str]:
    return {question.asked for question in left_open(list(cut(Document("cv.md", text))))}


def said(*arguments: str | Path) -> tuple[int, str]:
    out = StringIO()
    code = main([str(argument) for argument in arguments], out)
    return code, out.getvalue()


@pytest.mark.parametrize("text", [MIRA, TOM, TERSE], ids=["mira", "tom", "terse"])
def test_answers_are_recognised_in_other_words(text: str) -> None:
    assert missing(text) == set()


@pytest.mark.parametrize("text", ["# Jo\n\nI like tea, long walks and old maps.\n", NEAR], ids=["bare", "near"])
def test_what_nobody_answered_is_left_open(text: str) -> None:
    assert missing(text) == ALL


@pytest.mark.parametrize(
    ("line", "question"),
    [
        ("My toolbox", SKILLS), ("I graduated", EDUCATION), ("Home is", PLACE), ("At work I switch", LANGUAGES),
        ("From March on", FREE), ("Drop me", TOUCH),
    ],
)  # fmt: skip
def test_a_line_that_is_taken_out_is_missed(line: str, question: str) -> None:
    assert question in missing("\n".join(row for row in MIRA.splitlines() if not row.startswith(line)))


def test_the_demo_person_leaves_nothing_open() -> None:
    code, text = said("knowledge")
    assert text.endswith("\n\nEvery question that visitors always ask is answered.\n")
    assert text.splitlines()[0].startswith("01-profile.md: read, ")
    assert code == 0


def test_what_is_missing_is_listed_with_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(MIRA.replace("Drop me a line at mira@example.org.", ""))
    code, text = said(tmp_path)
    assert "No answer was found to 1 of the questions that visitors always ask. Add:\n" in text
    assert text.endswith(
        "- How can I get in touch? An address or a link, or that visitors can leave theirs in this chat\n"
    )
    assert code == 1


def test_a_skipped_file_is_something_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(MIRA)
    assert said(tmp_path)[0] == 0
    (tmp_path / "b.pdf").write_bytes(b"")
    code, text = said(tmp_path)
    assert "b.pdf: skipped: empty; write something in it, or delete it\n" in text
    assert code == 1


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    code, text = said(tmp_path / "nowhere")
    assert text.startswith("there is no folder")
    assert code == 2


def test_of_other_languages_than_english_nothing_is_claimed(tmp_path: Path) -> None:
    german = "Ich leite seit neun Jahren eine kleine Werkstatt und baue Rohre in alte Häuser ein. "
    (tmp_path / "a.md").write_text(german * 6)
    code, text = said(tmp_path)
    assert "not in English" in text
    assert code == 0


def test_a_list_of_names_passes_for_english() -> None:
    assert is_english(list(cut(Document("a.md", "Python\nAirflow\n"))))


def test_without_the_encoder_words_alone_decide() -> None:
    def broken() -> Encode:
        raise ImportError("no encoder here")

    passages = list(cut(Document("a.md", "# Jo\n\nI like tea.")))
    assert {question.asked for question in left_open(passages, broken)} == ALL


def test_the_help_says_what_the_exit_codes_mean(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"], StringIO())
    assert "exit codes: 0: every file was read" in capsys.readouterr().out
