"""What the chat page does under a visitor's hands."""

from __future__ import annotations

from playwright.async_api import expect

from tests.e2e.browser import Visitors
from tests.e2e.peers import Llmock
from tests.e2e.programs import eventually
from tests.e2e.replica import Site

SLOW = " ".join(f"Word {number}." for number in range(200))


async def test_stop_ends_the_reply_and_the_talk_goes_on(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("These words came through and then nothing more.")
    await llmock.does({"type": "stream_fault", "kind": "stall", "after_chunks": 6, "stall_seconds": 60})
    visitor = await visitors.one()
    await visitor.say("Tell me something long?")
    await expect(visitor.reply).to_contain_text("These words")
    await visitor.button("Stop").click()
    await visitor.settled()
    partial = await visitor.reply.inner_text()
    assert partial.startswith("These words")
    assert "nothing more" not in partial
    await expect(visitor.turns.last).to_contain_text("Stopped")
    await llmock.says("The next answer.")
    assert await visitor.ask("And now?") == "The next answer."
    messages = (await llmock.requests())[-1]["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[2]["content"].startswith("These words")
    await visitor.page.reload()
    await expect(visitor.replies).to_have_count(2)
    await expect(visitor.replies.first).to_contain_text("These words")


async def test_escape_stops_too(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says(SLOW)
    visitor = await visitors.one()
    await visitor.say("Tell me something long?")
    await expect(visitor.reply).to_contain_text("Word 3.")
    await visitor.box.press("Escape")
    await visitor.settled()
    assert "Word 199." not in await visitor.reply.inner_text()


async def test_retry_asks_again_and_replaces_the_answer(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("A poor answer.")
    visitor = await visitors.one()
    await visitor.ask("A question?")
    await llmock.says("A better answer.")
    await visitor.button("Try again").last.click()
    await expect(visitor.reply).to_have_text("A better answer.")
    await visitor.settled()
    assert [m["role"] for m in (await llmock.requests())[-1]["messages"]] == ["system", "user"]
    await visitor.page.reload()
    await expect(visitor.replies).to_have_text(["A better answer."])


async def test_a_provider_that_breaks_off_is_said_and_can_be_retried(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("This answer ends in the middle of a sentence that never came.")
    await llmock.does({"type": "stream_fault", "kind": "disconnect", "after_chunks": 6})
    visitor = await visitors.one()
    assert (await visitor.ask("Will you break off?")).startswith("This answer ends")
    await expect(visitor.turns.last).to_contain_text("broke off")
    await llmock.says("Here is the whole answer.")
    await visitor.button("Try again").last.click()
    await expect(visitor.reply).to_have_text("Here is the whole answer.")
    await expect(visitor.turns.last).not_to_contain_text("broke off")


async def test_thumbs_are_kept(visitors: Visitors, replica: Site, llmock: Llmock) -> None:
    await llmock.says("First.")
    await llmock.says("Second.")
    visitor = await visitors.one()
    await visitor.ask("One?")
    await visitor.ask("Two?")
    await visitor.button("Good reply").first.click()
    await visitor.button("Bad reply").last.click()
    await expect(visitor.button("Good reply").first).to_have_attribute("aria-pressed", "true")
    conversation = await visitor.conversation()
    assert conversation

    async def kept(*thumbs: bool | None) -> None:
        async def look() -> bool | None:
            return await replica.thumbs(conversation) == thumbs or None

        await eventually(look, 10, lambda: f"the thumbs are not {thumbs!r}")

    await kept(True, False)
    await visitor.page.reload()
    await expect(visitor.button("Good reply").first).to_have_attribute("aria-pressed", "true")
    await expect(visitor.button("Bad reply").last).to_have_attribute("aria-pressed", "true")
    await visitor.button("Good reply").first.click()
    await kept(None, False)


async def test_copy_takes_the_reply(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("Words **to take** along.")
    visitor = await visitors.one(permissions=["clipboard-read", "clipboard-write"])
    await visitor.ask("May I?")
    await visitor.button("Copy").last.click()
    await expect(visitor.page.get_by_role("button", name="Copied")).to_be_visible()
    assert (await visitor.page.evaluate("navigator.clipboard.readText()")).strip() == "Words to take along."


async def test_enter_sends_and_shift_enter_begins_a_line(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("Both lines came.")
    visitor = await visitors.one()
    await visitor.box.press_sequentially("one")
    await visitor.box.press("Shift+Enter")
    await visitor.box.press_sequentially("two")
    await expect(visitor.box).to_have_value("one\ntwo")
    await expect(visitor.questions).to_have_count(0)
    await visitor.box.press("Enter")
    await visitor.hears()
    await expect(visitor.box).to_have_value("")
    assert (await llmock.requests())[-1]["messages"][-1]["content"] == "one\ntwo"


async def test_the_placeholder_stays_and_the_focus_returns(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("Yes.")
    visitor = await visitors.one()
    await expect(visitor.box).to_be_focused()
    await expect(visitor.box).to_have_attribute("placeholder", "Ask Ada Lovelace’s replica…")
    await visitor.box.fill("Are you there?")
    await visitor.button("Send").click()
    await visitor.hears()
    await expect(visitor.box).to_be_focused()
    await expect(visitor.box).to_have_attribute("placeholder", "Ask Ada Lovelace’s replica…")


async def test_a_blank_message_is_not_sent(visitors: Visitors, llmock: Llmock) -> None:
    visitor = await visitors.one()
    await visitor.box.fill("  \n ")
    await visitor.box.press("Enter")
    await visitor.button("Send").click()
    await llmock.says("Only this was asked.")
    await visitor.ask("A real question?")
    await expect(visitor.questions).to_have_count(1)
    assert len(await llmock.requests()) == 1


async def test_an_example_question_asks_itself(visitors: Visitors, llmock: Llmock) -> None:
    await llmock.says("A good question.")
    visitor = await visitors.one()
    examples = visitor.page.get_by_role("group", name="Questions to begin with").get_by_role("button")
    await expect(examples).to_have_count(4)
    question = await examples.first.inner_text()
    await examples.first.click()
    assert await visitor.hears() == "A good question."
    await expect(visitor.questions).to_have_text([question])
    await expect(examples.first).to_be_hidden()
    assert (await llmock.requests())[-1]["messages"][-1]["content"] == question
