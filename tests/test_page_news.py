"""What an open page asks for beside Gradio: whether the owner wrote, what, and whether the chat is closed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette

from agent.loop import Replica
from agent.model import OpenAIModel
from agent.reception import Reception
from agent.toolkit import Toolkit
from pages.news import FRESH_S, HEADER, news_routes, remembered
from pages.talk import Talk
from store.records import StoreError
from store.store import Store
from tests.owner_house import answer, ask, did, forget, say

TALK = "A" * 32
OTHER = "B" * 32


class Door:
    """Open or closed; counts how often somebody looks."""

    def __init__(self) -> None:
        self.closed = False
        self.looks = 0

    async def __call__(self) -> bool:
        self.looks += 1
        return self.closed


@pytest.fixture
def door() -> Door:
    return Door()


@pytest.fixture
def talk(model: OpenAIModel, store: Store) -> Talk:
    async def rated(conversation_id: str, number: int, liked: bool | None) -> None: ...

    reception = Reception(Replica(model, Toolkit(), "You are Ada."), store, max_replies=3, max_message_chars=50)
    return Talk(reception, rated, trusted_proxies=1)


@asynccontextmanager
async def asking(talk: Talk, store: Store, door: Door, most_a_minute: int = 100) -> AsyncGenerator[httpx.AsyncClient]:
    app = Starlette(routes=[*news_routes(talk, store.news, door, most_a_minute)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here.test") as client:
        yield client


@pytest.fixture
async def client(talk: Talk, store: Store, door: Door) -> AsyncGenerator[httpx.AsyncClient]:
    async with asking(talk, store, door) as client:
        yield client


async def test_news_grow_with_what_the_owner_writes_to_this_visitor(client: httpx.AsyncClient, store: Store) -> None:
    async def words(conversation: str) -> int:
        return (await client.get("/news", headers={HEADER: conversation})).json()["words"]

    await say(store, "Do you ski?", talk=TALK)
    await say(store, "Hello?", talk=OTHER)
    assert await words(TALK) == 0
    await did(store, lambda owner: owner.tell(TALK, "Good day."))
    first = await words(TALK)
    kept = await answer(store, await ask(store, talk=TALK), "Yes.")
    second = await words(TALK)
    assert 0 < first < second
    assert await words(OTHER) == 0
    await forget(store, kept.reference)
    assert await words(TALK) == first


async def test_the_words_come_with_the_turn_that_they_stand_under(client: httpx.AsyncClient, store: Store) -> None:
    await say(store, "Do you ski?", talk=TALK)
    await answer(store, await ask(store, talk=TALK), "**Yes** <script>alert(1)</script>")
    await say(store, "And swim?", talk=TALK)
    told = (await client.get("/words", headers={HEADER: TALK})).json()["words"]
    assert [(turn["number"], len(turn["words"])) for turn in told] == [(0, 1), (1, 0)]
    (words,) = told[0]["words"]
    assert words["question"] == "Do you ski?"
    assert words["blocks"] == ["<p><strong>Yes</strong> &lt;script&gt;alert(1)&lt;/script&gt;</p>\n"]
    assert words["written"].endswith("+00:00")


@pytest.mark.parametrize("forged", ["", "x", "A" * 31, "A" * 33, "C" * 32, "api." + "a" * 28, "' OR 1=1 --", "é" * 32])
async def test_an_unknown_visitor_has_no_news(client: httpx.AsyncClient, store: Store, forged: str) -> None:
    await say(store, "Do you ski?", talk=TALK)
    await did(store, lambda owner: owner.tell(TALK, "Good day."))
    headers = {HEADER.encode(): forged.encode()}
    assert (await client.get("/news", headers=headers)).json() == {"words": 0, "closed": False}
    assert (await client.get("/words", headers=headers)).json() == {"words": []}
    assert (await client.get("/news")).json() == {"words": 0, "closed": False}


async def test_only_an_id_of_the_right_form_reaches_the_store(talk: Talk, door: Door) -> None:
    asked: list[str] = []

    async def newest(conversation_id: str) -> int:
        asked.append(conversation_id)
        return 0

    app = Starlette(routes=[*news_routes(talk, newest, door)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here.test") as client:
        for given in ("", "x", "A" * 33, "api." + "a" * 28, "A" * 31 + "'", TALK):
            await client.get("/news", headers={HEADER: given})
    assert asked == [TALK]


async def test_an_id_in_the_address_is_not_looked_at(client: httpx.AsyncClient, store: Store) -> None:
    await say(store, "Do you ski?", talk=TALK)
    await did(store, lambda owner: owner.tell(TALK, "Good day."))
    assert (await client.get(f"/news?conversation={TALK}&{HEADER}={TALK}")).json()["words"] == 0


async def test_the_sign_is_told_to_everybody(client: httpx.AsyncClient, door: Door) -> None:
    door.closed = True
    for headers in ({}, {HEADER: TALK}):
        answer = await client.get("/news", headers=headers)
        assert answer.json()["closed"] is True
        assert answer.headers["cache-control"] == "no-store"
    assert door.looks == 1


async def test_the_sign_is_looked_at_again_after_a_moment(door: Door) -> None:
    now = 0.0
    is_closed = remembered(door, lambda: now)
    assert not await is_closed()
    door.closed = True
    now = FRESH_S / 2
    assert not await is_closed()
    now = FRESH_S
    assert await is_closed()
    assert door.looks == 2


async def test_one_address_asks_so_many_times_a_minute_and_no_other_waits_for_it(
    talk: Talk, store: Store, door: Door
) -> None:
    async with asking(talk, store, door, most_a_minute=3) as client:

        async def asked(path: str, address: str) -> httpx.Response:
            return await client.get(path, headers={"X-Forwarded-For": address, HEADER: TALK})

        for path in ("/news", "/words", "/news"):
            assert (await asked(path, "198.51.100.1")).status_code == 200
        refused = await asked("/news", "198.51.100.1")
        assert (refused.status_code, refused.text) == (429, "")
        assert 0 < int(refused.headers["retry-after"]) <= 60
        assert (await asked("/news", "198.51.100.2")).status_code == 200


async def test_a_fault_is_told_without_a_word_of_it(talk: Talk, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> bool:
        raise StoreError("disk at /secret/path")

    app = Starlette(routes=[*news_routes(talk, store.news, broken)])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here.test") as client:
        answer = await client.get("/news", headers={HEADER: TALK})
    assert (answer.status_code, answer.text) == (503, "")
    assert "News could not be read (StoreError)" in caplog.text
    assert "secret" not in caplog.text
    assert TALK not in caplog.text
