"""Claims with a holder, and what the owner does: answers, words to a visitor, facts of the installation."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from store.tables import metadata as newest

revision = "0002"
down_revision = "0001"

_ABOUT_WHOM = """
UPDATE alerts SET conversation_id = (
    SELECT {table}.conversation_id FROM {table} JOIN alerts AS first ON first.id = {table}.alert_id
    WHERE first.reference = substr(alerts.reference, 1, 7)
)
WHERE kind = '{kind}'
"""
"""An alert that tells more of a contact has the reference of the first one, and a number behind it."""


def upgrade() -> None:
    op.add_column("alerts", Column("conversation_id", Text))
    op.add_column("alerts", Column("claimed_by", Text, nullable=False, server_default=""))
    op.add_column("alerts", Column("lease", DateTime(timezone=True)))
    op.add_column("alerts", Column("reply_to", BigInteger))
    op.create_index("ix_alerts_conversation_id", "alerts", ["conversation_id"])
    for table, kind in (("contacts", "contact"), ("questions", "question")):
        op.create_index(f"ix_{table}_alert_id", table, ["alert_id"])
        op.execute(_ABOUT_WHOM.format(table=table, kind=kind))
    bind, metadata = op.get_bind(), _metadata()
    metadata.reflect(bind, only=["alerts", "questions"])
    metadata.create_all(bind)
    op.drop_table("schema_version")


def _metadata() -> MetaData:
    metadata = MetaData(naming_convention=newest.naming_convention)
    time = DateTime(timezone=True)
    Table(
        "alert_messages",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("chat_id", Text, nullable=False),
        Column("message_id", BigInteger, nullable=False),
        Column("alert_id", Integer, ForeignKey("alerts.id"), nullable=False, index=True),
        UniqueConstraint("chat_id", "message_id", "alert_id"),
    )
    Table(
        "answers",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("reference", Text, nullable=False, unique=True),
        Column("question", Text, nullable=False),
        Column("text", Text, nullable=False),
        Column("question_id", Integer, ForeignKey("questions.id"), unique=True),
        Column("created", time, nullable=False),
        Column("changed", time, nullable=False),
    )
    Table(
        "owner_words",
        metadata,
        Column("id", Integer, primary_key=True),
        Column("conversation_id", Text, nullable=False),
        Column("after", Integer, nullable=False),
        Column("text", Text, nullable=False),
        Column("answer_id", Integer, ForeignKey("answers.id"), index=True),
        Column("question", Text, nullable=False),
        Column("created", time, nullable=False),
        Index(None, "conversation_id"),
        sqlite_autoincrement=True,
    )
    Table(
        "states",
        metadata,
        Column("key", Text, primary_key=True),
        Column("value", Text, nullable=False),
        Column("changed", time, nullable=False),
    )
    Table(
        "leases",
        metadata,
        Column("name", Text, primary_key=True),
        Column("holder", Text, nullable=False),
        Column("until", time, nullable=False),
    )
    return metadata
