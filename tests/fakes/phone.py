"""A person in front of Telegram: writes to the bot, answers its messages, mends what they wrote.

owner = Phone(api)
asked = await api.messages_arrive(1)
owner.replies(asked[0].message_id, "Since 1843.")
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fakes.telegram import FakeTelegram


class Phone:
    """One person in one chat.

    Args:
        api: the Telegram that they use.
        chat_id: their chat with the bot; None: the owner's.
        kind: `private`, `group`, `supergroup` or `channel`.
        person: number of whoever writes, where the chat has several.
        name: of a channel or group that has one, without the @.
    """

    def __init__(
        self,
        api: FakeTelegram,
        chat_id: str | None = None,
        kind: str = "private",
        person: int | None = None,
        name: str = "",
    ) -> None:
        self._api = api
        self._chat: dict[str, Any] = {"id": int(chat_id or api.chat_id), "type": kind}
        self._chat |= {"username": name} if name else {}
        self._from = {"id": person or abs(int(chat_id or api.chat_id)), "is_bot": False, "first_name": "Ada"}
        self._written: dict[int, dict[str, Any]] = {}

    def writes(self, text: str, **more: Any) -> int:
        """Gives the number of the message."""
        entities = [{"type": "bot_command", "offset": 0, "length": len(m[0])} for m in re.finditer(r"^/\S+", text)]
        return self._sends({"text": text, **({"entities": entities} if entities else {}), **more})

    def replies(self, message_id: int, text: str) -> int:
        return self.writes(text, reply_to_message=self._quoted(message_id))

    def speaks(self, message_id: int | None = None) -> int:
        """A voice message, in answer to another one or not."""
        quoted = {} if message_id is None else {"reply_to_message": self._quoted(message_id)}
        return self._sends({"voice": {"file_id": "AwAC", "duration": 3}, **quoted})

    def edits(self, message_id: int, text: str) -> None:
        self._written[message_id] |= {"text": text, "edit_date": int(time.time())}
        self._api.update(**{f"edited_{self._kind}": dict(self._written[message_id])})

    def upgrades_the_group(self, chat_id: str) -> None:
        """The group becomes a supergroup with another number, which both chats are told."""
        old = self._chat
        self._sends({"migrate_to_chat_id": int(chat_id)})
        self._api.moved[str(old["id"])] = chat_id
        self._api.chats.add(chat_id)
        self._chat = {"id": int(chat_id), "type": "supergroup"}
        self._sends({"migrate_from_chat_id": old["id"]})

    @property
    def _kind(self) -> str:
        return "channel_post" if self._chat["type"] == "channel" else "message"

    def _sends(self, content: dict[str, Any]) -> int:
        message_id = self._api.new_message_id()
        message = {"message_id": message_id, "chat": self._chat, "date": int(time.time()), **content}
        if self._kind == "message":
            message["from"] = self._from
        self._written[message_id] = message
        self._api.update(**{self._kind: dict(message)})
        return message_id

    def _quoted(self, message_id: int) -> dict[str, Any]:
        sent = next((one.text for one in self._api.messages if one.message_id == message_id), "…")
        return {"message_id": message_id, "chat": self._chat, "date": int(time.time()), "text": sent}
