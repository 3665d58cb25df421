"""A conversation fits into what the model can read, and what was cut off leaves a summary."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.conversation import Conversation, Draft, Reply, Step, Turn, to_wire
from agent.fitting import Fitting, turns_to_drop
from agent.loop import MAX_CALLS, Replica
from agent.model import OpenAIModel
from agent.room import Room, estimate_tokens, turn_tokens
from agent.toolkit import Toolkit
from tests.fakes.hands import Hands, turn_of
from tests.fakes.provider import Answer, Provider, calls, says

TOO_LONG = Answer(status=400, body={"error": {"message": "maximum context length is 8192 tokens"}})


def talk(turns: int, words: int = 50) -> Conversation:
    return Conversation(tuple(said(f"Question {n}?", f"Answer {n}. " + "word " * words) for n in range(turns)))


def said(message: str, answer: str) -> Turn:
    return Turn(message, (Step(Reply(answer)),))


ROOM = Room(2000, 900)


class Fit:
    """Fits conversations with one replica."""

    def __init__(self, model: OpenAIModel, room: Room = ROOM, *, can_write: bool = True) -> None:
        self._fitting = Fitting(room, can_write=can_write)
        self._replica = Replica(model, Toolkit(), "You are Ada.")

    async def fit(
        self, conversation_id: str, conversation: Conversation, message: str, beside: int = 0
    ) -> Conversation:
        return await self._fitting.fit(self._replica, conversation_id, conversation, message, beside)


async def test_a_short_conversation_stays_as_it_is(model: OpenAIModel, provider: Provider) -> None:
    assert await Fit(model).fit("c1", talk(3), "Hi") == talk(3)
    assert provider.requests == []


async def test_older_turns_go_whole_and_the_model_writes_what_they_were_about(
    model: OpenAIModel, provider: Provider
) -> None:
    provider.script = [says("The visitor is Sarah from TechFirm.")]
    fitted = await Fit(model).fit("c1", talk(30), "Hi")
    assert fitted.summary == "The visitor is Sarah from TechFirm."
    assert fitted.turns == talk(30).turns
    assert 0 < fitted.summarised < 30
    assert "Question 0?" in provider.requests[0]["messages"][1]["content"]
    wire = to_wire("You are Ada.", fitted, Draft("Hi"))
    assert wire[1]["content"] == f"Question {fitted.summarised}?"
    system = wire[0]["content"]
    assert system.startswith("You are Ada.")
    assert "The visitor is Sarah from TechFirm." in system


async def test_a_summary_is_written_once_and_then_built_upon(model: OpenAIModel, provider: Provider) -> None:
    fit = Fit(model)
    provider.answer = lambda asked: says(f"Summary {len(provider.requests)}.")
    first = await fit.fit("c1", talk(30), "Hi")
    again = await fit.fit("c1", talk(30), "Hi")
    assert first == again
    assert len(provider.requests) == 1
    later = await fit.fit("c1", talk(60), "Hi")
    assert later.summary == "Summary 2."
    asked = provider.requests[1]["messages"][1]["content"]
    assert asked.startswith("Earlier: Summary 1.")
    assert "Question 0?" not in asked


async def test_summaries_of_two_conversations_stay_apart(model: OpenAIModel, provider: Provider) -> None:
    fit = Fit(model)
    provider.script = [says("One."), says("Two.")]
    assert (await fit.fit("c1", talk(30), "Hi")).summary == "One."
    assert (await fit.fit("c2", talk(30), "Hi")).summary == "Two."
    assert (await fit.fit("c1", talk(30), "Hi")).summary == "One."


@pytest.mark.parametrize("can_write", [True, False])
async def test_without_a_written_summary_the_visitors_own_words_stay(
    model: OpenAIModel, provider: Provider, can_write: bool
) -> None:
    provider.answer = lambda asked: Answer(status=500)
    fitted = await Fit(model, can_write=can_write).fit("c1", talk(8, words=200), "Hi")
    assert '"Question 0?"' in fitted.summary


async def test_room_is_kept_for_what_will_be_found(model: OpenAIModel, provider: Provider) -> None:
    provider.answer = lambda asked: says("Summary.")
    assert (await Fit(model).fit("c1", talk(5), "Hi")).summarised == 0
    assert (await Fit(model).fit("c1", talk(5), "Hi", beside=900)).summarised > 0


async def test_what_was_cut_off_stays_away_after_a_long_message(model: OpenAIModel, provider: Provider) -> None:
    provider.answer = lambda asked: says(f"Summary {len(provider.requests)}.")
    fit = Fit(model)
    long = await fit.fit("c1", talk(10), "please " * 300)
    assert long.summarised > 0
    assert await fit.fit("c1", talk(10), "Hi") == long
    assert len(provider.requests) == 1


async def test_a_conversation_that_was_forgotten_leaves_no_summary(model: OpenAIModel, provider: Provider) -> None:
    provider.answer = lambda asked: says("The visitor is Jane, jane@example.org.")
    fit = Fit(model)
    assert (await fit.fit("c1", talk(30), "Hi")).summary
    assert await fit.fit("c1", Conversation(), "Hi") == Conversation()
    anew = Conversation(tuple(said(f"Other {n}?", "word " * 50) for n in range(30)))
    await fit.fit("c1", anew, "Hi")
    assert "jane" not in provider.requests[-1]["messages"][1]["content"]


async def test_what_the_owner_wrote_is_summarised_too(model: OpenAIModel, provider: Provider) -> None:
    provider.script = [says("Done.")]
    turns = tuple(replace(turn, aside="Call me on Monday.") for turn in talk(30).turns)
    await Fit(model).fit("c1", Conversation(turns), "Hi")
    assert "The owner in person: Call me on Monday." in provider.requests[0]["messages"][1]["content"]


async def test_without_room_for_a_talk_no_summary_is_paid_for(model: OpenAIModel, provider: Provider) -> None:
    fitted = await Fit(model, Room(2000, 1700)).fit("c1", talk(8), "Hi")
    assert '"Question 0?"' in fitted.summary
    assert provider.requests == []


@given(st.lists(st.integers(1, 400), max_size=60), st.integers(50, 1000))
def test_what_is_left_fits_and_the_beginning_stays_the_same_for_many_turns(sizes: list[int], budget: int) -> None:
    turns = [said("x" * size, "y") for size in sizes]
    drops = [turns_to_drop(turns[:count], budget) for count in range(len(turns) + 1)]
    assert sum(turn_tokens(turn) for turn in turns[drops[-1] :]) <= budget
    assert drops == sorted(drops)
    for count, (before, now) in enumerate(pairwise(drops), 1):
        if now > before:
            assert sum(turn_tokens(turn) for turn in turns[now:count]) <= budget / 2


@pytest.mark.parametrize("text", ["Where were you born?", "¿Dónde naciste?", "你在哪里出生？", "🎉" * 10])
def test_the_estimate_errs_on_the_safe_side(text: str) -> None:
    assert len(text.split()) <= estimate_tokens(text) <= len(text.encode())


async def test_a_request_that_is_too_long_is_sent_once_more_and_shorter(model: OpenAIModel, provider: Provider) -> None:
    provider.script = [TOO_LONG, says("Hello.")]
    replica = Replica(model, Toolkit(), "You are Ada.\n<knowledge>\n" + "word " * 500 + "</knowledge>")
    assert (await turn_of(replica, "Hi", talk(10))).text == "Hello."
    first, second = (json.dumps(request["messages"]) for request in provider.requests)
    assert len(second) < 0.6 * len(first)
    assert len(provider.requests[1]["messages"]) == 6
    assert provider.requests[1]["messages"][0]["content"].endswith("</knowledge>")


async def test_a_model_that_can_read_next_to_nothing_gets_a_sentence(model: OpenAIModel, provider: Provider) -> None:
    provider.answer = lambda asked: TOO_LONG
    assert "Your message is kept" in (await turn_of(Replica(model, Toolkit(), "You are Ada."), "Hi")).text
    assert len(provider.requests) == 2


async def test_a_model_that_repeats_a_call_is_stopped(model: OpenAIModel, provider: Provider) -> None:
    hands = Hands()
    many = [("note", json.dumps({"text": str(number)})) for number in range(100)]
    provider.script = [calls(*many), says("Done.")]
    assert (await turn_of(Replica(model, hands.toolkit, "You are Ada."))).text == "Done."
    assert len(hands.noted) == MAX_CALLS
