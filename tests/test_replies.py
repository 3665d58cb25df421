"""What the owner's replies do, and what the bot answers to them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from alerts.commands import MAX_CHARS, NOTHING_TO_READ
from store.inbox import AlertText
from store.records import Question
from store.store import Store
from tests.inbox_house import CHAT, Talk


@pytest.fixture
def talk(store: Store) -> Talk:
    return Talk(store)


async def answers(store: Store) -> list[tuple[str, str]]:
    return [(answer.question, answer.text) for answer in await store.answers()]


async def test_a_reply_to_a_question_becomes_the_answer(talk: Talk, store: Store) -> None:
    asked, _ = await talk.question("Where did you grow up?")
    confirmed = await talk.says("  In Turin.\n", asked)
    assert await answers(store) == [("Where did you grow up?", "In Turin.")]
    (answer,) = await store.answers()
    assert confirmed is not None
    assert confirmed.startswith(f"Kept as {answer.reference}. I use it from now on")
    assert f"\nThe question: {answer.question}\n" in confirmed
    assert f"/forget {answer.reference}" in confirmed
    assert "address" not in confirmed
    assert [(words.text, words.question) for words in await store.owner_words("talk")] == [
        ("In Turin.", "Where did you grow up?")
    ]


async def test_the_confirmation_offers_the_address_that_the_visitor_left(talk: Talk) -> None:
    asked, _ = await talk.question()
    await talk.contact("jane@example.org")
    confirmed = await talk.says("In Turin.", asked)
    assert confirmed is not None
    assert "jane@example.org" in confirmed


@pytest.mark.parametrize("how", ["a second reply", "an edit", "a reply to the confirmation", "its reference"])
async def test_an_answer_can_be_corrected(talk: Talk, store: Store, how: str) -> None:
    asked, _ = await talk.question("Where did you grow up?")
    await talk.says("In Milan.", asked)
    (first,) = await store.answers()
    match how:
        case "a second reply":
            confirmed = await talk.says("In Turin.", asked)
        case "an edit":
            confirmed = await talk.says("In Turin.", asked, kind="edited_message", message_id=talk.said)
        case "a reply to the confirmation":
            confirmed = await talk.says("In Turin.", talk.answered)
        case _:
            confirmed = await talk.says(f"{first.reference.lower()} In Turin.")
    assert confirmed is not None
    assert f"Kept as {first.reference}." in confirmed
    assert await answers(store) == [("Where did you grow up?", "In Turin.")]
    assert [words.text for words in await store.owner_words("talk")] == ["In Turin."]


async def test_a_reply_to_a_contact_is_shown_to_that_visitor(talk: Talk, store: Store) -> None:
    await store.open_turn("talk", "Write to jane@example.org")
    left, _ = await talk.contact("jane@example.org")
    shown = await talk.says("I will call you on Monday.", left)
    assert shown is not None
    assert shown.startswith("Shown to the visitor as your own words")
    assert "jane@example.org" in shown
    assert [words.text for words in await store.owner_words("talk")] == ["I will call you on Monday."]
    assert await store.answers() == ()


@pytest.mark.parametrize(
    "written", ["{}: In Turin.", "{} In Turin.", "{} – In Turin.", "{}\nIn Turin.", "{}:In Turin."]
)
async def test_a_reference_says_what_is_meant_without_a_reply(talk: Talk, store: Store, written: str) -> None:
    _, reference = await talk.question("Where did you grow up?")
    await talk.says(written.format(reference))
    assert await answers(store) == [("Where did you grow up?", "In Turin.")]


async def test_only_the_mark_behind_the_reference_is_left_out(talk: Talk, store: Store) -> None:
    _, reference = await talk.question("Which framework?")
    await talk.says(f"{reference} .NET")
    assert await answers(store) == [("Which framework?", ".NET")]


async def test_a_reference_of_a_contact_writes_to_the_visitor(talk: Talk, store: Store) -> None:
    _, reference = await talk.contact()
    await talk.says(f"{reference.lower()}-2: Hello.")
    assert [words.text for words in await store.owner_words("talk")] == ["Hello."]


async def test_a_word_that_only_looks_like_a_reference_is_the_answer(talk: Talk, store: Store) -> None:
    asked, _ = await talk.question("Which drive?")
    await talk.says("C-drives are the best.", asked)
    await talk.says("A-22222222 is its number.", asked)
    assert await answers(store) == [("Which drive?", "A-22222222 is its number.")]


async def test_a_reply_to_several_things_asks_which_one_is_meant(talk: Talk, store: Store) -> None:
    for number in range(2):
        await store.add_question(*_question(f"What is {number}?"))
    digest, reference = await talk.deliver(limit=10)
    asked = await talk.says("Forty-two.", digest)
    assert asked is not None
    assert asked.startswith("That message was about several things.")
    assert reference in asked
    assert await answers(store) == []
    await talk.says(f"{reference}: Forty-two.", digest)
    assert await answers(store) == [("What is 0?", "Forty-two.")]


def _question(text: str) -> tuple[Question, AlertText]:
    return Question("talk", text), lambda reference: f"Asked {reference}"


async def test_a_reply_to_trouble_has_nobody_to_reach(talk: Talk, store: Store) -> None:
    await store.add_trouble("reply", "Trouble", timedelta(hours=1))
    trouble, _ = await talk.deliver()
    assert (
        await talk.says("Oh dear.", trouble)
        == "That alert was about the replica itself: there is no visitor to answer."
    )


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("q-22222: Hello", "I know no Q-22222."),
        ("A-22222", "There is no text behind the reference."),
        ("Good morning", "Reply to an alert"),
        (None, "I understand only text."),
        ("/unheard_of", "I know no command /unheard_of."),
    ],
)
async def test_what_cannot_be_done_is_said(talk: Talk, store: Store, written: str | None, words: str) -> None:
    said = await talk.says(written)
    assert said is not None
    assert said.startswith(words)
    assert await answers(store) == []


async def test_a_reply_to_something_unknown_is_said(talk: Talk) -> None:
    said = await talk.says("Hello", 999)
    assert said is not None
    assert said.startswith("I do not know what that message was about")


async def test_a_reply_to_what_was_forgotten_is_said(talk: Talk, store: Store) -> None:
    asked, reference = await talk.question()
    await talk.says(f"/forget {reference}")
    said = await talk.says("In Turin.", asked)
    assert said is not None
    assert said.startswith("I do not know what that message was about")
    assert await answers(store) == []


async def test_an_answer_that_is_too_long_is_not_taken(talk: Talk, store: Store) -> None:
    asked, _ = await talk.question()
    said = await talk.says("x" * (MAX_CHARS + 1), asked)
    assert said is not None
    assert "4000 characters" in said
    assert await answers(store) == []
    await talk.says("x" * MAX_CHARS, asked)
    assert len((await store.answers())[0].text) == MAX_CHARS


@pytest.mark.parametrize("text", ["\u200f", "\u200b \u2060", "\u3164", "\ufe0f\u200d"])
async def test_a_text_that_shows_nothing_is_not_taken(talk: Talk, store: Store, text: str) -> None:
    asked, reference = await talk.question()
    left, _ = await talk.contact()
    for said in (text, f"{reference}: {text}"):
        assert await talk.says(said, asked) == NOTHING_TO_READ
    assert await talk.says(text, left) == NOTHING_TO_READ
    assert await answers(store) == []
    assert await store.owner_words("talk") == ()


@pytest.mark.parametrize("text", ["\U0001f44d", "\u2764\ufe0f", "\u202eok", "7", "\U0001fae9"])
async def test_a_sign_is_something_to_read(talk: Talk, store: Store, text: str) -> None:
    asked, _ = await talk.question("Well?")
    await talk.says(text, asked)
    assert await answers(store) == [("Well?", text)]


async def test_that_a_caller_of_the_api_cannot_read_it_is_said(talk: Talk, store: Store) -> None:
    left, _ = await talk.contact("jane@example.org", "api.0123")
    said = await talk.says("Hello.", left)
    assert said == "That visitor came through the API and cannot read this; write to jane@example.org"
    assert await store.owner_words("api.0123") == ()
    asked, _ = await talk.question("Where?", "api.0123")
    said = await talk.says("In Turin.", asked)
    assert said is not None
    assert "came through the API and is not shown it.\nWhoever asked left an address: jane@example.org" in said
    assert "show it to the visitor" not in said
    assert await answers(store) == [("Where?", "In Turin.")]


async def test_a_half_surrogate_is_mended(talk: Talk, store: Store) -> None:
    asked, _ = await talk.question("Which?")
    await talk.says("This \ud83d one", asked)
    assert await answers(store) == [("Which?", "This \ufffd one")]


# In groups and channels


@pytest.mark.parametrize(
    ("text", "replied", "bots"),
    [("Good morning", None, True), (None, None, True), ("I agree", 999, False)],
)
async def test_what_members_of_a_group_tell_each_other_is_not_answered(
    store: Store, text: str | None, replied: int | None, bots: bool
) -> None:
    group = Talk(store, "-1001", "supergroup")
    assert await group.says(text, replied, bots=bots) is None


async def test_a_command_for_another_bot_in_the_group_is_left_to_it(store: Store) -> None:
    group = Talk(store, "-1001", "supergroup")
    assert await group.says("/help@another_bot") is None
    assert await group.says("/HELP@replica_bot") is not None


async def test_a_reply_in_a_channel_counts(store: Store) -> None:
    channel = Talk(store, "-1001", "channel")
    asked, _ = await channel.question("Where?")
    await channel.says("In Turin.", asked, kind="channel_post")
    assert await answers(store) == [("Where?", "In Turin.")]


async def test_the_first_message_of_a_topic_is_not_what_is_replied_to(store: Store) -> None:
    forum = Talk(store, "-1001", "supergroup")
    topic = {"message_id": 3, "forum_topic_created": {}, "from": {"is_bot": True}}
    assert await forum.says("Good morning", reply_to_message=topic) is None


# Once


async def test_an_update_that_comes_again_is_not_done_again(talk: Talk, store: Store) -> None:
    asked, _ = await talk.question("Where?")
    update = {
        "update_id": 6000,
        "message": {
            "message_id": 50,
            "chat": {"id": int(CHAT), "type": "private"},
            "text": "In Turin.",
            "reply_to_message": {"message_id": asked},
        },
    }
    for _ in range(2):
        await talk.hearing.handle(update)
    assert len(talk.heard) == 1
    assert await store.alert_counts() == {"pending": 1, "failed": 0, "kept": 0, "sent": 1}
