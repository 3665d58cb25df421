"""What machines ask for: how the parts are, and the numbers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Ask = Callable[[], Awaitable[str]]


def health_route(parts: Mapping[str, Ask]) -> Route:
    """`/healthz`: of each part `ok`, or what is wrong in plain words. Always 200: the page itself is up."""

    async def answer(_: Request) -> Response:
        return JSONResponse({name: await ask() for name, ask in parts.items()})

    return Route("/healthz", answer)


def metrics_route(text: Ask, content_type: str) -> Route:
    """`/metrics`, as Prometheus reads it."""

    async def answer(_: Request) -> Response:
        return Response(await text(), media_type=content_type)

    return Route("/metrics", answer)
