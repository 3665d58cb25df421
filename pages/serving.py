"""Serves the page until the process is told to end."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from types import FrameType
from typing import Any

from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from pages.page import Page
from pages.security import Guard, Rewritten

log = logging.getLogger(__name__)

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]

SESSIONS = 200
"""Sessions whose copy of the page Gradio keeps, at 20 KB each; it makes a new one of any that it forgot."""

LAST_WORDS_S = 3
"""How long open connections may hold up the end, in seconds."""


def serve(
    page: Page,
    *,
    host: str,
    port: int,
    routes: Sequence[BaseRoute] = (),
    lifespan: Lifespan | None = None,
    frame_ancestors: str = "'self'",
) -> None:
    """Serves until SIGTERM or SIGINT, then ends in order: replies stop, connections close, the lifespan ends.

    Args:
        page: from `chat_page`.
        host: address to listen on.
        port: port to listen on.
        routes: more routes, such as the health check.
        lifespan: entered when the server starts and left when it ends, in the server's event loop.
        frame_ancestors: sites that may embed the page, as a Content-Security-Policy has them.

    Raises:
        SystemExit: the port cannot be opened; the log says so in one line.
    """
    ended, closing = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    @asynccontextmanager
    async def alive(app: Any) -> AsyncGenerator[None]:
        loops.append(asyncio.get_running_loop())
        async with lifespan(app) if lifespan else nullcontext():
            yield

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    if refusal := _refusal(host, port):
        log.error(
            "Cannot listen on %s, port %d (%s): check GRADIO_SERVER_NAME, and set GRADIO_SERVER_PORT to a free one",
            host,
            port,
            refusal,
        )
        raise SystemExit(2)
    blocks: Any = page.blocks
    blocks.space_id = None  # on Spaces the page would ask huggingface.co about itself, and Google for fonts
    blocks.launch(
        server_name=host,
        server_port=port,
        app_kwargs={
            "lifespan": alive,
            "routes": [*page.routes, *routes],
            "middleware": [
                Middleware(
                    Guard, frame_ancestors=frame_ancestors, closing=closing, calls=page.calls, sessions=page.line
                ),
                Middleware(Rewritten, rewrite=page.document.rewritten),
            ],
            "docs_url": None,
            "redoc_url": None,
            "openapi_url": None,
        },
        theme=page.theme,
        allowed_paths=[],
        state_session_capacity=SESSIONS,
        max_file_size=1,
        show_error=False,
        ssr_mode=False,
        share=False,
        pwa=False,
        mcp_server=False,
        enable_monitoring=False,
        run_history=False,
        footer_links=[],
        quiet=True,
        inbrowser=False,
        prevent_thread_lock=True,
    )
    blocks.server.config.timeout_graceful_shutdown = LAST_WORDS_S
    log.info("Open http://%s:%d (Ctrl+C ends it)", "127.0.0.1" if host in ("0.0.0.0", "::") else host, port)
    ended.wait()
    loops[0].call_soon_threadsafe(closing.set)
    blocks.close(verbose=False)
    blocks.server.thread.join()


def _refusal(host: str, port: int) -> str:
    """Why the port cannot be opened; empty when it can. Gradio's own error names neither cause nor setting."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            return error.strerror or type(error).__name__
    return ""
