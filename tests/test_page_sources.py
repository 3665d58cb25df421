"""What stands behind the labels of a reply's sources."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.answers import Answered, Answers
from agent.knowledge import Knowledge
from agent.library import passages_in
from agent.loop import Replica
from agent.model import OpenAIModel
from agent.passages import Passage
from agent.reception import Reception
from agent.toolkit import Toolkit
from pages.sources import MAX_CHARS, MAX_TEXTS, Sources, shortened
from pages.talk import Talk
from store.store import Store
from tests.fakes.provider import Provider, says
from tests.owner_house import answer, ask, forget
from tests.test_page_talk import visit

PAGE_ID = "A" * 32
PASSAGES = (
    Passage("cv.md", "Work › Acme", "I *led* four people."),
    Passage("cv.md", "Work › Acme", "Then five."),
    Passage("cv.md", "School", "At home. <script>alert(1)</script>"),
    Passage("faq.md", "", "No headings here."),
)
passages_of = passages_in(Knowledge(passages=PASSAGES))


@pytest.fixture(autouse=True, scope="module")
def quiet_parser() -> None:
    """The Markdown parser logs every rule it tries, which takes longer than all these tests."""
    logging.getLogger("markdown_it").setLevel(logging.INFO)


async def text_behind(label: str, sources: Sources | None = None) -> str:
    behind = await (sources or Sources(passages_of)).behind([label])
    return "".join(behind[label]["blocks"]) if label in behind else ""


async def test_a_label_opens_the_passages_under_its_heading() -> None:
    assert await text_behind("cv.md › Work › Acme") == "<p>I <em>led</em> four people.</p>\n<p>Then five.</p>\n"
    assert await text_behind("faq.md") == "<p>No headings here.</p>\n"


async def test_a_file_opens_with_its_first_passages_and_their_headings() -> None:
    assert await text_behind("cv.md") == (
        "<p><strong>Work › Acme</strong></p>\n<p>I <em>led</em> four people.</p>\n<p>Then five.</p>\n"
        "<p><strong>School</strong></p>\n<p>At home. &lt;script&gt;alert(1)&lt;/script&gt;</p>\n"
    )


async def test_a_label_that_nothing_stands_behind_has_no_text() -> None:
    assert await Sources(passages_of).behind(["gone.md", "cv.md › Gone", ""]) == {}
    assert await Sources().behind(["cv.md"]) == {}


async def test_a_long_passage_ends_with_an_ellipsis() -> None:
    long = Sources(lambda label: [Passage("a.md", "", "word " * MAX_CHARS), Passage("a.md", "", "never")])
    text = await text_behind("a.md", long)
    assert text.endswith(" word…</p>\n")
    assert MAX_CHARS * 0.9 < len(text) <= MAX_CHARS + len("<p></p>\n")
    assert "never" not in text


@given(st.text(max_size=3 * MAX_CHARS) | st.integers(1, 4000).map(lambda n: "x" * n))
@settings(deadline=None)
def test_a_shortened_text_is_a_beginning_of_the_whole(text: str) -> None:
    short = shortened(text)
    assert len(short) <= MAX_CHARS
    assert short == text if len(text) <= MAX_CHARS else text.startswith(short[:-1])


async def test_an_answer_in_person_opens_under_its_question_until_it_is_taken_back(store: Store) -> None:
    kept = await answer(store, await ask(store, "Do you ski?"), "In **winter**.")
    sources = Sources(passages_of, Answers(store, 1000))
    behind = await sources.behind(["answers › Do you ski?", "cv.md › School", "answers › Do you swim?"])
    assert behind["answers › Do you ski?"] == {
        "title": "Do you ski?", "in_person": True, "blocks": ["<p>In <strong>winter</strong>.</p>\n"],
    }  # fmt: skip
    assert behind["cv.md › School"]["in_person"] is False
    assert "answers › Do you swim?" not in behind
    await forget(store, kept.reference)
    assert await sources.behind(["answers › Do you ski?"]) == {}


async def test_of_many_labels_the_last_ones_have_a_text() -> None:
    looked_up: list[str] = []

    def passages_of(label: str) -> Sequence[Passage]:
        looked_up.append(label)
        return [Passage(label, "", "text")]

    labels = [f"{number}.md" for number in range(MAX_TEXTS + 5)]
    behind = await Sources(passages_of).behind(labels * 3)
    assert sorted(behind) == sorted(looked_up) == sorted(labels[5:])


class Unreachable:
    """A store whose disk is gone."""

    async def answers(self) -> Sequence[Answered]:
        raise OSError("disk at /secret/path")

    async def answers_version(self) -> str:
        raise OSError("disk at /secret/path")


async def test_a_fault_costs_the_texts_and_not_the_reply(caplog: pytest.LogCaptureFixture) -> None:
    assert await Sources(passages_of, Answers(Unreachable(), 1000)).behind(["cv.md", "answers › Do you ski?"]) == {}
    assert "could not be read (OSError)" in caplog.text
    assert "secret" not in caplog.text


# --- In the talk ---


@pytest.fixture
def talk(model: OpenAIModel, store: Store) -> Talk:
    async def rated(conversation_id: str, number: int, liked: bool | None) -> None: ...

    known = frozenset(label for one in PASSAGES for label in (one.file, one.label))
    replica = Replica(model, Toolkit(), "You are Ada.", known=known)
    reception = Reception(replica, store, max_replies=3, max_message_chars=50)
    return Talk(reception, rated, sources=Sources(passages_of))


async def test_a_reply_tells_its_sources_when_it_is_finished_and_so_does_the_history(
    talk: Talk, provider: Provider
) -> None:
    provider.script = [says("At home.\n\nSources: cv.md › School; invented.md")]
    told: list[dict[str, Any]] = [json.loads(piece) async for piece in talk.ask("Where?", PAGE_ID)]
    assert {tuple(piece["turn"]["sources"]) for piece in told[:-1]} == {()}
    assert (told[-1]["turn"]["sources"], list(told[-1]["behind"])) == (["cv.md › School"], ["cv.md › School"])
    assert told[-1]["turn"]["blocks"] == ["<p>At home.</p>\n"]
    past = json.loads(await talk.load(PAGE_ID))
    assert past["history"][0]["sources"] == ["cv.md › School"]
    assert past["behind"] == told[-1]["behind"]


async def test_the_api_ends_with_the_sources(talk: Talk, provider: Provider) -> None:
    provider.script = [says("At home.\n\nSources: cv.md › School")]
    replies = [reply async for reply in talk.chat("Where?", visit("s1"))]
    assert replies[-1] == "At home.\n\nSources: cv.md › School"
