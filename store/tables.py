"""The tables, one schema for SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

SCHEMA_VERSION = 1


def storable(text: str) -> str:
    """Text that every database takes: no NUL, and no half of a surrogate pair.

    Both reach us in JSON from browsers and models. Halves that belong together are joined, others become U+FFFD.
    """
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\x00", "\ufffd")


class Words(TypeDecorator[str]):
    """Text from people and models."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)


class Moment(TypeDecorator[datetime]):
    """A time with its zone, always UTC; SQLite keeps no zone of its own."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError("a time needs its zone")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

schema_version = Table("schema_version", metadata, Column("version", Integer, primary_key=True))

turns = Table(
    "turns",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("conversation_id", Words, nullable=False),
    Column("number", Integer, nullable=False),
    Column("message", Words, nullable=False),
    Column("steps", Words),  # JSON; NULL until the turn is closed
    Column("stop", Words),
    Column("liked", Boolean),
    Column("replaced", Boolean, nullable=False, default=False),
    Column("opened", Moment, nullable=False),
    Column("closed", Moment),
    UniqueConstraint("conversation_id", "number"),
)

alerts = Table(
    "alerts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", Words, nullable=False),
    Column("key", Words, nullable=False, default=""),  # of a trouble: what makes two of them the same
    Column("reference", Words, nullable=False, unique=True),
    Column("text", Words, nullable=False),
    Column("state", Words, nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("due", Moment, nullable=False),  # not to be tried before
    Column("reason", Words, nullable=False, default=""),
    Column("created", Moment, nullable=False),
    Column("sent", Moment),
    Index(None, "state", "due"),
)

contacts = Table(
    "contacts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("conversation_id", Words, nullable=False),
    Column("email", Words, nullable=False),
    Column("email_key", Words, nullable=False),
    Column("ascii_email", Words, nullable=False),
    Column("notes", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("disposable", Boolean, nullable=False),
    Column("alert_id", Integer, ForeignKey("alerts.id"), nullable=False),
    Column("created", Moment, nullable=False),
    UniqueConstraint("conversation_id", "email_key"),
)

questions = Table(
    "questions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("conversation_id", Words, nullable=False),
    Column("question", Words, nullable=False),
    Column("question_key", Words, nullable=False),
    Column("alert_id", Integer, ForeignKey("alerts.id"), nullable=False),
    Column("created", Moment, nullable=False),
    UniqueConstraint("conversation_id", "question_key"),
)

model_calls = Table(
    "model_calls",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("conversation_id", Words, nullable=False),
    Column("number", Integer, nullable=False),  # of the turn
    Column("at", Moment, nullable=False),
    Column("provider", Words, nullable=False),  # its host
    Column("model", Words, nullable=False),
    Column("outcome", Words, nullable=False),
    Column("duration_s", Float, nullable=False),
    Column("first_token_s", Float),
    Column("tokens_in", Integer, nullable=False),
    Column("tokens_cached", Integer, nullable=False),
    Column("tokens_out", Integer, nullable=False),
    Column("estimated", Boolean, nullable=False),
    Column("finish", Words, nullable=False),
    Column("tools", Words, nullable=False),
    Column("error", Words, nullable=False),
    Column("cost", Float),  # USD; NULL where the price is not known
    Index(None, "at"),
)
