"""The store's database: how it is opened, and what is said when it cannot be used."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, event, select, text, update
from sqlalchemy.exc import IntegrityError

from agent.calls import ModelCall
from agent.conversation import Usage
from store.database import LOCKED_S, open_engine, read_address
from store.model_calls import MOST_TOKENS
from store.owner import Owner
from store.records import StoreError
from store.store import Store
from store.tables import states
from store.transactions import Transactions
from tests.databases import run_sql

both_databases = pytest.mark.both_databases


def path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


@contextmanager
def held(url: str) -> Generator[None]:
    """While another program is writing, and does not end."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("BEGIN IMMEDIATE" if url.startswith("sqlite") else "BEGIN; LOCK TABLE turns"))
        yield
        connection.execute(text("ROLLBACK"))
    engine.dispose()


# Opening


@pytest.mark.parametrize(
    "bad",
    ["no address, secret", "sqlite://", "sqlite:///:memory:", "oracle9://u:secret@h/d", "mysql://u:secret@h/d"],
)
def test_an_address_that_cannot_be_used_is_said_in_one_line_without_its_password(bad: str) -> None:
    with pytest.raises(StoreError) as caught:
        Store.open(bad)
    assert str(caught.value).startswith("DATABASE_URL: ")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_an_address_as_hosts_give_it_is_taken(scheme: str) -> None:
    address = read_address(f"{scheme}://u:p%40ss@h:5433/d?sslmode=require")
    assert address.render_as_string(hide_password=False) == "postgresql+psycopg://u:p%40ss@h:5433/d?sslmode=require"


def test_a_server_that_is_not_there_is_said_without_its_password() -> None:
    with pytest.raises(StoreError) as caught:
        Store.open("postgres://user:secret@127.0.0.1:9/database")
    assert "cannot be opened" in str(caught.value)
    assert "secret" not in f"{caught.value!r} {caught.value.__cause__}"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"file/data.*DATA_DIR"):
        Store.open(f"sqlite:///{tmp_path}/file/data/replica.sqlite3")


def test_a_file_that_is_no_database_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "replica.sqlite3").write_text("This is not a database. " * 100)
    with pytest.raises(StoreError, match="cannot be opened"):
        Store.open(f"sqlite:///{tmp_path}/replica.sqlite3")


async def test_the_file_is_in_wal_mode_with_foreign_keys_held(store: Store, url: str) -> None:
    assert run_sql(url, "PRAGMA journal_mode") == [("wal",)]
    engine = open_engine(url)
    with engine.begin() as connection, pytest.raises(IntegrityError):
        connection.exec_driver_sql(
            "INSERT INTO questions (conversation_id, question, question_key, alert_id, created)"
            " VALUES ('talk', 'q', 'k', 999, '2030-01-01')"
        )
    engine.dispose()


# In use


@both_databases
async def test_a_database_that_works_answers_a_ping(store: Store) -> None:
    await store.ping()
    await store.ping()


@both_databases
async def test_ping_raises_when_the_store_cannot_be_used(store: Store, url: str) -> None:
    run_sql(url, "DROP TABLE states")
    with pytest.raises(StoreError, match="cannot be used"):
        await store.ping()


@both_databases
async def test_an_error_of_the_database_tells_nothing_of_a_visitor(store: Store, url: str) -> None:
    run_sql(url, "DROP TABLE turns")
    with pytest.raises(StoreError) as caught:
        await store.open_turn("secret words", "hello")
    assert "secret words" not in f"{caught.value!r} {caught.value.__cause__}"


async def test_a_closed_store_is_an_error_of_the_store(url: str) -> None:
    store = Store.open(url)
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.ping()


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_file_that_was_deleted_or_replaced_is_noticed(store: Store, url: str, replaced: bool) -> None:
    await store.open_turn("talk", "hello")
    path_of(url).unlink()
    if replaced:
        path_of(url).touch()
    for use in (store.ping(), store.open_turn("talk", "hello"), store.transcript("talk")):
        with pytest.raises(StoreError, match="file is gone"):
            await use


async def test_a_full_disk_is_said_in_plain_words(store: Store, url: str) -> None:
    pages = run_sql(url, "PRAGMA page_count")[0][0]
    engine = open_engine(url)
    engine.dispose()

    def limit(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite says the same of it as of a full disk

    event.listen(engine, "connect", limit)
    full = Store(Transactions(engine))
    with pytest.raises(StoreError, match="disk of the database is full"):
        await full.open_turn("talk", "hello" * 10_000)
    await full.close()


async def test_a_reader_is_not_held_up_by_writers(store: Store, url: str) -> None:
    await store.open_turn("talk", "hello")
    with held(url):
        writes = [asyncio.create_task(store.open_turn("talk", "hello")) for _ in range(20)]
        async with asyncio.timeout(LOCKED_S / 2):
            assert (await store.transcript("talk")).numbers == (0,)
    assert sorted(await asyncio.gather(*writes)) == list(range(1, 21))


@both_databases
async def test_writers_who_are_held_up_for_long_are_told_so_and_wait_no_longer(store: Store, url: str) -> None:
    began = time.monotonic()
    with held(url):
        writes = await asyncio.gather(*[store.open_turn("talk", "hello") for _ in range(20)], return_exceptions=True)
    assert time.monotonic() - began < 2 * LOCKED_S
    assert {str(error) for error in writes} == {"the database is busy: something else has held it for too long"}
    assert await store.open_turn("talk", "hello") == 0


async def test_a_database_that_does_not_answer_is_said(url: str) -> None:
    over = threading.Event()
    store = Store(Transactions(open_engine(url), longest_s=0.1))

    def hangs(_owner: Owner) -> None:
        over.wait()

    try:
        with pytest.raises(StoreError, match="does not answer"):
            await store.handle_update(1, hangs)
        with pytest.raises(StoreError, match="does not answer"):
            await store.ping()
    finally:
        over.set()
        await store.close()


async def test_connections_that_the_server_closed_are_made_anew(postgresql_url: str) -> None:
    store = Store.open(postgresql_url)
    await asyncio.gather(*[store.open_turn("talk", "hello") for _ in range(8)])
    run_sql(
        postgresql_url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    assert await store.open_turn("talk", "hello") == 8
    await store.close()


async def test_of_two_writes_that_wait_for_each_other_one_begins_again(postgresql_url: str) -> None:
    transactions = Transactions(open_engine(postgresql_url))
    store = Store(transactions)
    both_have_one = threading.Barrier(2)
    for key in ("a", "b"):
        await store.set_state(key, "0")

    def add(connection: Connection, keys: str, begun: list[str]) -> None:
        for key in keys:
            value = connection.execute(select(states.c.value).where(states.c.key == key).with_for_update()).scalar_one()
            connection.execute(update(states).where(states.c.key == key).values(value=f"{int(value) + 1}"))
            if not begun:
                begun.append(key)
                both_have_one.wait(5)

    await asyncio.gather(transactions.write(add, "ab", []), transactions.write(add, "ba", []))
    assert [await store.state(key) for key in "ab"] == ["2", "2"]
    await store.close()


async def test_the_store_does_not_wait_for_other_users_of_threads(store: Store) -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def block() -> None:
        asyncio.run_coroutine_threadsafe(over.wait(), loop).result()

    others = [asyncio.create_task(asyncio.to_thread(block)) for _ in range(100)]
    try:
        async with asyncio.timeout(5):
            await store.ping()
    finally:
        over.set()
        await asyncio.gather(*others)


@both_databases
@pytest.mark.parametrize("counted", [2**31, 2**80, -1])
async def test_counts_that_no_provider_can_mean_are_kept_within_bounds(store: Store, counted: int) -> None:
    number = await store.open_turn("talk", "Hello")
    (turn,) = (await store.conversation("talk")).turns
    usage = Usage(counted, counted, counted)
    now = datetime.now(UTC)
    call = ModelCall(now, "h", "m", "answered", 1.0, None, usage, False, "stop", (), "", 0.1)
    await store.close_turn("talk", number, turn, "answered", [call] * 3)
    bound = MOST_TOKENS if counted > 0 else 0
    assert {(row.tokens_in, row.tokens_cached, row.tokens_out) for row in await store.model_calls()} == {(bound,) * 3}
    assert await store.tokens_since(now - timedelta(1)) == 6 * bound
