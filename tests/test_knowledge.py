"""The owner's files: what is read, what is not and why, and how it is cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfWriter

from agent.knowledge import Document, cut, load_knowledge

CASES = Path(__file__).parent / "cases"


def one_page_pdf(text: str) -> bytes:
    """A PDF written by hand: one page, one line of Helvetica."""
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode("latin-1")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    pdf, offsets = b"%PDF-1.4\n", [0]
    for number, content in enumerate(objects, 1):
        offsets.append(len(pdf))
        pdf += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets[1:])
    head = b"xref\n0 %d\n0000000000 65535 f \n" % len(offsets)
    return pdf + head + table + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(offsets), len(pdf))


def test_markdown_text_and_pdf_are_read_in_the_order_of_their_paths(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("I like tea.\n\nAnd cake.")
    (tmp_path / "a.md").write_text("# Jo\n\nI build bridges.")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.pdf").write_bytes(one_page_pdf("I was born in Leeds."))
    knowledge = load_knowledge(tmp_path)
    assert [document.file for document in knowledge.documents] == ["a.md", "b.txt", "sub/c.pdf"]
    assert [passage.text for passage in knowledge.passages] == [
        "I build bridges.", "I like tea.", "And cake.", "I was born in Leeds.",
    ]  # fmt: skip
    assert [report.line() for report in knowledge.reports] == [
        "a.md: read, 5 words", "b.txt: read, 5 words", "sub/c.pdf: read, 1 page, 5 words",
    ]  # fmt: skip


def test_the_readme_hidden_files_and_pictures_are_left_alone(tmp_path: Path) -> None:
    for name in ("README.md", "readme.txt", ".notes.md", "photo.md.bak", "~$draft.md"):
        (tmp_path / name).write_text("secret")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "notes.md").write_text("secret")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    knowledge = load_knowledge(tmp_path)
    assert knowledge.documents == knowledge.reports == ()
    assert knowledge.picture == tmp_path / "picture.png"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "private.md").write_text("secret")
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "link.md").symlink_to(tmp_path / "private.md")
    assert load_knowledge(tmp_path / "knowledge").documents == ()


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("empty.md", b"", "empty"),
        ("blank.txt", b" \n\t\n", "empty"),
        ("zero.pdf", b"", "empty"),
        ("text.pdf", b"just text", "not a PDF"),
        ("cv.doc", b"\xd0\xcf\x11\xe0", ".doc files are not read; save it as .docx or .pdf"),
        ("torn.pdf", b"%PDF-1.7\nnothing more", "damaged"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path, name: str, data: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(data)
    (tmp_path / "good.md").write_text("I am Jo.")
    knowledge = load_knowledge(tmp_path)
    assert [document.file for document in knowledge.documents] == ["good.md"]
    [report] = [report for report in knowledge.reports if report.file == name]
    assert report.line().startswith(f"{name}: skipped: {why}")


def test_a_scan_and_a_locked_pdf_are_named_with_the_reason(tmp_path: Path) -> None:
    for name, password in (("scan.pdf", ""), ("locked.pdf", "hunter2")):
        writer = PdfWriter()
        writer.add_blank_page(200, 200)
        if password:
            writer.encrypt(password, algorithm="RC4-128")
        writer.write(tmp_path / name)
    lines = [report.line() for report in load_knowledge(tmp_path).reports]
    assert lines[0].startswith("locked.pdf: skipped: locked with a password")
    assert lines[1].startswith("scan.pdf: skipped: no text on any page")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_encodings_of_common_editors_are_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("Née “Müller”, résumé".encode(encoding))
    assert load_knowledge(tmp_path).documents[0].text == "Née “Müller”, résumé\n"


def test_a_folder_that_is_missing_or_empty_is_a_problem_with_a_remedy(tmp_path: Path) -> None:
    assert "set KNOWLEDGE_DIR" in load_knowledge(tmp_path / "nowhere").problem
    assert "add a .md" in load_knowledge(tmp_path).problem
    (tmp_path / "file").write_text("x")
    assert load_knowledge(tmp_path / "file").problem


def test_passages_carry_the_headings_above_them() -> None:
    text = (
        "Before.\n\n# Jo\n\nI am\nJo.\n\n## Work\n\n- bridges\n- tunnels\n\n### Then\n\nRoads.\n\n## Home\n\nLeeds.\n"
    )
    found = [(passage.heading, passage.text) for passage in cut(Document("a.md", text))]
    assert found == [
        ("", "Before."),
        ("Jo", "I am Jo."),
        ("Jo › Work", "- bridges\n- tunnels"),
        ("Jo › Work › Then", "Roads."),
        ("Jo › Home", "Leeds."),
    ]


@given(st.text())
def test_any_text_can_be_cut(text: str) -> None:
    for passage in cut(Document("a.md", text)):
        assert passage.text.strip()


def test_the_demo_person_is_read_whole() -> None:
    knowledge = load_knowledge(Path("knowledge"))
    assert not knowledge.problem
    assert [report.status for report in knowledge.reports] == ["read"] * 4
    assert knowledge.passages[0].heading == "Ada Lovelace"
