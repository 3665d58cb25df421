"""The model when there is none, in the same loop with the same kinds of tools."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.conversation import Conversation, Draft, Turn, to_wire
from agent.events import TextDelta, ToolFinished, TurnFinished
from agent.knowledge import Passage
from agent.loop import Replica, respond
from agent.offline import BAD_ADDRESS, INVITE, NOT_A_QUESTION, NOTICE, UNKNOWN, UNKNOWN_WITH_ADDRESS, OfflineModel
from agent.toolkit import Arguments, Tool, Toolkit, Visit

BORN = Passage("01-profile.md", "Ada › Birth", "I was born in London in 1815.")


class KnowsBirth:
    """A search that knows where she was born, and nothing else."""

    async def answering(self, question: str) -> tuple[Passage, ...]:
        return (BORN,) if "born" in question else ()


class Leave(Arguments):
    """Takes an address."""

    email: str
    notes: str
    name: str = ""


class Ask(Arguments):
    """Takes a question."""

    question: str


class Hands:
    def __init__(self, verdict: str = "ok") -> None:
        self.left: list[Leave] = []
        self.asked: list[str] = []
        self.verdict = verdict
        self.toolkit = Toolkit(
            Tool("take_address", Leave, self._leave, "…", "Left"), Tool("take_question", Ask, self._ask, "…", "Asked")
        )

    async def _leave(self, arguments: Leave, visit: Visit) -> str:
        self.left.append(arguments)
        return self.verdict

    async def _ask(self, arguments: Ask, visit: Visit) -> str:
        self.asked.append(arguments.question)
        return "ok"


async def answer(message: str, hands: Hands | None = None, conversation: Conversation | None = None) -> Turn:
    model = OfflineModel("Ada Lovelace", "Mathematician.", KnowsBirth())
    replica = Replica(model, (hands or Hands()).toolkit, "persona", known=frozenset({BORN.label}))
    last = None
    async for event in respond(replica, conversation or Conversation(), message):
        last = event
    assert isinstance(last, TurnFinished)
    assert last.stop == "answered"
    return last.turn


async def test_a_question_that_the_notes_answer_is_quoted_with_its_file() -> None:
    turn = await answer("Where were you born?")
    assert turn.text.startswith("I was born in London in 1815.")
    assert "Sources" not in turn.text
    assert turn.steps[-1].reply.sources == ("01-profile.md › Ada › Birth",)


async def test_a_question_that_nothing_answers_is_passed_on_and_said_so() -> None:
    hands = Hands()
    turn = await answer("What is your favourite colour?", hands)
    assert hands.asked == ["What is your favourite colour?"]
    assert UNKNOWN in turn.text


async def test_who_has_left_an_address_is_not_asked_for_one_again() -> None:
    first = await answer("Please write to sarah@techfirm.com.", Hands())
    turn = await answer("What is your favourite colour?", Hands(), Conversation((first,)))
    assert UNKNOWN_WITH_ADDRESS in turn.text
    refused = await answer("Please write to sarah@techfirm.com.", Hands("That is no address."))
    turn = await answer("What is your favourite colour?", Hands(), Conversation((refused,)))
    assert UNKNOWN in turn.text


async def test_an_address_is_passed_on_with_the_message_and_the_name() -> None:
    hands = Hands()
    turn = await answer("I'm Sarah Jones from TechFirm, please write to sarah@techfirm.com.", hands)
    [left] = hands.left
    assert (left.email, left.name) == ("sarah@techfirm.com", "Sarah Jones")
    assert "TechFirm" in left.notes
    assert "passed your details on" in turn.text


async def test_a_question_beside_an_address_is_answered_too() -> None:
    text = (await answer("Where were you born? Write to sarah@techfirm.com")).text
    assert "passed your details on" in text
    assert BORN.text in text


async def test_a_bad_address_is_asked_about() -> None:
    assert BAD_ADDRESS in (await answer("sarah@techfirm", Hands("ERROR: no"))).text


async def test_a_suggestion_is_passed_on_as_a_question() -> None:
    text = (await answer("jane@gmial.com", Hands("Ask whether they mean jane@gmail.com."))).text
    assert "Did you mean jane@gmail.com?" in text


@pytest.mark.parametrize("answer_to_it", ["yes", "Yes, that's right", "correct!", "👍"])
async def test_a_yes_to_a_suggestion_passes_the_suggested_address_on(answer_to_it: str) -> None:
    asked = await answer("jane@gmial.com", Hands("Ask whether they mean jane@gmail.com."))
    hands = Hands()
    await answer(answer_to_it, hands, Conversation().and_then(asked))
    assert [left.email for left in hands.left] == ["jane@gmail.com"]


async def test_a_no_to_a_suggestion_passes_nothing_on() -> None:
    asked = await answer("jane@gmial.com", Hands("Ask whether they mean jane@gmail.com."))
    hands = Hands()
    await answer("no, it is not", hands, Conversation().and_then(asked))
    assert hands.left == []


async def test_of_a_long_message_the_question_is_passed_on() -> None:
    hands = Hands()
    await answer("I work for a large firm that builds bridges. " * 40 + "What notice period do you have?", hands)
    assert hands.asked == ["What notice period do you have?"]


async def test_of_two_addresses_it_asks_which() -> None:
    assert "a@b.co or c@d.co" in (await answer("a@b.co; c@d.co", Hands("Ask which one."))).text


async def test_it_says_once_that_it_quotes_notes() -> None:
    first = await answer("Where were you born?")
    second = await answer("And where were you born again?", conversation=Conversation().and_then(first))
    assert NOTICE in first.text
    assert NOTICE not in second.text


@pytest.mark.parametrize(
    "message", ["Hello", "hi there!", "Thanks a lot", "thank you", "Who are you?", "Are you a bot?", "bye", "ok", "👍"]
)
async def test_small_talk_is_answered_and_rings_nobody(message: str) -> None:
    hands = Hands()
    text = (await answer(message, hands)).text
    assert text
    assert UNKNOWN not in text
    assert hands.asked == []


@pytest.mark.parametrize("message", ["🎉🎉🎉", "asdf", "I like trains", "?", "And when was that?", "tell me more"])
async def test_what_is_no_question_rings_nobody(message: str) -> None:
    hands = Hands()
    assert NOT_A_QUESTION in (await answer(message, hands)).text
    assert hands.asked == []


async def test_a_wish_for_contact_is_met_with_how() -> None:
    hands = Hands()
    assert INVITE in (await answer("How can I get in touch with you?", hands)).text
    assert hands.asked == []


async def test_without_tools_it_says_what_it_does_not_know() -> None:
    model = OfflineModel("Ada", "", KnowsBirth())
    messages = to_wire("persona", Conversation(), Draft("What is your favourite colour?"))
    pieces = [piece async for piece in model.stream(messages, (), "auto")]
    assert "My notes do not answer that." in "".join(piece for piece in pieces if isinstance(piece, str))


@settings(deadline=None)
@given(st.text(min_size=1))
def test_any_message_gets_an_answer(message: str) -> None:
    import asyncio

    async def visit() -> Turn:
        return await answer(message)

    if message.strip():
        assert asyncio.run(visit()).text.strip()


async def test_it_streams_like_any_model() -> None:
    model = OfflineModel("Ada", "", KnowsBirth())
    events = [e async for e in respond(Replica(model, Hands().toolkit, "p"), Conversation(), "Where were you born?")]
    assert len([event for event in events if isinstance(event, TextDelta)]) > 3
    assert not [event for event in events if isinstance(event, ToolFinished)]
