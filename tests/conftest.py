"""What several tests need."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator

import pytest

from tests.fakes import provider as fake_provider


@pytest.fixture
async def provider() -> AsyncGenerator[fake_provider.Provider]:
    """A scripted provider. The test fails if a strict one would have refused any of its requests."""
    async with fake_provider.serving() as serving:
        yield serving
        assert serving.refused == []


@pytest.fixture(autouse=True)
def no_secret_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Every test runs with the log at its most talkative, so that one which searches it misses nothing."""
    caplog.set_level(logging.DEBUG)
