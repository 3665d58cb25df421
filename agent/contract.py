"""What the loop needs of a model, whoever it is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, Protocol

from agent.conversation import Reply, WireMessage

ToolChoice = Literal["auto", "none"]


class ModelError(Exception):
    """The provider's fault, and nothing was shown yet. The message is for the owner's log: plain, without secrets."""


class TooLong(ModelError):
    """The request is longer than the model can read: a shorter one may succeed."""

    def __init__(self, message: str, instead: ChatModel | None = None) -> None:
        super().__init__(message)
        self.instead = instead
        """Who may read it where no shorter one helps."""


class ChatModel(Protocol):
    """Whatever can complete a conversation: a provider, two in turn, or none."""

    name: str

    def stream(
        self, messages: Sequence[WireMessage], tools: Sequence[dict[str, Any]], tool_choice: ToolChoice = "auto"
    ) -> AsyncGenerator[str | Reply]:
        """Yields pieces of text as they come, and last of all the whole Reply.

        An empty piece is a sign of life: the model thinks, or writes a call.

        Raises:
            ModelError: there is no reply. Once a piece was yielded a broken stream does not
                raise: its Reply says `cut`.
        """
        ...

    async def close(self) -> None:
        """Gives back connections. The model cannot be used afterwards."""
        ...
