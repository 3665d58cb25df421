"""A strict reading of the chat-completions format: what the pickiest of the common providers would refuse."""

from __future__ import annotations

import json
from typing import Any

TOP = {
    "model", "messages", "max_tokens", "stream", "stream_options", "tools", "tool_choice", "temperature",
}  # fmt: skip
FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "reasoning_content"},
    "tool": {"role", "content", "tool_call_id"},
}


def faults(request: dict[str, Any]) -> list[str]:
    """Every reason to refuse a request; empty when it is well formed."""
    found = [f"unknown field {name!r}" for name in request.keys() - TOP]
    messages: list[dict[str, Any]] = request.get("messages") or []
    if not messages:
        return [*found, "no messages"]
    found += _sequence(messages)
    for number, message in enumerate(messages):
        found += [f"message {number}: {fault}" for fault in _message(message)]
    if request.get("tool_choice") is not None and not request.get("tools"):
        found.append("tool_choice without tools")
    return found


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
        return [] if message["content"].strip() else ["an assistant message without content or calls"]
    found: list[str] = []
    calls = message["tool_calls"]
    if not calls:
        return ["empty tool_calls"]
    ids = [call.get("id") for call in calls]
    if len(set(ids)) != len(ids) or not all(isinstance(i, str) and i for i in ids):
        found.append("call ids are missing or repeated")
    for call in calls:
        function = call.get("function", {})
        if call.get("type") != "function" or not function.get("name"):
            found.append("a call without type or name")
        try:
            if not isinstance(json.loads(function["arguments"] or "{}"), dict | str | None):
                found.append("arguments are not an object")
        except (KeyError, TypeError, ValueError):
            found.append("arguments are not a string of JSON")
    return found


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
        open_ids = [call.get("id", "") for call in message.get("tool_calls", ())]
        before = role
    if open_ids or before not in ("user", "tool"):
        found.append("the last message is not for the assistant to answer")
    return found
