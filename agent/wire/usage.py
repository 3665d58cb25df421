"""What a provider says that a completion took, read as whole numbers that can be believed."""

from __future__ import annotations

from typing import Any, cast

from agent.conversation import Usage

MAX_TOKENS = 10**8
"""A provider that counts more has miscounted."""


def read_usage(usage: Any) -> Usage | None:
    """What the provider counted; None where it counted nothing, or nothing that can be believed."""
    fields = _object(usage)
    prompt, completion = _tokens(fields.get("prompt_tokens")), _tokens(fields.get("completion_tokens"))
    cached = _tokens(_object(fields.get("prompt_tokens_details")).get("cached_tokens"))
    return Usage(prompt, min(cached, prompt), completion) if prompt or completion else None


def _tokens(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0
    try:
        tokens = int(float(value))
    except (ValueError, OverflowError):
        return 0
    return tokens if 0 <= tokens <= MAX_TOKENS else 0


def _object(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
