"""Queries on the requests to providers: written with the turn that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, func, insert, select

from store.records import CallRow, KeptCall
from store.tables import model_calls

_COLUMNS = [column for column in model_calls.c if column.name != "id"]

MOST_TOKENS = 1_000_000_000


def add_calls(connection: Connection, conversation_id: str, number: int, calls: Sequence[CallRow]) -> None:
    """All rows in one statement."""
    rows = [
        {
            "conversation_id": conversation_id,
            "number": number,
            "at": call.at,
            "provider": call.provider,
            "model": call.model,
            "outcome": call.outcome,
            "duration_s": call.duration_s,
            "first_token_s": call.first_token_s,
            "tokens_in": _count(call.usage.prompt),
            "tokens_cached": _count(call.usage.cached),
            "tokens_out": _count(call.usage.completion),
            "estimated": call.estimated,
            "finish": call.finish,
            "tools": ", ".join(call.tools),
            "error": call.error,
            "cost": call.cost,
        }
        for call in calls
    ]
    if rows:
        connection.execute(insert(model_calls), rows)


def _count(tokens: int) -> int:
    """A provider may say anything; two counts together have to fit into a column of PostgreSQL."""
    return min(max(0, tokens), MOST_TOKENS)


def tokens_since(connection: Connection, moment: datetime) -> int:
    """Read and written together."""
    total = func.sum(model_calls.c.tokens_in + model_calls.c.tokens_out)
    return int(connection.scalar(select(func.coalesce(total, 0)).where(model_calls.c.at >= moment)) or 0)


def read_calls(connection: Connection, limit: int) -> list[KeptCall]:
    rows = connection.execute(select(*_COLUMNS).order_by(model_calls.c.id.desc()).limit(limit))
    return [KeptCall(*row) for row in rows]
