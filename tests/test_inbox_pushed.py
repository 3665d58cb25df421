"""The inbox when Telegram brings the messages: the route, the secret, and whose webhook it is."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette

from alerts.inbox import Inbox, webhook_secret
from alerts.selftest import WEBHOOK_PATH
from pages.hooks import MAX_UPDATE, updates_route
from store.store import Store
from tests.fakes.phone import Phone
from tests.fakes.telegram import FakeTelegram
from tests.inbox_house import inbox_of, listening, until

PUBLIC = "https://me.example"
SECRET = "X-Telegram-Bot-Api-Secret-Token"


@asynccontextmanager
async def open_to_telegram(api: FakeTelegram, inbox: Inbox) -> AsyncGenerator[str]:
    """The page's server, with the route alone; Telegram finds it as PUBLIC. Gives its real address."""
    app = Starlette(routes=[updates_route(WEBHOOK_PATH, inbox.secret, inbox.take)])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    listener = socket.create_server(("127.0.0.1", 0))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    place = f"http://127.0.0.1:{listener.getsockname()[1]}"
    api.hosts[PUBLIC] = place
    try:
        yield place
    finally:
        server.should_exit = server.force_exit = True
        await task


@pytest.fixture
async def pushed(api: FakeTelegram, store: Store) -> AsyncGenerator[Inbox]:
    inbox = inbox_of(api, store, public_url=f"{PUBLIC}/")
    async with open_to_telegram(api, inbox), listening(inbox):
        await until(lambda: api.mailbox.hook is not None)
        yield inbox


@pytest.fixture
async def door(api: FakeTelegram, store: Store) -> AsyncGenerator[httpx.AsyncClient]:
    """A stranger's client at the route."""
    inbox = inbox_of(api, store, public_url=PUBLIC)
    async with open_to_telegram(api, inbox) as place, httpx.AsyncClient(base_url=place) as client:
        yield client


def pause(number: int = 1) -> dict[str, Any]:
    chat = {"id": 4242, "type": "private"}
    return {"update_id": number, "message": {"message_id": number, "chat": chat, "text": "/pause"}}


async def test_telegram_brings_the_messages(api: FakeTelegram, store: Store, pushed: Inbox) -> None:
    Phone(api).writes("/pause")
    await api.is_read()
    assert await store.state("paused") is not None
    assert api.mailbox.delivered == [(1000, 200)]
    assert api.mailbox.hook is not None
    assert api.mailbox.hook.url == PUBLIC + WEBHOOK_PATH
    assert api.mailbox.hook.options["max_connections"] == 1
    await until(lambda: pushed.status() == "ok")
    assert [line for line in api.requests if line.endswith("getUpdates")] == []


async def test_what_the_store_cannot_keep_is_brought_again(
    api: FakeTelegram, store: Store, pushed: Inbox, tmp_path: Path
) -> None:
    file = tmp_path / "deep" / "folder" / "replica.sqlite3"
    file.rename(tmp_path / "elsewhere")
    Phone(api).writes("/pause")
    await until(lambda: len(api.mailbox.delivered) > 1)
    (tmp_path / "elsewhere").rename(file)
    await api.is_read()
    assert await store.state("paused") is not None
    assert {status for _, status in api.mailbox.delivered[:-1]} == {503}
    assert api.mailbox.delivered[-1] == (1000, 200)


@pytest.mark.parametrize("secret", [None, "", "wrong", "é"])
async def test_without_the_secret_nobody_is_heard(door: httpx.AsyncClient, store: Store, secret: str | None) -> None:
    headers = [] if secret is None else [(SECRET.encode(), secret.encode())]
    answer = await door.post(WEBHOOK_PATH, json=pause(), headers=headers)
    assert answer.status_code == 403
    assert await store.state("paused") is None


async def test_with_the_secret_it_is_done_at_once(api: FakeTelegram, door: httpx.AsyncClient, store: Store) -> None:
    headers = {SECRET: webhook_secret(api.token)}
    assert (await door.post(WEBHOOK_PATH, json=pause(), headers=headers)).status_code == 200
    assert await store.state("paused") is not None


@pytest.mark.parametrize(
    ("body", "status"),
    [(b" " * (MAX_UPDATE + 1), 413), (b"no JSON", 400), (b"[]", 400), (b"[" * 50_000, 400), (b"{}", 200)],
)
async def test_what_is_no_update_is_refused(
    api: FakeTelegram, door: httpx.AsyncClient, body: bytes, status: int
) -> None:
    answer = await door.post(WEBHOOK_PATH, content=body, headers={SECRET: webhook_secret(api.token)})
    assert answer.status_code == status


async def test_nothing_can_be_fetched_from_the_route(door: httpx.AsyncClient) -> None:
    assert (await door.get(WEBHOOK_PATH)).status_code == 405


async def test_what_cannot_be_understood_is_not_brought_again(api: FakeTelegram, store: Store) -> None:
    async def broken() -> None:
        raise ValueError

    inbox = inbox_of(api, store, public_url=PUBLIC, heard=broken)
    assert await inbox.take(pause())


def test_the_secret_is_the_same_in_every_process_and_tells_nothing(api: FakeTelegram) -> None:
    secret = webhook_secret(api.token)
    assert secret == webhook_secret(api.token)
    assert secret != webhook_secret(api.token + "x")
    assert api.token not in secret
    assert len(secret) == 64


# Whose webhook it is


async def test_a_webhook_of_our_own_is_taken_away_when_messages_are_fetched(api: FakeTelegram, store: Store) -> None:
    api.mailbox.set_hook({"url": "https://old.example" + WEBHOOK_PATH})
    Phone(api).writes("/pause")
    async with listening(inbox_of(api, store)) as inbox:
        await api.is_read()
        assert inbox.status() == "ok"
    assert api.mailbox.hook is None
    assert await store.state("paused") is not None


@pytest.mark.parametrize("public_url", ["", PUBLIC])
async def test_a_webhook_of_another_program_is_left_to_it(api: FakeTelegram, store: Store, public_url: str) -> None:
    api.mailbox.set_hook({"url": "https://elsewhere.example/hook?key=secret"})
    async with listening(inbox_of(api, store, public_url=public_url, test_again_s=0.02)) as inbox:
        await api.requests_arrive(7)  # the second self-test has begun
        assert inbox.status() == (
            "another program reads @fake_replica_bot's messages (its webhook is at elsewhere.example): "
            "take a bot of its own for the replica, or delete that webhook"
        )
    assert api.mailbox.hook is not None
    assert api.mailbox.hook.url == "https://elsewhere.example/hook?key=secret"


async def test_a_webhook_that_telegram_cannot_reach_is_said(api: FakeTelegram, store: Store) -> None:
    api.mailbox.set_hook({"url": PUBLIC + WEBHOOK_PATH})
    Phone(api).writes("/pause")
    await until(lambda: len(api.mailbox.delivered) > 0)
    inbox = inbox_of(api, store, public_url=PUBLIC)
    async with listening(inbox):
        await until(lambda: "Telegram cannot bring your messages to PUBLIC_URL" in inbox.status())


async def test_a_webhook_that_was_taken_away_is_said(api: FakeTelegram, store: Store) -> None:
    async with listening(inbox_of(api, store, public_url=PUBLIC, watch_s=0.02)) as inbox:
        await until(lambda: inbox.status() == "ok" and api.mailbox.hook is not None)
        api.mailbox.set_hook({"url": "https://elsewhere.example/hook"})
        await until(lambda: "another program has taken the bot's messages" in inbox.status())


async def test_a_process_that_still_fetches_leaves_the_webhook_to_the_newer_one(
    api: FakeTelegram, store: Store
) -> None:
    newer = inbox_of(api, store, public_url=PUBLIC, watch_s=0.02)
    async with listening(inbox_of(api, store)) as older:
        await api.is_polled()
        async with open_to_telegram(api, newer), listening(newer):
            await until(lambda: "another process of your replica, one with PUBLIC_URL" in older.status())
            seen = len(api.requests)
            await api.requests_arrive(seen + 20)  # the older one has looked again and again
            Phone(api).writes("/pause")
            await api.is_read()
            assert newer.status() == "ok"
    assert not [line for line in api.requests if line.endswith("deleteWebhook")]
    assert await store.state("paused") is not None


async def test_a_webhook_that_an_older_process_deleted_is_set_again_when_that_ends(
    api: FakeTelegram, store: Store
) -> None:
    newer = inbox_of(api, store, public_url=PUBLIC, watch_s=0.02)
    async with open_to_telegram(api, newer), listening(newer):
        await until(lambda: api.mailbox.hook is not None)
        async with listening(inbox_of(api, store)):
            await api.is_polled()
            await until(lambda: "another process of your replica fetches" in newer.status())
        await until(lambda: api.mailbox.hook is not None and newer.status() == "ok")
        Phone(api).writes("/pause")
        await api.is_read()
    assert await store.state("paused") is not None


async def test_an_older_process_does_not_take_the_messages_back_from_one_that_fetches(
    api: FakeTelegram, store: Store
) -> None:
    older = inbox_of(api, store, public_url=PUBLIC, watch_s=0.02)
    async with open_to_telegram(api, older), listening(older):
        await until(lambda: api.mailbox.hook is not None)
        async with listening(inbox_of(api, store)) as newer:
            await api.is_polled()
            seen = len(api.requests)
            await api.requests_arrive(seen + 10)
            assert (newer.status(), api.mailbox.hook) == ("ok", None)


async def test_an_address_that_telegram_refuses_is_said(api: FakeTelegram, store: Store) -> None:
    async with listening(inbox_of(api, store, public_url="https://me.example:7860")) as inbox:
        await until(lambda: "ports 80, 88, 443 or 8443" in inbox.status())


def test_an_update_is_smaller_than_what_is_read() -> None:
    longest = pause() | {"quoted": "\N{GRINNING FACE}" * 2048, "text": "\N{GRINNING FACE}" * 2048}
    assert len(json.dumps(longest)) < MAX_UPDATE
