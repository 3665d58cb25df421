"""The tables as they were before migrations: made, or taken over where an earlier program made them."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from store.tables import metadata as newest

revision = "0001"
down_revision = None


def upgrade() -> None:
    _metadata().create_all(op.get_bind())  # what is there already stays as it is


def _metadata() -> MetaData:
    """A copy that stays as it is when `store.tables` goes on."""
    metadata = MetaData(naming_convention=newest.naming_convention)
    time = DateTime(timezone=True)
    Table("schema_version", metadata, Column("version", Integer, primary_key=True))
    Table(
        "turns",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("conversation_id", Text, nullable=False),
        Column("number", Integer, nullable=False),
        Column("message", Text, nullable=False),
        Column("steps", Text),
        Column("stop", Text),
        Column("liked", Boolean),
        Column("replaced", Boolean, nullable=False),
        Column("opened", time, nullable=False),
        Column("closed", time),
        UniqueConstraint("conversation_id", "number"),
    )
    Table(
        "alerts",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("kind", Text, nullable=False),
        Column("key", Text, nullable=False),
        Column("reference", Text, nullable=False, unique=True),
        Column("text", Text, nullable=False),
        Column("state", Text, nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("due", time, nullable=False),
        Column("reason", Text, nullable=False),
        Column("created", time, nullable=False),
        Column("sent", time),
        Index(None, "state", "due"),
    )
    Table(
        "contacts",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("conversation_id", Text, nullable=False),
        Column("email", Text, nullable=False),
        Column("email_key", Text, nullable=False),
        Column("ascii_email", Text, nullable=False),
        Column("notes", Text, nullable=False),
        Column("name", Text, nullable=False),
        Column("disposable", Boolean, nullable=False),
        Column("alert_id", Integer, ForeignKey("alerts.id"), nullable=False),
        Column("created", time, nullable=False),
        UniqueConstraint("conversation_id", "email_key"),
    )
    Table(
        "questions",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("conversation_id", Text, nullable=False),
        Column("question", Text, nullable=False),
        Column("question_key", Text, nullable=False),
        Column("alert_id", Integer, ForeignKey("alerts.id"), nullable=False),
        Column("created", time, nullable=False),
        UniqueConstraint("conversation_id", "question_key"),
    )
    Table(
        "model_calls",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("conversation_id", Text, nullable=False),
        Column("number", Integer, nullable=False),
        Column("at", time, nullable=False),
        Column("provider", Text, nullable=False),
        Column("model", Text, nullable=False),
        Column("outcome", Text, nullable=False),
        Column("duration_s", Float, nullable=False),
        Column("first_token_s", Float),
        Column("tokens_in", Integer, nullable=False),
        Column("tokens_cached", Integer, nullable=False),
        Column("tokens_out", Integer, nullable=False),
        Column("estimated", Boolean, nullable=False),
        Column("finish", Text, nullable=False),
        Column("tools", Text, nullable=False),
        Column("error", Text, nullable=False),
        Column("cost", Float),
        Index(None, "at"),
    )
    return metadata
