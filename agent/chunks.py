"""The chunks in a response body: an event stream, JSON a line, or one whole body, whatever its headers say."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from typing import Any

MAX_BYTES = 16_000_000
"""No reply is that long: a body without an end must not fill the memory."""

_NO_DATA = (b":", b"event:", b"id:", b"retry:")
_BOM = b"\xef\xbb\xbf"
_END = b"[DONE]"


async def chunks_in(blocks: AsyncIterable[bytes]) -> AsyncGenerator[Any]:
    """Each chunk, decoded, as soon as it is complete.

    Raises:
        ValueError: something is neither JSON nor UTF-8, or the body is too long.
    """
    begun = b""
    async with aclosing(_lines(blocks)) as lines:
        async for line in lines:
            if line.startswith(_NO_DATA):
                continue
            is_data = line.startswith(b"data:")
            payload = line[5:].strip() if is_data else line.strip()
            if payload == _END:
                return
            if not payload:
                if begun.startswith(b"data:"):
                    raise ValueError("a broken event")
                continue
            payload = begun.removeprefix(b"data:") + payload
            chunk, whole = _decoded(payload)
            begun = b"" if whole else (b"data:" if is_data else b"") + payload + b"\n"
            if whole:
                yield chunk
    if begun:
        raise ValueError("the body ends in the middle")


def _decoded(payload: bytes) -> tuple[Any, bool]:
    """The value, and whether it is complete."""
    if payload[-1:] not in (b"}", b"]") and payload[:1] in (b"{", b"["):
        return None, False
    try:
        return json.loads(payload.decode("utf-8", "surrogatepass"), strict=False), True
    except UnicodeDecodeError:
        raise
    except ValueError:
        return None, False


async def _lines(blocks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    rest, read = b"", 0
    async for block in blocks:
        if not read:
            block = block.removeprefix(_BOM)
        read += len(block)
        if read > MAX_BYTES:
            raise ValueError("the body is too long")
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")
    for line in rest.split(b"\r"):
        yield line
