"""What the owner's commands do, and what the bot answers to them."""

from __future__ import annotations

import re

import pytest

from alerts.commands import COMMANDS, HELP, PAUSED, menu
from alerts.text import TELEGRAM_LIMIT
from store.store import Store
from tests.inbox_house import Talk


@pytest.fixture
def talk(store: Store) -> Talk:
    return Talk(store)


async def answers(store: Store) -> list[tuple[str, str]]:
    return [(answer.question, answer.text) for answer in await store.answers()]


async def test_leads_lists_the_newest_contacts(talk: Talk) -> None:
    assert await talk.says("/leads") == "Nobody has left an address yet."
    references = [(await talk.contact(f"jane{number}@example.org", f"talk {number}"))[1] for number in range(12)]
    listed = await talk.says("/Leads")
    assert listed is not None
    assert listed.startswith(
        "The newest contacts:\n\n" + f"{references[-1]} · just now\nJane Doe · jane11@example.org\n"
    )
    assert listed.count("to talk about a job") == 10


async def test_questions_lists_what_waits_for_an_answer(talk: Talk) -> None:
    assert await talk.says("/questions") == "No question waits for an answer."
    asked, _ = await talk.question("Where did you grow up?")
    _, reference = await talk.question("What is\nyour name?")
    await talk.says("In Turin.", asked)
    assert await talk.says("/questions@Replica_Bot") == (
        "Questions that wait for your answer:\n\n"
        f"{reference} · just now\nWhat is your name?\n\n"
        f"To answer: {reference}: your text"
    )


async def test_a_reply_to_the_list_of_questions_asks_for_a_reference(talk: Talk, store: Store) -> None:
    await talk.question()
    await talk.says("/questions")
    said = await talk.says("In Turin.", talk.answered)
    assert said is not None
    assert "Begin your text with a reference" in said
    assert await answers(store) == []


async def test_stats_counts_the_last_days(talk: Talk) -> None:
    asked, _ = await talk.question()
    await talk.contact()
    await talk.says("In Turin.", asked)
    assert await talk.says("/stats") == (
        "The last 7 days:\n"
        "Conversations: 1, with 1 messages\n"
        "Contacts: 1\n"
        "Questions passed on: 1; waiting: 0\n"
        "Answers of yours: 1\n"
        "Thumbs: 0 up, 0 down\n"
        "Cost: 0.00 USD, where prices are known"
    )


async def test_forget_takes_an_answer_back(talk: Talk, store: Store) -> None:
    asked, _ = await talk.question()
    await talk.says("In Turin.", asked)
    (answer,) = await store.answers()
    assert await talk.says(f"/forget {answer.reference.lower()}") == f"Forgotten: the answer {answer.reference}."
    assert await store.answers() == ()
    assert await store.owner_words("talk") == ()


async def test_forget_deletes_all_of_a_visitor(talk: Talk, store: Store) -> None:
    await talk.question()
    _, reference = await talk.contact()
    said = await talk.says(f"/forget {reference}")
    assert said is not None
    assert said.startswith("Forgotten: all that was kept of one visitor")
    assert await store.contacts() == []
    assert await store.questions() == []
    assert (await store.conversation("talk")).turns == ()


@pytest.mark.parametrize(
    ("argument", "words"), [("", "/forget A-7KQ2M takes"), ("me", "/forget A-"), ("Q-22222", "I know no Q-2")]
)
async def test_forget_needs_a_reference_that_is_known(talk: Talk, argument: str, words: str) -> None:
    said = await talk.says(f"/forget {argument}")
    assert said is not None
    assert said.startswith(words)


async def test_pause_closes_and_resume_opens(talk: Talk, store: Store) -> None:
    said = await talk.says("/pause")
    assert said is not None
    assert said.startswith("Closed")
    since = await store.state(PAUSED)
    assert since is not None
    await talk.says("/PAUSE")
    assert await store.state(PAUSED) == since
    assert await talk.says("/resume") == "Open: the replica answers visitors."
    assert await store.state(PAUSED) is None


async def test_help_names_every_command_of_the_menu(talk: Talk) -> None:
    for command in ("/help", "/start"):
        said = await talk.says(command)
        assert said is not None
        assert HELP in said
        assert re.findall(r"^/(\w+) – ", said, re.MULTILINE) == [one["command"] for one in menu()]
    assert len(menu()) == len(COMMANDS) == 7


async def test_the_longest_list_fits_into_one_message(talk: Talk) -> None:
    for number in range(10):
        await talk.question(f"{number} " + "?" * 5000, f"talk {number}")
    said = await talk.says("/questions")
    assert said is not None
    assert len(said.encode("utf-16-le")) // 2 < TELEGRAM_LIMIT
