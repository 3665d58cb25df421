"""Tools: a pydantic model is schema, validation and description of each; a function does the work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.conversation import Conversation, ToolCall, ToolResult
from agent.wire.arguments import Unreadable, read_arguments

log = logging.getLogger(__name__)

OK = "ok"
"""What a tool answers when it did its work and the visitor needs to mend nothing."""

TOOL_TIMEOUT_S = 15.0
"""A tool that takes longer has failed: a visitor is waiting."""


class ToolError(Exception):
    """The call cannot be mended: its name is unknown, its arguments are not JSON, the tool raised or took too long.

    The message is for the log. It reaches neither the model nor the visitor.
    """


class Arguments(BaseModel):
    """What a tool takes. Fields that it does not know are dropped, as models add some; a number may stand for text."""

    model_config = ConfigDict(extra="ignore", frozen=True, str_strip_whitespace=True, coerce_numbers_to_str=True)


@dataclass(frozen=True, slots=True)
class Visit:
    """What a tool may know of the conversation that calls it."""

    conversation_id: str
    conversation: Conversation
    message: str
    """The visitor's message that is being answered."""

    @property
    def visitor_messages(self) -> tuple[str, ...]:
        """Everything the visitor wrote, oldest first."""
        return (*self.conversation.visitor_messages, self.message)


Args = TypeVar("Args", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Tool(Generic[Args]):
    """A tool that the model may call.

    The docstring of `arguments` is the description that the model reads: it decides when the tool is called.
    """

    name: str
    arguments: type[Args]
    run: Callable[[Args, Visit], Awaitable[str]]
    """Returns the sentence for the model: `ok`, or what the visitor has to mend."""
    working: str
    """What the page says while the tool runs."""
    done: str
    """What the page says after the tool returned `ok`."""
    habit: str = ""
    """A line for the persona: when to reach for this tool."""

    def schema(self) -> dict[str, Any]:
        """The tool as the chat-completions format declares it."""
        schema = self.arguments.model_json_schema()
        description = schema.pop("description", "")
        return {
            "type": "function",
            "function": {"name": self.name, "description": description, "parameters": _untitled(schema)},
        }


class Toolkit:
    """The registry: the only source of tool names."""

    def __init__(self, *tools: Tool[Any], timeout_s: float = TOOL_TIMEOUT_S) -> None:
        self.tools: Mapping[str, Tool[Any]] = {tool.name: tool for tool in tools}
        self.schemas: tuple[dict[str, Any], ...] = tuple(tool.schema() for tool in tools)
        self.timeout_s = timeout_s

    async def call(self, call: ToolCall, visit: Visit) -> ToolResult:
        """Validates and runs one call.

        Returns:
            The tool's sentence, or one that names the fields to mend.

        Raises:
            ToolError: the call cannot be mended.
        """
        tool = self.tools.get(call.name)
        if tool is None:
            raise ToolError(f"the model asked for an unknown tool {call.name!r}")
        try:
            arguments = tool.arguments.model_validate(read_arguments(call.arguments, tool.arguments.model_fields))
        except Unreadable as error:
            raise ToolError("the arguments are not JSON") from error
        except ValidationError as error:
            return ToolResult(call.id, explain(error))
        try:
            async with asyncio.timeout(self.timeout_s):
                return ToolResult(call.id, await tool.run(arguments, visit))
        except TimeoutError as error:
            raise ToolError(f"{call.name} took longer than {self.timeout_s:g} s") from error
        except Exception as error:
            log.exception("%s raised", call.name)
            raise ToolError(f"{call.name} raised {type(error).__name__}") from error


def explain(error: ValidationError) -> str:
    """A sentence for the model that names each field and what it needs, without repeating what it sent."""
    needs = [f"{'.'.join(str(part) for part in item['loc']) or 'arguments'}: {item['msg']}" for item in error.errors()]
    return f"ERROR: The call was not carried out. Call again with these fields mended. {'; '.join(needs)}."


def _untitled(schema: Any) -> Any:
    """Without the titles that pydantic derives from names: they cost tokens and say nothing new."""
    if isinstance(schema, dict):
        return {  # pyright: ignore[reportUnknownVariableType]
            key: _untitled(value)
            for key, value in schema.items()  # pyright: ignore[reportUnknownVariableType]
            if not (key == "title" and isinstance(value, str))
        }
    return [_untitled(item) for item in schema] if isinstance(schema, list) else schema  # pyright: ignore
