"""Every kind of file and every encoding that an owner may bring, but PDF."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge import FileReport, load_knowledge
from agent.knowledge.markup import read_html
from agent.knowledge.records import read_card, read_csv, read_json
from agent.knowledge.text import clean, damage, decode
from agent.knowledge.values import Unreadable
from agent.knowledge.word import read_docx

LETTERS = {
    "cp1252": "Jag är född i Malmö – och talar “svenska” på en liten byrå i Göteborg.",
    "cp1250": "Jestem inżynierem z Łodzi. Pracuję nad źródłami danych i płatnościami.",
    "cp1251": "Я инженер из Казани, десять лет работаю с базами данных.",
    "cp1253": "Είμαι μηχανικός από τη Θεσσαλονίκη και δουλεύω με βάσεις δεδομένων.",
    "cp1254": "İzmir'de doğdum, şimdi İstanbul'da yazılım mühendisi olarak çalışıyorum.",
    "koi8-r": "Меня зовут Анна, и я пишу программы для больниц и школ.",
    "shift_jis": "私は東京のデータエンジニアです。十年の経験があります。",
    "gb18030": "我是北京的数据工程师，有十年的经验，喜欢小团队。",
}
"""A sentence or two that an editor on Windows or an old one may have saved so."""
MARKED = ("utf-8-sig", "utf-16", "utf-32")
UNMARKED = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


@pytest.mark.parametrize("encoding", [*MARKED, *UNMARKED])
@pytest.mark.parametrize("text", LETTERS.values(), ids=LETTERS)
def test_unicode_is_read_in_whatever_form_with_and_without_a_mark(text: str, encoding: str) -> None:
    assert clean(decode(text.encode(encoding))) == f"{text}\n"


@pytest.mark.parametrize("encoding", LETTERS)
def test_code_pages_are_told_by_what_makes_sense(encoding: str) -> None:
    assert decode(LETTERS[encoding].encode(encoding)) == LETTERS[encoding]


def test_a_few_words_in_windows_western_code_page_are_enough() -> None:
    for text in ("I’m Jo – “the fixer”.", "Née “Müller”, résumé", "Salary: $90–$120 an hour."):
        assert decode(text.encode("cp1252")) == text


def test_the_code_page_is_told_in_a_long_text_that_is_nearly_plain() -> None:
    text = "I keep the pipelines quiet.\n" * 5000 + "Née “Müller”, résumé attached.\n"
    assert decode(text.encode("cp1252")) == text


def test_one_wrong_byte_does_not_turn_the_text_into_another_encoding() -> None:
    text = "Zoë, Chloë, Renée, Müller, Łódź, naïve, café, façade, piñata, Ångström"
    assert decode(text.encode() + b"\xff").startswith(text)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff"), min_size=1))
def test_a_marked_text_comes_back_as_it_was(text: str) -> None:
    for encoding in MARKED:
        assert decode(text.encode(encoding)) == text


def test_binary_data_is_no_text() -> None:
    for data in (bytes(range(256)), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(100), b"abc\x01\x02\xff\xfe" * 9):
        with pytest.raises(Unreadable, match="not text"):
            decode(data)


def test_damage_is_named() -> None:
    plain = "I have laid pipes in many old houses, most of them listed. " * 5
    assert damage(plain) == ""
    assert "symbols" in damage(plain + "\ufffd" * 9)
    assert "symbols" in damage(plain + "\ue012\ue013" * 9)
    assert "run together" in damage("IhavelaidpipesinmanyoldhousesmostofthemlistedsinceIwasyoung " * 3)


def test_a_web_page_keeps_its_text_and_loses_its_machinery() -> None:
    page = """<!doctype html><html><head><title>no</title><style>p{color:red}</style></head><body>
    <nav><a href="/">Home</a></nav><script>alert(1)</script><h1>Jo &amp; Co</h1>
    <p>Spoke on &lt;idempotent&gt; <b>jobs</b>,<br>twice.</p><p style="display: none">hidden</p>
    <ul><li>One<ul><li>inner</li></ul></li><li><p>Two</p></li></ul><ol><li>first<li>second</ol>
    <table><tr><th>Skill<th>Years<tr><td>Rust<td><p>3</p></table><noscript>no</noscript></body></html>"""
    assert read_html(page.encode()).text == (
        "# Jo & Co\n\nSpoke on <idempotent> jobs,\ntwice.\n\n- One\n  - inner\n- Two\n\n1. first\n2. second\n\n"
        "| Skill | Years |\n| --- | --- |\n| Rust | 3 |\n"
    )


@pytest.mark.parametrize("named", ["windows-1252", "iso-8859-1"])
def test_a_web_page_is_read_in_the_encoding_that_it_names(named: str) -> None:
    page = f'<meta charset="{named}"><p>“Née” Müller</p>'
    assert read_html(page.encode("cp1252")).text == "“Née” Müller\n"


def word_file(write: Callable[[Any], object]) -> bytes:
    document = docx.Document()
    write(document)
    data = BytesIO()
    document.save(data)
    return data.getvalue()


def test_a_word_file_keeps_headings_lists_tables_and_the_head_of_the_page() -> None:
    def write(document: Any) -> None:
        document.sections[0].header.paragraphs[0].text = "jo@example.org"
        document.add_heading("Jo Sample", 0)
        document.add_heading("Work", 1)
        document.add_paragraph("Pipes in old houses.")
        document.add_paragraph("Welding", style="List Bullet")
        document.add_paragraph("Cheese", style="List Bullet")
        table = document.add_table(2, 2)
        for cell, text in zip(
            [*table.rows[0].cells, *table.rows[1].cells], ["Skill", "Years", "Rust", "3"], strict=True
        ):
            cell.text = text

    assert read_docx(word_file(write)).text == (
        "jo@example.org\n\n# Jo Sample\n\n# Work\n\nPipes in old houses.\n\n- Welding\n- Cheese\n\n"
        "| Skill | Years |\n| --- | --- |\n| Rust | 3 |\n"
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"plain", "not a Word file"),
        (b"PK\x03\x04 torn", "damaged"),
        (b"\xd0\xcf\x11\xe0 old", "an old Word file"),
        (b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "locked with a password"),
    ],
)
def test_why_a_word_file_was_skipped_is_said(data: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read_docx(data)


def test_an_archive_of_something_else_is_no_word_file() -> None:
    data = BytesIO()
    with zipfile.ZipFile(data, "w") as parts:
        parts.writestr("a.txt", "hello")
    with pytest.raises(Unreadable, match="not a Word file"):
        read_docx(data.getvalue())


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_table_becomes_lines_with_the_names_of_its_columns(delimiter: str) -> None:
    rows = [["Skill", "Years", "Note"], ["Rust", "3", '"quick, small"'], ["Welding", "9", ""]]
    text = "\r\n".join(delimiter.join(row) for row in rows)
    assert read_csv(text.encode()).text == "Skill: Rust\nYears: 3\nNote: quick, small\n\nSkill: Welding\nYears: 9\n"


def test_of_a_long_table_only_the_beginning_is_read() -> None:
    reading = read_csv(b"a,b\n" + b"1,2\n" * 9000)
    assert reading.text.count("a: 1") == 4999
    assert "only its first 5000 rows" in reading.detail


def test_json_becomes_lines_and_headings() -> None:
    data = b"""{"basics": {"name": "Jo", "startDate": 2015, "remote": true, "fax": null},
               "skills": ["Rust", "tact"], "work": [{"at": "A"}, {"at": "B"}]}"""
    assert read_json(data).text.split("\n\n") == [
        "# Basics", "Name: Jo\nStart date: 2015\nRemote: yes\nSkills: Rust, tact", "# Work", "At: A", "At: B\n",
    ]  # fmt: skip


def test_json_in_lines_is_read_too() -> None:
    assert read_json(b'{"a": 1}\n{"a": 2}\n').text == "A: 1\n\nA: 2\n"


def test_an_address_card_says_whose_it_is() -> None:
    card = (
        "BEGIN:VCARD\r\nVERSION:2.1\r\nFN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Jo M=C3=\r\n=BCller\r\n"
        "ORG:Sample\\, Inc.;Pipes\r\nTITLE:Plumber\r\nitem1.EMAIL;TYPE=INTERNET:jo@example.org\r\n"
        "URL:https://example.org/jo\r\nNOTE:Likes\\ncheese and\r\n  slow work\r\nPHOTO;ENCODING=b:AAAA\r\nEND:VCARD\r\n"
    )
    assert read_card(card.encode()).text == (
        "Name: Jo Müller\nOrganisation: Sample, Inc., Pipes\nTitle: Plumber\nEmail: jo@example.org\n"
        "Web: https://example.org/jo\nNote: Likes cheese and slow work\n"
    )


def test_a_folder_of_every_kind_is_read_and_reported(tmp_path: Path) -> None:
    files: dict[str, bytes] = {
        "a.html": b"<h1>Talks</h1><p>On pipes.</p>",
        "b.docx": word_file(lambda document: document.add_paragraph("I lay pipes.")),
        "c.csv": b"Skill,Years\nRust,3\n",
        "d.json": b'{"name": "Jo"}',
        "e.vcf": b"BEGIN:VCARD\nFN:Jo\nEND:VCARD",
        "f.rtf": rb"{\rtf1\ansi\ansicpg1252 I am n\'e9e Sample.\par}",
        "sub/g é.md": b"I am Jo.",
        "h.pages": b"PK",
        "i.jpg": b"\xff\xd8",
        ".j.md": b"secret",
    }
    (tmp_path / "sub").mkdir()
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    knowledge = load_knowledge(tmp_path)
    assert [report.line() for report in knowledge.reports] == [
        "a.html: read, 4 words", "b.docx: read, 3 words", "c.csv: read, 4 words", "d.json: read, 2 words",
        "e.vcf: read, 2 words", "f.rtf: read, 4 words",
        "h.pages: skipped: .pages files are not read; export it as .docx or .pdf", "sub/g é.md: read, 3 words",
    ]  # fmt: skip
    assert knowledge.documents[5].text == "I am née Sample.\n"


def test_a_report_says_what_looks_wrong() -> None:
    report = FileReport("a.pdf", "read", "words run together", 3, 1)
    assert report.needs_care
    assert report.line() == "a.pdf: read, 1 page, 3 words; words run together"
    assert not FileReport("a.md", "read", "", 3).needs_care
