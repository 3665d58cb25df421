"""The tables, one schema for SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
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


def _id() -> Column[int]:
    return Column("id", Integer, primary_key=True)


def _words(name: str) -> Column[str]:
    return Column(name, Words, nullable=False)


def _moment(name: str) -> Column[datetime]:
    return Column(name, Moment, nullable=False)


def _origin() -> tuple[Column[str], Column[int]]:
    """The owner's message that it came from; NULL where that is not known."""
    return Column("chat_id", Words), Column("message_id", BigInteger, index=True)


def _alert() -> Column[int]:
    return Column("alert_id", Integer, ForeignKey("alerts.id"), nullable=False, index=True)


turns = Table(
    "turns",
    metadata,
    _id(),
    _words("conversation_id"),
    Column("number", Integer, nullable=False),
    _words("message"),
    Column("steps", Words),  # JSON, with what was found; NULL until the turn is closed
    Column("stop", Words),
    Column("liked", Boolean),
    Column("replaced", Boolean, nullable=False, default=False),
    _moment("opened"),
    Column("closed", Moment),
    UniqueConstraint("conversation_id", "number"),
)

alerts = Table(
    "alerts",
    metadata,
    _id(),
    _words("kind"),
    Column("key", Words, nullable=False, default=""),  # a trouble: what makes two the same; a reply: what it is about
    Column("reference", Words, nullable=False, unique=True),
    _words("text"),
    _words("state"),
    Column("attempts", Integer, nullable=False, default=0),
    _moment("due"),  # not to be tried before
    Column("reason", Words, nullable=False, default=""),
    _moment("created"),
    Column("sent", Moment),
    Column("conversation_id", Words, index=True),  # NULL: it is about no visitor
    Column("claimed_by", Words, nullable=False, default="", server_default=""),
    Column("lease", Moment),  # claimed until
    Column("reply_to", BigInteger),  # the message that it answers
    Index(None, "state", "due"),
)

alert_messages = Table(
    "alert_messages",
    metadata,
    _id(),
    _words("chat_id"),
    Column("message_id", BigInteger, nullable=False),
    _alert(),
    UniqueConstraint("chat_id", "message_id", "alert_id"),
)

contacts = Table(
    "contacts",
    metadata,
    _id(),
    _words("conversation_id"),
    _words("email"),
    _words("email_key"),
    _words("ascii_email"),
    _words("notes"),
    _words("name"),
    Column("disposable", Boolean, nullable=False),
    _alert(),
    _moment("created"),
    UniqueConstraint("conversation_id", "email_key"),
)

questions = Table(
    "questions",
    metadata,
    _id(),
    _words("conversation_id"),
    _words("question"),
    _words("question_key"),
    _alert(),
    _moment("created"),
    UniqueConstraint("conversation_id", "question_key"),
)

answers = Table(
    "answers",
    metadata,
    _id(),
    Column("reference", Words, nullable=False, unique=True),
    _words("question"),
    _words("text"),
    Column("question_id", Integer, ForeignKey("questions.id"), unique=True),  # NULL: who asked was forgotten
    _moment("created"),
    _moment("changed"),
    *_origin(),
)

owner_words = Table(
    "owner_words",
    metadata,
    _id(),
    _words("conversation_id"),
    Column("after", Integer, nullable=False),  # number of the turn that they follow
    _words("text"),
    Column("answer_id", Integer, ForeignKey("answers.id"), index=True),
    _words("question"),
    _moment("created"),
    *_origin(),
    Index(None, "conversation_id"),
    sqlite_autoincrement=True,  # no id comes again: a page asks for words newer than the last ones that it has
)

states = Table(
    "states",
    metadata,
    Column("key", Words, primary_key=True),
    _words("value"),  # JSON
    _moment("changed"),
)

leases = Table(
    "leases",
    metadata,
    Column("name", Words, primary_key=True),
    _words("holder"),
    _moment("until"),
)

model_calls = Table(
    "model_calls",
    metadata,
    _id(),
    _words("conversation_id"),
    Column("number", Integer, nullable=False),  # of the turn
    _moment("at"),
    _words("provider"),  # its host
    _words("model"),
    _words("outcome"),
    Column("duration_s", Float, nullable=False),
    Column("first_token_s", Float),
    Column("tokens_in", Integer, nullable=False),
    Column("tokens_cached", Integer, nullable=False),
    Column("tokens_out", Integer, nullable=False),
    Column("estimated", Boolean, nullable=False),
    _words("finish"),
    _words("tools"),
    _words("error"),
    Column("cost", Float),  # USD; NULL where the price is not known
    Index(None, "at"),
)
