"""Real parts for the end-to-end tests: the product, its peers, a browser."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.e2e import browser as browsers
from tests.e2e import peers
from tests.e2e.browser import Complaints, Visitors
from tests.e2e.peers import Llmock, Phone
from tests.e2e.programs import end_in_order
from tests.e2e.replica import ROOMY, Site, alerts_to, provided_by, site
from tests.fakes import provider as fake_provider

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One event loop for all tests here: the browser and the servers live through many of them."""
    for item in items:
        if HERE in item.path.parents and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


lasting = pytest_asyncio.fixture(scope="session", loop_scope="session")
fresh = pytest_asyncio.fixture(loop_scope="session")


@pytest.fixture(autouse=True)
def quiet_clients() -> None:
    """What the tests' own HTTP clients do is not what a failed test needs to show."""
    for name in ("httpcore", "httpx", "asyncio", "urllib3"):
        logging.getLogger(name).setLevel(logging.WARNING)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    end_in_order()
    return tmp_path_factory.mktemp("e2e")


@lasting
async def llmock_process(folder: Path) -> AsyncGenerator[Llmock]:
    async with peers.llmock(folder) as running:
        yield running


@fresh
async def llmock(llmock_process: Llmock) -> AsyncGenerator[Llmock]:
    """The provider, without memory of earlier tests. In place of the fixture that llmock brings along.

    The test fails if a strict provider would have refused any of its requests.
    """
    await llmock_process.reset()
    yield llmock_process
    await llmock_process.refuses_nothing()


@lasting
async def phone(folder: Path) -> AsyncGenerator[Phone]:
    if why := peers.why_no_phone():
        pytest.skip(why)
    async with peers.phone(folder) as running:
        yield running


@lasting
async def browser() -> AsyncGenerator[Browser]:
    if not browsers.chromium():
        pytest.skip("there is no Chromium: install it (Debian: apt-get install chromium)")
    async with browsers.browser() as running:
        yield running


@lasting
async def replica(folder: Path, llmock_process: Llmock, phone: Phone) -> AsyncGenerator[Site]:
    """A replica with a provider and a phone, for all tests that do not break it."""
    settings = provided_by(llmock_process.base_url) | alerts_to(phone) | ROOMY
    async with site(folder / "replica", **settings) as running:
        yield running


@lasting
async def keyless(folder: Path, phone: Phone) -> AsyncGenerator[Site]:
    """A replica without any key, and a phone."""
    async with site(folder / "keyless", **alerts_to(phone), **ROOMY) as running:
        yield running


class Starts(Protocol):
    def __call__(self, **settings: str) -> AbstractAsyncContextManager[Site]: ...


@pytest.fixture
def replica_with(tmp_path: Path) -> Starts:
    """Starts a replica of the test's own: `async with replica_with(MAX_TURNS="1") as site`."""

    def start(**settings: str) -> AbstractAsyncContextManager[Site]:
        return site(tmp_path / "replica", **ROOMY, **settings)

    return start


class Opens(Protocol):
    def __call__(self, site: Site) -> AbstractAsyncContextManager[Visitors]: ...


@pytest.fixture
def visitors_of(browser: Browser) -> Opens:
    """Lets visitors into a replica. Afterwards no browser may have complained, nothing may have left for
    elsewhere, and the log may hold neither a traceback nor a secret."""

    @asynccontextmanager
    async def opened(site: Site) -> AsyncGenerator[Visitors]:
        visitors = Visitors(browser, site.url, Complaints(site.url))
        try:
            yield visitors
        finally:
            await visitors.leave()
        assert visitors.complaints.found == []
        site.check_the_log()

    return opened


@fresh
async def visitors(replica: Site, visitors_of: Opens) -> AsyncGenerator[Visitors]:
    """Visitors of the replica with a provider."""
    async with visitors_of(replica) as opened:
        yield opened


@fresh
async def scripted() -> AsyncGenerator[fake_provider.Provider]:
    """A provider in the test's own process, which can be held in the middle of a word."""
    async with fake_provider.serving() as serving:
        yield serving
        assert serving.refused == []
