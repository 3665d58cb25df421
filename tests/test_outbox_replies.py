"""What the bot answers the owner goes first and alone; and every message that went out is found by its number."""

from __future__ import annotations

from datetime import timedelta

import pytest

from alerts.outbox import Outbox
from alerts.pace import Pace
from alerts.telegram import Telegram
from alerts.webhook import Webhook
from store.store import Store
from tests.alert_house import JANE, Clock, ask, deliver
from tests.fakes.telegram import FakeTelegram, FakeWebhook

NARROW = Pace(an_hour=3)


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def answer(store: Store, update_id: int, text: str) -> None:
    """As the inbox does."""
    assert await store.handle_update(update_id, lambda _: text, 1000 + update_id)


async def test_it_goes_first_and_alone_and_names_what_it_answers(
    store: Store, api: FakeTelegram, telegram: Telegram
) -> None:
    outbox = Outbox(store, [telegram])
    await outbox.question(ask(1), [])
    await outbox.contact(JANE, [])
    await answer(store, 1, "Stored.")
    await answer(store, 2, "Paused.")
    await deliver(outbox)
    assert [message.text.splitlines()[0] for message in api.messages] == [
        "Stored.",
        "Paused.",
        "New contact: Jane Doe",
        "I could not answer: What is 1?",
    ]
    assert [message.payload.get("reply_parameters") for message in api.messages] == [
        {"message_id": 1001, "allow_sending_without_reply": True},
        {"message_id": 1002, "allow_sending_without_reply": True},
        None,
        None,
    ]


async def test_it_goes_out_at_once_while_alerts_are_gathered_and_does_not_count(
    store: Store, api: FakeTelegram, telegram: Telegram, clock: Clock
) -> None:
    outbox = Outbox(store, [telegram], now=clock, pace=NARROW)
    for update in range(5):
        await answer(store, update, f"Answer {update}")
    await deliver(outbox)
    for number in range(6):
        await outbox.question(ask(number), [])
    await deliver(outbox)
    assert len(api.messages) == 5 + 3
    await answer(store, 9, "Here is your list.")
    assert await deliver(outbox) > 1
    assert [message.text for message in api.messages[8:]] == ["Here is your list."]
    clock.ahead = NARROW.digest_every + timedelta(seconds=1)
    await deliver(outbox)
    assert [message.text.splitlines()[0] for message in api.messages[9:]] == ["3 alerts in one: 3 questions"]


async def test_what_went_out_is_found_by_chat_and_number(
    store: Store, api: FakeTelegram, telegram: Telegram, clock: Clock
) -> None:
    outbox = Outbox(store, [telegram], now=clock, pace=NARROW)
    await outbox.contact(JANE, [])
    for number in range(4):
        await outbox.question(ask(number), [])
    await deliver(outbox)
    clock.ahead = NARROW.digest_every + timedelta(seconds=1)
    await deliver(outbox)
    contact, first, second, digest = [message.message_id for message in api.messages]
    found = {one: await store.target_of(api.chat_id, one) for one in (contact, first, second, digest)}
    assert [target.email for target in found[contact]] == ["jane@example.org"]
    assert [target.question for target in found[first] + found[second]] == ["What is 0?", "What is 1?"]
    assert [target.question for target in found[digest]] == ["What is 2?", "What is 3?"]
    assert await store.target_of("999", contact) == []


async def test_a_question_names_the_address_that_its_visitor_left_and_a_webhook_asks_for_no_reply(
    store: Store, api: FakeTelegram, telegram: Telegram, hook: FakeWebhook, webhook: Webhook
) -> None:
    await Outbox(store, [telegram]).contact(JANE, [])
    await Outbox(store, [telegram]).question(ask(1), [])
    await deliver(Outbox(store, [webhook]))
    assert [message.text.splitlines()[:-1] for message in hook.messages] == [
        ["New contact: Jane Doe", "jane@example.org", "Wants: to talk about a job in Turin"],
        ["I could not answer: What is 1?", "They left jane@example.org"],
    ]
    assert await store.target_of("", 1) == []
