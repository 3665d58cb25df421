"""The owner answers from the phone, on a Telegram that nobody here wrote."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx

from alerts.inbox import POLL_S
from store.store import Store
from tests.e2e.conftest import Starts, fresh
from tests.e2e.owner import OwnersPhone
from tests.e2e.peers import Llmock, Phone
from tests.e2e.programs import END_S
from tests.e2e.raw_api import raw_api
from tests.e2e.replica import Site, alerts_to, provided_by
from tests.fakes.phone import Phone as FakePhone
from tests.fakes.telegram import FakeTelegram

QUESTION = "What is your favourite programming language for embedded microcontrollers?"


@fresh
async def owner(phone: Phone) -> AsyncGenerator[OwnersPhone]:
    own = OwnersPhone(phone.url, "555000111:e2e-BotOfAnOwnerWhoAnswersByPhone")
    yield own
    await own.close()


async def alerts_of(site: Site) -> str:
    async with httpx.AsyncClient(base_url=site.url, timeout=60) as client:
        return str((await client.get("/healthz")).json()["alerts"])


async def test_a_reply_on_the_phone_becomes_the_answer(
    replica_with: Starts, llmock: Llmock, owner: OwnersPhone
) -> None:
    settings = provided_by(llmock.base_url) | alerts_to(owner)
    async with replica_with(**settings) as site, raw_api(site.url) as visitor:
        await site.logs("Telegram: @.* hears you")
        await llmock.calls("inform_unknown", {"question": QUESTION})
        await llmock.says("I do not know that; I have asked.")
        await visitor.said(QUESTION)
        alert = await owner.message(QUESTION)
        await owner.writes("Rust, since 2019.", alert)
        confirmed = await owner.gets("Kept as A-")
        assert "I use it from now on" in confirmed
        store = Store.open(f"sqlite:///{site.folder / 'data' / 'carboncopy.db'}")
        try:
            (answer,) = await store.answers()
        finally:
            await store.close()
        assert (answer.question, answer.text) == (QUESTION, "Rust, since 2019.")
        await owner.writes("/questions")
        await owner.gets("No question waits for an answer.")
        assert await alerts_of(site) == "ok"


def watched_by(telegram: FakeTelegram) -> dict[str, str]:
    """With a provider that is not asked: the search in the notes would take its time to open."""
    return provided_by("http://127.0.0.1:9/v1") | {
        "TELEGRAM_API_URL": telegram.url,
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "TELEGRAM_CHAT_ID": telegram.chat_id,
    }


async def test_the_end_does_not_wait_for_the_poll(replica_with: Starts) -> None:
    """Which takes longer than a program gets to end."""
    assert POLL_S > END_S
    with FakeTelegram() as telegram:
        async with replica_with(**watched_by(telegram)) as site:
            await telegram.is_polled()
            assert await site.program.stop() == 0
            assert telegram.mailbox.polled


async def test_a_host_that_blocks_telegram_is_told_what_to_do(replica_with: Starts) -> None:
    with FakeTelegram() as telegram:
        settings = watched_by(telegram) | {"TELEGRAM_API_URL": "http://telegram.invalid"}
        async with replica_with(**settings) as site:
            line = await site.logs("WARNING.*cannot reach Telegram")
            assert "TELEGRAM_API_URL" in line
            assert "ALERT_WEBHOOK_URL" in await alerts_of(site)


async def test_telegram_brings_messages_to_the_page(replica_with: Starts) -> None:
    with FakeTelegram() as telegram:
        async with replica_with(**watched_by(telegram), PUBLIC_URL="https://me.example") as site:
            telegram.hosts["https://me.example"] = site.url
            await site.logs("hears you, by its webhook")
            FakePhone(telegram).writes("/help")
            (answered,) = await telegram.messages_arrive(1)
            assert answered.text.startswith("Reply to an alert")
            assert [status for _, status in telegram.mailbox.delivered] == [200]
