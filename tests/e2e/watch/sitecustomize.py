"""Loaded by a Python that is watched: writes down every host beyond this machine that it wants to talk to."""

from __future__ import annotations

import ipaddress
import os
import sys
from typing import Any


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]  # pyright: ignore[reportUnknownVariableType]
    else:
        return
    name = host.decode() if isinstance(host, bytes) else str(host or "localhost")  # pyright: ignore
    try:
        here = ipaddress.ip_address(name).is_loopback or ipaddress.ip_address(name).is_unspecified
    except ValueError:
        here = name == "localhost" or name.endswith(".invalid")
    if not here:
        with open(os.environ["CONNECTIONS"], "a", encoding="utf-8") as file:
            file.write(f"{event} {name}\n")


if "CONNECTIONS" in os.environ:
    sys.addaudithook(_watch)
