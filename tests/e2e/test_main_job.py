"""The main job from end to end: a visitor at the page, a provider, the owner's phone."""

from __future__ import annotations

import json
from typing import Any

from playwright.async_api import expect

from tests.e2e.browser import Visitors
from tests.e2e.peers import Llmock, Phone
from tests.e2e.replica import Site

BAD_ADDRESS = (
    "ERROR: Invalid email format provided. "
    "Please inform the user that the email is invalid and ask them to provide a valid one."
)
LONG = " ".join(f"Word {number} of a long answer." for number in range(12))


def roles(request: dict[str, Any]) -> list[str]:
    return [message["role"] for message in request["messages"]]


def result_of(request: dict[str, Any]) -> str:
    """The tool's result that ends the request, which has to answer the call before it."""
    call, result = request["messages"][-2:]
    assert (call["role"], result["role"]) == ("assistant", "tool")
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]
    return str(result["content"])


async def test_an_answer_is_streamed_and_grows_on_the_page(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says(LONG)
    visitor = await visitors.one()
    assert await visitor.ask("What is the engine for?") == LONG
    lengths = await visitor.lengths()
    assert lengths == sorted(lengths)
    assert len(set(lengths)) >= 3
    assert lengths[0] < len(LONG) / 2
    [request] = await llmock.requests()
    assert roles(request) == ["system", "user"]
    assert request["messages"][1]["content"] == "What is the engine for?"
    assert "Ada Lovelace" in request["messages"][0]["content"]
    assert request["stream"] is True


async def test_an_address_reaches_the_owners_phone(visitors: Visitors, llmock: Llmock, phone: Phone) -> None:
    details = {"email": "grace+navy@example.org", "notes": "Wants a compiler.", "name": "Grace Hopper"}
    await llmock.calls("gather_user_details", details)
    await llmock.says("Thank you, Grace. You will hear from me.")
    visitor = await visitors.one()
    reply = await visitor.ask("I am Grace Hopper, write to grace+navy@example.org: I need a compiler.")
    assert reply == "Thank you, Grace. You will hear from me."
    await expect(visitor.turns.last).to_contain_text("Passed your details on")
    assert result_of((await llmock.requests())[-1]) == "ok"
    alert = await phone.gets("grace+navy@example.org")
    assert alert.startswith("New contact: Grace Hopper\n")
    assert "Wants: Wants a compiler." in alert


async def test_a_bad_address_is_asked_for_again_and_alerts_nobody(
    visitors: Visitors, replica: Site, llmock: Llmock, phone: Phone
) -> None:
    await llmock.calls("gather_user_details", {"email": "grace(at)nowhere", "notes": "Wants a compiler."})
    await llmock.says("That address does not look right. Could you check it?")
    visitor = await visitors.one()
    await visitor.ask("Write to grace(at)nowhere, please.")
    assert result_of((await llmock.requests())[-1]) == BAD_ADDRESS
    await expect(visitor.turns.last).not_to_contain_text("Passed your details on")
    assert [contact for contact in await replica.contacts() if "nowhere" in contact.email] == []
    # What would have been sent stands before the next alert in line.
    await llmock.calls("inform_unknown", {"question": "Is this the alert after the bad address?"})
    await visitor.ask("Is this the alert after the bad address?")
    await phone.gets("Is this the alert after the bad address?")
    assert [text for text in await phone.texts() if "nowhere" in text and text.startswith("New contact")] == []


async def test_a_question_that_nothing_answers_reaches_the_owners_phone(
    visitors: Visitors, replica: Site, llmock: Llmock, phone: Phone
) -> None:
    await llmock.calls("inform_unknown", {"question": "Which shoe size do you have?"})
    await llmock.says("I do not know that, and have passed it on.")
    visitor = await visitors.one()
    await visitor.ask("Which shoe size do you have?")
    await expect(visitor.turns.last).to_contain_text("Passed your question on")
    assert result_of((await llmock.requests())[-1]) == "ok"
    assert (await phone.gets("shoe size")).startswith("I could not answer: Which shoe size do you have?")
    assert "Which shoe size do you have?" in [question.question for question in await replica.questions()]


async def test_a_model_that_always_calls_is_asked_for_words_in_the_end(visitors: Visitors, llmock: Llmock) -> None:
    for number in range(2):
        await llmock.calls("inform_unknown", {"question": f"What is the {number}th unknown thing?"})
    await llmock.says("I will leave it at that.")
    visitor = await visitors.one()
    assert await visitor.ask("Tell me all unknown things?") == "I will leave it at that."
    requests = await llmock.requests()
    assert [request.get("tool_choice", "auto") for request in requests] == ["auto", "auto", "none"]
    assert roles(requests[-1]) == ["system", "user", "assistant", "tool", "assistant", "tool"]


async def test_a_model_that_calls_even_then_leaves_the_visitor_with_words(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.calls("inform_unknown", {"question": "What is it that never ends?"}, times=None)
    visitor = await visitors.one()
    assert await visitor.ask("Does this ever end?")
    assert len(await llmock.requests()) == 3
    await llmock.reset()
    await llmock.says("All is well.")
    assert await visitor.ask("And now?") == "All is well."


async def test_a_call_that_makes_no_sense_is_taken_back(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.calls("open_the_door", {"key": "under the mat"})
    await llmock.says("I cannot do that, but I can tell you about engines.")
    visitor = await visitors.one()
    assert await visitor.ask("Open the door?") == "I cannot do that, but I can tell you about engines."
    last = (await llmock.requests())[-1]
    assert roles(last) == ["system", "user"]
    assert "failed. Try a different way." in last["messages"][0]["content"]
    await llmock.says("Yes.")
    await visitor.ask("Are you still there?")
    assert "Try a different way" not in json.dumps((await llmock.requests())[-1])


async def test_a_reload_brings_the_conversation_back_and_it_goes_on(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("The *first* answer.")
    await llmock.calls("inform_unknown", {"question": "What is asked second?"})
    await llmock.says("The second answer.")
    visitor = await visitors.one()
    await visitor.ask("The first question?")
    await visitor.ask("The second question?")
    await visitor.page.reload()
    await expect(visitor.questions).to_have_text(["The first question?", "The second question?"])
    await expect(visitor.replies).to_have_text(["The first answer.", "The second answer."])
    await expect(visitor.turns.last).to_contain_text("Passed your question on")
    await llmock.says("The third answer.")
    assert await visitor.ask("The third question?") == "The third answer."
    messages = (await llmock.requests())[-1]["messages"][1:]
    assert [message["role"] for message in messages] == [
        "user", "assistant", "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert [messages[0]["content"], messages[1]["content"]] == ["The first question?", "The *first* answer."]
    assert messages[-1]["content"] == "The third question?"


async def test_a_new_chat_forgets_what_was_said(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("Noted.")
    visitor = await visitors.one()
    await visitor.ask("My name is Zephyrine.")
    await visitor.button("New chat").click()
    await expect(visitor.questions).to_have_count(0)
    await llmock.says("I do not know.")
    await visitor.ask("What is my name?")
    assert "Zephyrine" not in json.dumps((await llmock.requests())[-1])
    await visitor.page.reload()
    await expect(visitor.questions).to_have_text(["What is my name?"])
