"""Reads Telegram's updates: of each what matters here, whatever else it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from alerts.wire import as_object

KINDS = ("message", "edited_message", "channel_post", "edited_channel_post")
"""Updates that are asked for. The owner's chat may be a group or a channel."""

_WITHOUT_WORDS = frozenset(
    {"animation", "audio", "contact", "dice", "document", "location", "photo"}
    | {"poll", "sticker", "story", "venue", "video", "video_note", "voice"}
)
"""What a person may send in the place of text."""


_LARGEST = 2**63 - 1
"""What the store takes; Telegram's own numbers have 52 bits."""


@dataclass(frozen=True, slots=True)
class Words:
    """What somebody wrote to the bot."""

    chat_id: str
    message_id: int
    text: str
    """Empty: there is no text to it."""
    chat_name: str = ""
    """`@name` of a channel or group that has one."""
    answers: int | None = None
    """Number of the message that it replies to."""
    for_us: bool = True
    """It is meant for the bot: written in a private chat, or a reply to one of the bot's messages."""
    edited: bool = False
    other: bool = False
    """A voice message, a picture or the like."""
    moved: tuple[str, str] | None = None
    """The chat has a new number: the old one, the new one."""


def number_of(update: Mapping[str, Any]) -> int | None:
    return _number(update.get("update_id"))


def read_words(update: Mapping[str, Any]) -> Words | None:
    """None: the update is of another kind, or has not the form that Telegram documents."""
    kind = next((kind for kind in KINDS if kind in update), None)
    message = as_object(update.get(kind)) if kind else {}
    chat = as_object(message.get("chat"))
    chat_id, message_id, text = _number(chat.get("id")), _number(message.get("message_id")), message.get("text", "")
    if chat_id is None or message_id is None or not isinstance(text, str):
        return None
    replied = as_object(message.get("reply_to_message"))
    if "forum_topic_created" in replied:
        replied = {}  # every message in a topic replies to its first one
    return Words(
        chat_id=str(chat_id),
        message_id=message_id,
        text=text.strip(),
        chat_name=f"@{chat['username']}" if isinstance(chat.get("username"), str) else "",
        answers=_number(replied.get("message_id")),
        for_us=chat.get("type") == "private" or as_object(replied.get("from")).get("is_bot") is True,
        edited=str(kind).startswith("edited"),
        other=not _WITHOUT_WORDS.isdisjoint(message),
        moved=_moved(message, chat_id),
    )


def _moved(message: Mapping[str, Any], chat_id: int) -> tuple[str, str] | None:
    if (new := _number(message.get("migrate_to_chat_id"))) is not None:
        return str(chat_id), str(new)
    if (old := _number(message.get("migrate_from_chat_id"))) is not None:
        return str(old), str(chat_id)
    return None


def _number(value: object) -> int | None:
    """None: it is no number, or one that nobody can keep."""
    return value if isinstance(value, int) and abs(value) <= _LARGEST and not isinstance(value, bool) else None
