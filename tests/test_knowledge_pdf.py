"""PDF files: the order in which a person reads them, whole paragraphs, and why one cannot be read."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from pypdf import PdfWriter

from agent.knowledge import read_file
from agent.knowledge.columns import Run
from agent.knowledge.layout import Page, laid_out
from agent.knowledge.text import clean
from tests.knowledge_files import LOCKED_AES, Piece, column, pdf

SIDE = column(40, 740, "Contact", size=11) + column(
    40, 722, "jo@example.org", "Top Skills", "Welding", "Cheese making", "Certified Master Plumber", size=9, leading=15
)
MAIN = [
    (220.0, 740.0, 22.0, "Jo Sample"),
    *column(220, 715, "Plumber and cheese maker, who works alone", size=11),
    *column(220, 690, "Summary", size=14),
    *column(
        220, 672,
        "For nine years I have laid pipes in old houses, most of",
        "them listed. I like slow work and quick",
        "answers, and I make cheese on Sundays.",
    ),
    *column(220, 610, "Work", size=14),
    *column(220, 592, "Sample and Daughter", "Master plumber", "May 2015 - Present (9 years)"),
]  # fmt: skip
LEFT = column(
    50, 700,
    "The first column tells of the valley, of the river",
    "that runs through it, and of the mill which a long",
    "time ago stood where the school is now. I was the",
    "last apprentice there. The miller was patient,",
    "and had to be.",
)  # fmt: skip
RIGHT = column(
    320, 700,
    "The second column is about the town, where nobody",
    "is patient and everybody has to be somewhere else,",
    "and where I learned the trade that feeds me still",
    "today, with some luck.",
)  # fmt: skip


def text_of(tmp_path: Path, data: bytes) -> str:
    (tmp_path / "cv.pdf").write_bytes(data)
    document, report = read_file(tmp_path / "cv.pdf", "cv.pdf")
    assert document, report.line()
    return document.text


def line_of(tmp_path: Path, data: bytes) -> str:
    (tmp_path / "cv.pdf").write_bytes(data)
    return read_file(tmp_path / "cv.pdf", "cv.pdf")[1].line()


def test_a_side_column_is_read_apart_and_after_the_person(tmp_path: Path) -> None:
    text = text_of(tmp_path, pdf(SIDE + MAIN))
    assert text.startswith("# Jo Sample\n\nPlumber and cheese maker, who works alone\n\n## Summary\n\n")
    assert "most of them listed. I like slow work and quick answers, and I make cheese on Sundays.\n" in text
    assert "Sample and Daughter\nMaster plumber\nMay 2015 - Present (9 years)\n" in text
    assert text.endswith("Top Skills\nWelding\nCheese making\nCertified Master Plumber\n")


def test_two_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    text = text_of(tmp_path, pdf([(50, 750, 20, "Valley and town"), *LEFT, *RIGHT]))
    assert "The miller was patient, and had to be." in text
    assert "the trade that feeds me still today, with some luck." in text
    assert text.index("and had to be") < text.index("The second column")


def test_two_columns_painted_line_by_line_are_read_one_after_the_other(tmp_path: Path) -> None:
    pieces: list[Piece] = [piece for pair in zip(LEFT, RIGHT, strict=False) for piece in pair] + LEFT[len(RIGHT) :]
    text = text_of(tmp_path, pdf(pieces))
    assert "The miller was patient, and had to be." in text
    assert "nobody is patient and everybody" in text


def test_the_rows_of_a_table_stay_together(tmp_path: Path) -> None:
    rows = (("Welding", "9 years"), ("Cheese", "4 years"), ("Latin", "2 years"), ("Tact", "1 year"))
    pieces: list[Piece] = []
    for number, (skill, years) in enumerate(rows):
        pieces += [(60, 700 - 20 * number, 10, skill), (200, 700 - 20 * number, 10, years)]
    assert text_of(tmp_path, pdf(pieces)).split("\n") == [f"{skill} {years}" for skill, years in rows] + [""]


def test_dates_stand_with_what_was_done_then(tmp_path: Path) -> None:
    pieces: list[Piece] = [
        (60, 700, 10, "2015 -"), (60, 687, 10, "2024"),
        *column(150, 700, "Laid pipes in old houses for people who were", "patient, and for some who were not."),
        (60, 650, 10, "2010 -"), (60, 637, 10, "2015"),
        *column(150, 650, "Learned to lay pipes from a master who was", "never patient, and always right."),
    ]  # fmt: skip
    text = text_of(tmp_path, pdf(pieces))
    assert "2015 - 2024 Laid pipes in old houses for people who were patient, and" in text
    assert "2010 - 2015 Learned to lay pipes from a master who was never patient" in text


def test_a_full_line_goes_on_with_a_name_and_a_short_one_does_not(tmp_path: Path) -> None:
    lines = column(
        60, 700,
        "I have worked for a good many years with the people at the",
        "European Commission, and with others who were as patient as",
        "they were, or nearly so, which is much to say.",
        "Since 2015 I lay pipes.",
    )  # fmt: skip
    text = text_of(tmp_path, pdf(lines))
    assert "with the people at the European Commission, and" in text
    assert "which is much to say.\nSince 2015 I lay pipes.\n" in text


def test_words_parted_at_the_end_of_a_line_become_whole(tmp_path: Path) -> None:
    lines = column(
        60, 700,
        "I have a long-standing interest in the infra-",
        "structure of small towns, and in every well-",
        "known spring. A well-known one is ours.",
    )  # fmt: skip
    text = text_of(tmp_path, pdf(lines))
    assert "interest in the infrastructure of small towns, and in every well-known spring." in text


def test_lists_keep_their_lines(tmp_path: Path) -> None:
    lines = column(60, 700, "• Laid pipes in forty old houses, most of them", "listed.", "• Made cheese.")
    assert text_of(tmp_path, pdf(lines)) == "- Laid pipes in forty old houses, most of them listed.\n- Made cheese.\n"


def test_what_runs_along_the_edges_of_pages_goes(tmp_path: Path) -> None:
    pages = [
        [
            (60, 770, 8, "Jo Sample, plumber"),
            *column(60, 700, f"This is what the {number}. page says of me.", "It is short."),
            (500, 30, 8, f"Page {number} of 3"),
        ]
        for number in (1, 2, 3)
    ]
    text = text_of(tmp_path, pdf(*pages))
    assert "Page" not in text
    assert text.count("Jo Sample, plumber") == 1
    assert text.count("page says of me.") == 3


def test_a_year_at_the_end_of_a_page_is_no_page_number(tmp_path: Path) -> None:
    assert text_of(tmp_path, pdf(column(60, 700, "Born in", "1984"))) == "Born in\n1984\n"


def test_a_paragraph_goes_on_over_the_end_of_a_page(tmp_path: Path) -> None:
    first = column(
        60, 100, "I have laid pipes in many old houses and in", "some that were older than the town in which"
    )
    text = text_of(tmp_path, pdf(first, column(60, 700, "they stand, if you believe the priest.")))
    assert "in which they stand, if you believe the priest." in text


def test_ligatures_and_unseen_characters_are_made_plain() -> None:
    run = Run("An ef\ufb01cient of\ufb01ce", 60, 200, 700, 10, 0)
    assert clean(laid_out([Page((run,), 792)]) + "\0 to\u00adday\u200b") == "An efficient office today\n"


def test_a_report_counts_pages(tmp_path: Path) -> None:
    page = column(60, 700, "I was born in Leeds.")
    assert line_of(tmp_path, pdf(page, page)) == "cv.pdf: read, 2 pages, 10 words"


@pytest.mark.parametrize("algorithm", ["RC4-40", "RC4-128", "AES-256"])
def test_a_locked_file_is_said_to_be_locked(tmp_path: Path, algorithm: str) -> None:
    data = LOCKED_AES
    if algorithm != "AES-256":
        writer = PdfWriter(clone_from=BytesIO(pdf(column(60, 700, "I was born in Leeds."))))
        writer.encrypt("hunter2", algorithm=algorithm)
        locked = BytesIO()
        writer.write(locked)
        data = locked.getvalue()
    assert line_of(tmp_path, data) == "cv.pdf: skipped: locked with a password; save a copy without one"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (pdf([]), "no text on any page (a scan?); save it with text recognition"),
        (b"", "empty"),
        (b"This is none.", "not a PDF, whatever its name says"),
        (b"%PDF-1.7\nnothing more", "damaged"),
        (pdf(column(60, 700, "I was born in Leeds."))[:200], "damaged"),
    ],
)
def test_why_a_file_was_skipped_is_said(tmp_path: Path, data: bytes, why: str) -> None:
    assert line_of(tmp_path, data).startswith(f"cv.pdf: skipped: {why}")
