"""Two rules for every test, as a pytest plugin: no connection leaves this machine, and in CI no test is skipped."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Generator

import pytest

# Before anything imports them: Gradio and its client would send home that they are used.
os.environ.update({"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "1"})

_attempts: list[str] = []


def _is_here(host: object) -> bool:
    """Loopback, or a name that no resolver knows: RFC 6761 keeps `.invalid` and `.test` for tests."""
    if not isinstance(host, str | bytes) or not host:
        return True  # a Unix socket, or any address of this machine
    name = host.decode() if isinstance(host, bytes) else host
    if name == "localhost" or name.endswith((".invalid", ".test")):
        return True
    try:
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.getaddrinfo":
        host: object = arguments[0]
    elif event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None  # pyright: ignore[reportUnknownVariableType]
    else:
        return
    if not _is_here(host):  # pyright: ignore[reportUnknownArgumentType]
        _attempts.append(f"{event} {host!r}")
        raise RuntimeError(f"tests talk to this machine alone, not to {host!r}")


# An audit hook, since it sees every connection of this process, asyncio's too. It cannot be taken away again.
sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def nothing_leaves_this_machine() -> Generator[None]:
    """Fails a test that tried, even if the code under test caught the error."""
    _attempts.clear()
    yield
    assert _attempts == []


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _skipped(session.config) and os.environ.get("CI"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped = _skipped(config)
    if not skipped or not os.environ.get("CI"):
        return
    terminalreporter.section("skipped, and CI forbids it", red=True)
    for report in skipped:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"{report.nodeid}: {why}")


def _skipped(config: pytest.Config) -> list[pytest.TestReport]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("skipped", []) if isinstance(reporter, pytest.TerminalReporter) else []
