"""What the log says at the start: what was found and what is missing."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from agent.calls import host_of
from agent.library import Shelf
from agent.persona import NOBODY
from agent.room import ROUND_TOKENS, Room
from agent.settings import Settings


def opening_lines(settings: Settings, shelf: Shelf, room: Room, database_file: str) -> Iterator[tuple[int, str]]:
    """What was found and what is missing, one line each."""
    for report in shelf.knowledge.reports:
        yield logging.WARNING if report.needs_care else logging.INFO, report.line()
    if shelf.knowledge.problem:
        yield logging.WARNING, f"Knowledge: {shelf.knowledge.problem}"
    if shelf.profile.name == NOBODY:
        yield logging.WARNING, "No name was found: begin a file with `# Your Name`, or set OWNER_NAME"
    if not shelf.is_whole:
        yield logging.INFO, "Knowledge: larger than its share of CONTEXT_TOKENS, so it is searched for each question"
    if room.for_history(shelf.persona) < ROUND_TOKENS:
        yield logging.WARNING, "CONTEXT_TOKENS is too small for the persona and a talk; raise it"
    if settings.has_provider:
        yield logging.INFO, f"Model: {settings.openai_model} at {host_of(settings.openai_base_url)}"
    else:
        yield logging.INFO, "OPENAI_API_KEY is not set: the replica answers by quoting its notes"
    if settings.embeddings_model and not settings.has_provider:
        yield logging.WARNING, "EMBEDDINGS_MODEL is not used: it needs OPENAI_API_KEY or OPENAI_BASE_URL"
    if not (settings.telegram_bot_token and settings.telegram_chat_id):
        where = "the database" if settings.database_url else str(settings.data_dir / database_file)
        yield (
            logging.INFO,
            f"TELEGRAM_BOT_TOKEN and TELEGRAM_CHAT_ID are not both set: alerts stay in {where} and this log",
        )
