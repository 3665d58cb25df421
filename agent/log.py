"""The log: lines that a person can read, and that hold no secret even when a traceback does."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import TextIO

TALKATIVE = ("alembic", "httpx", "httpx2", "httpcore", "httpcore2", "openai", "urllib3")
"""Libraries that print every request with its address: a Telegram address holds the token."""


SHORTEST_SECRET = 8
"""A shorter one, such as `x` for a local model, would be struck out of half the log and protects nothing."""


class Redacting(logging.Formatter):
    """Writes `[secret]` for every secret, wherever in a record it stands."""

    def __init__(self, layout: str, secrets: Iterable[str]) -> None:
        super().__init__(layout)
        self._secrets = sorted((one for one in secrets if len(one) >= SHORTEST_SECRET), key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        return text


def open_log(secrets: Iterable[str] = (), stream: TextIO = sys.stdout) -> None:
    """Sends the log of the whole process to a stream; called again, it replaces what the first call set."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Redacting("%(asctime)s %(levelname)s %(message)s", secrets))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
