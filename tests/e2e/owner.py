"""The owner in front of the emulated Telegram: reads what the bot wrote, and writes to it."""

from __future__ import annotations

import time
from typing import Any

import httpx

from tests.e2e.peers import Phone
from tests.e2e.programs import eventually


class OwnersPhone(Phone):
    """A chat with a bot of its own, so that no other replica takes its messages away.

    Args:
        url: of the emulator.
        token: of the bot; any will do.
    """

    def __init__(self, url: str, token: str) -> None:
        super().__init__(url)
        self.token = token
        self._http = httpx.AsyncClient(base_url=url, timeout=10)

    async def received(self) -> list[tuple[int, str]]:
        """Number and text of each of the bot's messages, oldest first."""
        answer = await self._http.post("/getUpdatesHistory", json={"token": self.token})
        updates: list[dict[str, Any]] = answer.raise_for_status().json()["result"]
        return [
            (update["messageId"], update["message"]["text"])
            for update in updates
            if str(update["message"].get("chat_id")) == self.chat_id
        ]

    async def texts(self) -> list[str]:
        return [text for _, text in await self.received()]

    async def message(self, part: str, within_s: float = 15) -> int:
        """Number of the bot's newest message with this text in it.

        Raises:
            AssertionError: none came.
        """

        async def look() -> int | None:
            return next((number for number, text in reversed(await self.received()) if part in text), None)

        return await eventually(look, within_s, lambda: f"no message with {part!r} came")

    async def writes(self, text: str, answers: int | None = None) -> None:
        """Writes to the bot, in reply to one of its messages or not."""
        chat = {"id": int(self.chat_id), "type": "private", "first_name": "Ada"}
        message: dict[str, Any] = {"botToken": self.token, "date": int(time.time()), "chat": chat, "text": text}
        message["from"] = {"id": int(self.chat_id), "is_bot": False, "first_name": "Ada"}
        if answers is not None:
            message["reply_to_message"] = {"message_id": answers, "chat": chat}
        (await self._http.post("/sendMessage", json=message)).raise_for_status()

    async def close(self) -> None:
        await self._http.aclose()
        await super().close()
