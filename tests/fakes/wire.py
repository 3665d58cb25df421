"""A strict reading of the chat-completions format: what the pickiest of the common providers would refuse."""

from __future__ import annotations

import json
import re
from typing import Any, cast

TOP = {
    "model", "messages", "max_tokens", "stream", "stream_options", "tools", "tool_choice", "temperature",
}  # fmt: skip
MAX_ID_CHARS = 64
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What the strict ones take as the name of a tool."""
FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "reasoning_content", "reasoning"},
    "tool": {"role", "content", "tool_call_id"},
}


def faults(request: dict[str, Any]) -> list[str]:
    """Every reason to refuse a request; empty when it is well formed."""
    found = [f"unknown field {name!r}" for name in request.keys() - TOP]
    messages: list[dict[str, Any]] = request.get("messages") or []
    if not messages:
        return [*found, "no messages"]
    found += _sequence(messages) + _ids(messages) + _tools(request)
    try:
        json.dumps(request, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        found.append("half a surrogate pair, or a number that JSON does not have")
    for number, message in enumerate(messages):
        found += [f"message {number}: {fault}" for fault in _message(message)]
    return found


def _tools(request: dict[str, Any]) -> list[str]:
    sent: Any = request.get("tools")
    tools = cast(list[dict[str, Any]], sent if isinstance(sent, list) else [])
    found: list[str] = []
    if "tools" in request and not tools:
        found.append("tools is not a list of some")
    if "tool_choice" in request and not tools:
        found.append("tool_choice without tools")
    if "tool_choice" in request and request["tool_choice"] not in ("auto", "none"):
        found.append("an unknown tool_choice")
    names = [tool["function"]["name"] for tool in tools]
    found += [f"the name {name!r} has the wrong form" for name in names if not NAME.fullmatch(name)]
    if len(set(names)) != len(names):
        found.append("two tools of one name")
    return found


def _ids(messages: list[dict[str, Any]]) -> list[str]:
    """Some take no id twice in a request, however far apart."""
    ids = [call.get("id") for message in messages for call in message.get("tool_calls") or ()]
    return ["an id that an earlier call had"] if len(set(map(str, ids))) != len(ids) else []


def _message(message: dict[str, Any]) -> list[str]:
    role = message.get("role")
    if role not in FIELDS:
        return [f"unknown role {role!r}"]
    found = [f"unknown field {name!r}" for name in message.keys() - FIELDS[role]]
    if not isinstance(message.get("content"), str):
        found.append("content is not a string")
    if role in ("system", "user") and not str(message.get("content", "")).strip():
        found.append("content is blank")
    if role == "assistant":
        found += _assistant(message)
    return found


def _assistant(message: dict[str, Any]) -> list[str]:
    if "tool_calls" not in message:
        return [] if str(message.get("content") or "").strip() else ["an assistant message without content or calls"]
    found: list[str] = []
    if not isinstance(message["tool_calls"], list) or not message["tool_calls"]:
        return ["empty tool_calls"]
    calls = cast(list[dict[str, Any]], message["tool_calls"])
    ids = [call.get("id") for call in calls]
    if len(set(ids)) != len(ids) or not all(isinstance(i, str) and i for i in ids):
        found.append("call ids are missing or repeated")
    for call in calls:
        function = call.get("function", {})
        if call.get("type") != "function" or function.keys() != {"name", "arguments"}:
            found.append("a call without type, or a function with other than name and arguments")
        if not NAME.fullmatch(str(function.get("name") or "")):
            found.append(f"the name {function.get('name')!r} has the wrong form")
        found += _arguments(function.get("arguments"))
        if any(len(i) > MAX_ID_CHARS or not i.isprintable() for i in ids if isinstance(i, str)):
            found.append("an id that is too long, or not printable")
    return found


def _arguments(text: Any) -> list[str]:
    try:
        value: Any = json.loads(text, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return ["arguments are not a string of JSON"]
    return [] if isinstance(value, dict) else ["arguments are not an object"]


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _sequence(messages: list[dict[str, Any]]) -> list[str]:
    """One system message, first; tool results directly after their call; user and assistant in turn."""
    found: list[str] = []
    if [m.get("role") for m in messages].count("system") > 1 or messages[0].get("role") != "system":
        found.append("system text elsewhere than in one leading message")
    open_ids: list[str] = []
    before = ""
    for number, message in enumerate(messages):
        role = str(message.get("role"))
        if role == "tool":
            if message.get("tool_call_id") not in open_ids:
                found.append(f"message {number}: a result without its call")
            else:
                open_ids.remove(str(message["tool_call_id"]))
            before = role
            continue
        if open_ids:
            found.append(f"message {number}: calls {open_ids!r} have no result")
            open_ids = []
        if role == before and role in ("user", "assistant"):
            found.append(f"message {number}: two {role} messages in a row")
        open_ids = [str(call.get("id", "")) for call in message.get("tool_calls") or ()]
        before = role
    if open_ids or before not in ("user", "tool"):
        found.append("the last message is not for the assistant to answer")
    return found
