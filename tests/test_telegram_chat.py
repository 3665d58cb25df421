"""The chat with the owner: its pieces, its pace, and where it moved to."""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alerts.telegram import MOVED, Telegram, gap_s, present_chat
from alerts.text import contact_text
from store.records import Contact, Sent
from store.store import Store
from tests.alert_house import DOWN, failure, no_gap
from tests.fakes.telegram import FakeTelegram, Hangup

LONG = "".join(f"line {number:05}\n" for number in range(1000))


# Pieces


async def test_all_pieces_are_named_and_only_the_first_answers(api: FakeTelegram, telegram: Telegram) -> None:
    sent = await telegram.send(LONG, 77)
    assert sent == Sent(api.chat_id, tuple(message.message_id for message in api.messages))
    assert len(sent.message_ids) == 3
    assert [message.payload.get("reply_parameters") for message in api.messages] == [
        {"message_id": 77, "allow_sending_without_reply": True},
        None,
        None,
    ]


async def test_pieces_that_were_taken_are_not_sent_again(api: FakeTelegram, telegram: Telegram) -> None:
    for fault in (DOWN, Hangup()):
        api.fail_next(None, None, fault)
        await failure(telegram, LONG)
        taken = len(api.messages)
        await telegram.send("In between.")
        sent = await telegram.send(LONG)
        assert len(api.messages) == taken + 2
        assert len(sent.message_ids) == 3
        api.messages.clear()
    await telegram.send(LONG)
    assert len(api.messages) == 3


async def test_the_same_words_to_another_message_are_another_message(api: FakeTelegram, telegram: Telegram) -> None:
    api.fail_next(None, DOWN)
    await failure(telegram, LONG)
    await telegram.send(LONG, 5)
    assert len(api.messages) == 1 + 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=12)
@given(name=st.text(max_size=200), notes=st.text(max_size=12_000) | st.integers(4000, 12_000).map("\U0001f600".__mul__))
async def test_whatever_a_visitor_leaves_arrives_whole_with_who_and_where_first(
    api: FakeTelegram, telegram: Telegram, name: str, notes: str
) -> None:
    api.messages.clear()
    text = contact_text(Contact("talk", "jane@example.org", "jane@example.org", notes, name), [notes] * 3, "C-7KQ2M")
    await telegram.send(text)
    assert "".join(message.text for message in api.messages).replace("\n", "") == text.replace("\n", "")
    assert "jane@example.org" in api.messages[0].text
    assert api.messages[0].text.startswith("New contact: ")
    assert api.messages[-1].text.endswith("C-7KQ2M")


# Pace


def test_a_person_gets_a_message_a_second_and_a_group_twenty_a_minute() -> None:
    assert [gap_s(chat_id) for chat_id in ("4242", "-100777", "@alerts")] == [1, 3, 3]


async def test_messages_keep_their_distance_failed_ones_too(api: FakeTelegram) -> None:
    api.fail_next(None, DOWN)
    with closing(Telegram(api.token, api.chat_id, api.url, gap_s=lambda _: 0.1)) as telegram:
        began = time.monotonic()
        await telegram.send("one")
        assert time.monotonic() - began < 0.1
        await failure(telegram, "two")
        await telegram.send(LONG)
        assert time.monotonic() - began >= 0.4
    assert len(api.requests) == 5


# A group that moved


@pytest.fixture
def moved(api: FakeTelegram) -> str:
    api.moved[api.chat_id] = "-100777"
    api.chats.add("-100777")
    return "-100777"


def opened(api: FakeTelegram, store: Store, chat_id: str) -> Telegram:
    return Telegram(api.token, chat_id, api.url, store, gap_s=no_gap)


async def test_where_a_group_moved_to_is_known_after_a_restart(api: FakeTelegram, store: Store, moved: str) -> None:
    for text in ("one", "two"):
        with closing(opened(api, store, api.chat_id)) as telegram:
            assert (await telegram.send(text)).chat_id == moved
    assert [(message.chat_id, message.text) for message in api.messages] == [(moved, "one"), (moved, "two")]
    assert len(api.requests) == 3
    assert json.loads(await store.state(MOVED) or "") == {"from": api.chat_id, "to": moved}
    assert await present_chat(store, api.chat_id) == moved


async def test_a_group_that_moves_twice_is_followed_from_the_id_that_is_set(
    api: FakeTelegram, store: Store, moved: str
) -> None:
    with closing(opened(api, store, api.chat_id)) as telegram:
        await telegram.send("one")
        api.moved[moved] = "-100888"
        api.chats.add("-100888")
        await telegram.send("two")
    assert await present_chat(store, api.chat_id) == "-100888"


async def test_a_move_of_another_chat_is_ignored(api: FakeTelegram, store: Store, moved: str) -> None:
    with closing(opened(api, store, api.chat_id)) as telegram:
        await telegram.send("one")
    api.chats.add("55")
    with closing(opened(api, store, "55")) as telegram:
        assert (await telegram.send("two")).chat_id == "55"
    assert await present_chat(store, "55") == "55"


@pytest.mark.parametrize("kept", ["", "no JSON", "[]", '{"from": "4242"}', '{"to": "5"}'])
async def test_a_move_that_cannot_be_read_is_ignored(api: FakeTelegram, store: Store, kept: str) -> None:
    await store.set_state(MOVED, kept)
    assert await present_chat(store, "4242") == "4242"


async def test_a_store_that_is_away_keeps_no_message_back(api: FakeTelegram, store: Store, moved: str) -> None:
    with closing(opened(api, store, api.chat_id)) as telegram:
        await store.close()
        assert (await telegram.send("one")).chat_id == moved
