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
from store.store import Store
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


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Address of a database that is not there yet, nor the folders above it."""
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
    with closing(Telegram(api.token, api.chat_id, api.url)) as telegram:
        yield telegram


@pytest.fixture
def webhook(hook: FakeWebhook) -> Iterator[Webhook]:
    with closing(Webhook(hook.address)) as webhook:
        yield webhook
