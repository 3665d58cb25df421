"""Whom a request is counted for."""

from __future__ import annotations

from starlette.requests import HTTPConnection

from agent.limits import client_address


def address_of(request: HTTPConnection, trusted_proxies: int) -> str:
    """The client's address; see `client_address`."""
    peer = request.client.host if request.client else ""
    return client_address(peer, request.headers.getlist("x-forwarded-for"), trusted_proxies)
