"""`python -m agent.knowledge [folder]`: what came of each file, and which questions of visitors no file answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from agent.knowledge.folder import load_knowledge
from agent.knowledge.lint import Question, is_english, left_open
from agent.knowledge.values import Knowledge
from agent.settings import SettingsError, load_settings, read_environment

CODES = """\
exit codes: 0: every file was read and every question is answered; 1: something is left for you to do (a file was
skipped or looks damaged, or a question is left open); 2: there is no folder, or a setting cannot be used."""


def main(arguments: Sequence[str], out: TextIO) -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m agent.knowledge",
        description="Reads your files as the replica does. Says what came of each, and which of the questions that "
        "visitors always ask none of them answers. Answers are recognised in English only.",
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", nargs="?", type=Path, help="your files; KNOWLEDGE_DIR unless it is given")
    try:
        folder: Path = parser.parse_args(arguments).folder or load_settings(read_environment()).knowledge_dir
    except SettingsError as error:
        out.write(f"{error}\n")
        return 2
    knowledge = load_knowledge(folder)
    missing = left_open(knowledge.passages) if is_english(knowledge.passages) else None
    out.writelines(f"{line}\n" for line in report(knowledge, missing))
    if not folder.is_dir():
        return 2
    return int(bool(knowledge.problem or missing) or any(found.needs_care for found in knowledge.reports))


def report(knowledge: Knowledge, missing: Sequence[Question] | None) -> Iterator[str]:
    """What came of the files, a line each, then the questions that they leave open; None: it cannot be told."""
    yield from (found.line() for found in knowledge.reports)
    if knowledge.problem:
        yield knowledge.problem
        return
    yield ""
    if missing is None:
        yield "Your files are not in English, so whether they answer what visitors always ask cannot be told."
    elif missing:
        yield f"No answer was found to {len(missing)} of the questions that visitors always ask. Add:"
        yield from (f"- {question.asked} {question.hint[0].upper()}{question.hint[1:]}" for question in missing)
    else:
        yield "Every question that visitors always ask is answered."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdout))
