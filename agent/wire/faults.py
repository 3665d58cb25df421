"""What goes wrong at a provider, told apart and put in plain words."""

from __future__ import annotations

import re
from typing import Any, cast

from agent.wire.reading import ProviderFault

MAX_RETRY_AFTER_S = 10
"""A visitor waits: of a longer wait that a provider asks for before the next try, this much is granted."""
TOO_LATE_S = 120
"""Beyond this, the SDK does not try again at all, and rightly so."""


async def tell_errors_by_status(response: Any) -> None:
    """An HTTP hook. Some providers send an error with status 200: given its own status, the SDK retries it."""
    if response.status_code != 200 or "json" not in response.headers.get("content-type", ""):
        return
    await response.aread()
    try:
        body: Any = response.json()
    except ValueError:
        return
    if isinstance(body, dict) and not body.get("choices") and body.get("error"):  # pyright: ignore[reportUnknownMemberType]
        response.status_code = _status_of(cast(dict[str, Any], body)["error"])


async def limit_retry_after(response: Any) -> None:
    """An HTTP hook. Keeps a provider from holding a visitor up for a minute before the next try."""
    for header, unit_s in (("retry-after", 1.0), ("retry-after-ms", 0.001)):
        try:
            asked_s = float(response.headers.get(header, "")) * unit_s
        except ValueError:
            continue
        if MAX_RETRY_AFTER_S < asked_s <= TOO_LATE_S:
            response.headers[header] = f"{MAX_RETRY_AFTER_S / unit_s:.0f}"


def rejected_text(error: Exception) -> str:
    """What the model wrote, where the provider refused to pass it on as a call (Groq does); else empty."""
    body = _body_of(error)
    written = body.get("failed_generation")
    return written if body.get("code") == "tool_use_failed" and isinstance(written, str) else ""


def refuses_tools(error: Exception) -> bool:
    """The model takes no tools."""
    return _status(error) in (400, 404, 405, 422, 501) and bool(_NO_TOOLS.search(_message_of(error)))


def is_too_long(error: Exception) -> bool:
    """The request is longer than the model can read."""
    return _status(error) == 413 or (_status(error) in (400, 422, 500) and bool(_TOO_LONG.search(_message_of(error))))


def is_broken(error: Exception) -> bool:
    """What came could not be read, or the connection broke: the next try may do better. A wait is not repeated."""
    kind = type(error).__name__
    return isinstance(error, ValueError | TypeError | RecursionError | ProviderFault) or kind in _BREAKS


def explain(error: Exception) -> str:
    """What went wrong and what the owner can do, in plain words: provider messages may repeat a key."""
    if is_too_long(error):
        return f"HTTP {_status(error)}: {_MENDS[413]}"
    if isinstance(error, ProviderFault):
        return str(error)
    if status := _status(error):
        return f"HTTP {status}: {_MENDS.get(status, 'the provider has a fault; try again later')}"
    kind = type(error).__name__
    return _MENDS_BY_KIND.get(kind, f"the provider's answer could not be read ({kind})")


def _status(error: Exception) -> int:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else 0


def _status_of(error: Any) -> int:
    code = str(cast(dict[str, Any], error).get("code")) if isinstance(error, dict) else ""
    return int(code) if re.fullmatch(r"[45]\d\d", code) else 502


def _body_of(error: Exception) -> dict[str, Any]:
    body: Any = getattr(error, "body", None)
    if not isinstance(body, dict):
        return {}
    inner: Any = cast(dict[str, Any], body).get("error")
    return cast(dict[str, Any], inner if isinstance(inner, dict) else body)


def _message_of(error: Exception) -> str:
    """For telling faults apart only; never shown or logged."""
    return f"{_body_of(error).get('code', '')} {_body_of(error).get('message', '') or getattr(error, 'message', '')}"


_TOOLS = r"\b(tools?|functions?)\b|\b(tool|function)[ _-]?(use|call\w*|choice)\b"
_NO_TOOLS = re.compile(
    rf"(not|n't|no (endpoints|providers?|models?)\b.*) support(ed|s)?\b.{{0,40}}({_TOOLS})"
    rf"|({_TOOLS}).{{0,40}}\b(not|un)[ -]?(supported|available|enabled)",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LONG = re.compile(
    r"context[ _-]?(length|size|window)|maximum context|exceed\w*.{0,40}(context|tokens)"
    r"|(prompt|request|input|message)s? (is|are) too (long|large)|too many (input )?tokens|reduce the length",
    re.IGNORECASE,
)
_MENDS: dict[int, str] = {
    400: "the provider refused the request; check OPENAI_MODEL and CONTEXT_TOKENS",
    401: "the key was refused; check OPENAI_API_KEY",
    402: "the account has no credit left",
    403: "the key may not use this model; check OPENAI_API_KEY and OPENAI_MODEL",
    404: "no such model or address; check OPENAI_MODEL and OPENAI_BASE_URL",
    413: "the request is too long for this model; lower CONTEXT_TOKENS",
    429: "the provider's limit is reached; wait, or raise it in the provider's account",
}
_BREAKS = ("RemoteProtocolError", "ReadError", "DecodingError")
_MENDS_BY_KIND = {
    "APITimeoutError": "no answer in time; check OPENAI_BASE_URL, or raise REPLY_TIMEOUT_S",
    "APIConnectionError": "cannot be reached; check OPENAI_BASE_URL and the network",
}
