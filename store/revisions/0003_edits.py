"""The owner's message that an answer or words came from, so that an edit of it changes them and nothing else."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Text

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    for table in ("answers", "owner_words"):
        op.add_column(table, Column("chat_id", Text))
        op.add_column(table, Column("message_id", BigInteger))
        op.create_index(f"ix_{table}_message_id", table, ["message_id"])
