"""What several tests need."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent.model import OpenAIModel, open_provider
from alerts.telegram import Telegram
from alerts.webhook import Webhook
from store.database import open_engine
from store.store import Store
from tests.alert_house import no_gap
from tests.databases import TEMPLATE, Server, find_server, running_server
from tests.fakes import provider as fake_provider
from tests.fakes.counts import Counts
from tests.fakes.telegram import FakeTelegram, FakeWebhook


@pytest.fixture
async def provider() -> AsyncGenerator[fake_provider.Provider]:
    """A scripted provider. The test fails if a strict one would have refused any of its requests."""
    async with fake_provider.serving() as serving:
        yield serving
        assert serving.refused == []


@pytest.fixture
async def model(provider: fake_provider.Provider) -> AsyncGenerator[OpenAIModel]:
    """The model at that provider. It tries everything once, so that each scripted answer is one request."""
    model = open_provider("scripted", "sk-secret", provider.base_url, max_output_tokens=100, timeout_s=5, max_retries=0)
    yield model
    await model.close()


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture(autouse=True)
def no_secret_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Every test runs with the log at its most talkative, so that one which searches it misses nothing."""
    caplog.set_level(logging.DEBUG)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("both_databases") and "url" in metafunc.fixturenames:
        metafunc.parametrize("url", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A server of its own, for all tests together."""
    programs = find_server()
    if programs is None:
        pytest.skip("there is no PostgreSQL server on this machine: apt-get install postgresql")
    with running_server(programs) as server:
        server.run(f"CREATE DATABASE {TEMPLATE}")
        open_engine(server.url(TEMPLATE)).dispose()
        yield server


@pytest.fixture
def postgresql_url(postgresql: Server) -> Iterator[str]:
    """Address of a PostgreSQL database with the newest tables, and nothing in them."""
    with postgresql.database(TEMPLATE) as url:
        yield url


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of an empty database: an SQLite file that is not there yet, nor the folders above it; where a test is
    marked `both_databases`, once more on PostgreSQL."""
    if getattr(request, "param", "sqlite") == "postgresql":
        return request.getfixturevalue("postgresql_url")
    return f"sqlite:///{tmp_path}/deep/folder/replica.sqlite3"


@pytest.fixture
async def store(url: str) -> AsyncGenerator[Store]:
    store = Store.open(url)
    yield store
    await store.close()


@pytest.fixture
def api() -> Iterator[FakeTelegram]:
    with FakeTelegram() as api:
        yield api


@pytest.fixture
def hook() -> Iterator[FakeWebhook]:
    with FakeWebhook() as hook:
        yield hook


@pytest.fixture
def telegram(api: FakeTelegram) -> Iterator[Telegram]:
    with closing(Telegram(api.token, api.chat_id, api.url, gap_s=no_gap)) as telegram:
        yield telegram


@pytest.fixture
def webhook(hook: FakeWebhook) -> Iterator[Webhook]:
    with closing(Webhook(hook.address)) as webhook:
        yield webhook
