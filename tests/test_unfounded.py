"""An answer to a question that rests on nothing is flagged for the owner; all else is not."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from agent.briefing import Briefing
from agent.loop import Replica
from agent.model import OpenAIModel
from agent.reception import UNFOUNDED, Reception
from agent.small_talk import asks_for_facts
from store.store import Store
from tests.fakes.counts import Counts
from tests.fakes.hands import Hands
from tests.fakes.provider import Answer, Provider, calls, says
from tests.shelves import library_of

CONVERSATION = "0123456789abcdef" * 2
QUESTION = "Where did you learn to weave baskets?"
SOURCED = "At school.\n\nSources: cv.md › Jo Example"


@pytest.fixture
def reception(model: OpenAIModel, store: Store, counts: Counts, tmp_path: Path) -> Reception:
    folder = tmp_path / "knowledge"
    folder.mkdir()
    (folder / "cv.md").write_text("# Jo Example\n\nI learnt to weave at school.\n")
    replica = Replica(model, Hands().toolkit, "")
    briefing = Briefing(library_of(folder))
    return Reception(replica, store, max_replies=3, max_message_chars=500, watch=counts, briefing=briefing)


@pytest.mark.parametrize(
    ("message", "script", "flags"),
    [
        (QUESTION, [says("In Peru.")], 1),
        (QUESTION, [says("In Peru.\n\nSources: invented.md")], 1),
        ("Tell me where you studied", [says("In Peru.")], 1),
        (QUESTION, [says(SOURCED)], 0),
        (QUESTION, [calls(("note", json.dumps({"text": QUESTION}))), says("I do not know.")], 0),
        (QUESTION, [Answer(status=401)], 0),
        ("Hello there", [says("Hello.")], 0),
        ("Who are you?", [says("I am Jo's replica.")], 0),
        ("Thank you very much!", [says("You are welcome.")], 0),
        ("How can I get in touch with you?", [says("Leave your address here.")], 0),
        ("I am Sarah from TechFirm.", [says("Nice to meet you.")], 0),
    ],
)
async def test_what_rests_on_nothing_is_flagged_once_without_a_visitors_word(
    reception: Reception,
    provider: Provider,
    counts: Counts,
    caplog: pytest.LogCaptureFixture,
    message: str,
    script: list[Answer],
    flags: int,
) -> None:
    provider.script = script
    await all_of_turn(reception, message)
    lines = [line.getMessage() for line in caplog.records if UNFOUNDED in line.getMessage()]
    assert lines == [f"turn 012345/0: {UNFOUNDED}"] * flags
    assert all(line.levelno == logging.WARNING for line in caplog.records if UNFOUNDED in line.getMessage())
    assert counts.without_source == flags


async def all_of_turn(reception: Reception, message: str) -> None:
    async for _ in reception.answer(CONVERSATION, message):
        pass


@pytest.mark.parametrize("message", ["?", "", "ok", "And when?", "😀?", "a" * 4000])
def test_what_asks_for_nothing_is_no_question(message: str) -> None:
    assert not asks_for_facts(message)
