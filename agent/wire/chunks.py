"""The chunks in a response body: an event stream, JSON a line, or one whole body, whatever its headers say."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any

MAX_BYTES = 16_000_000
"""No reply is that long: a body without an end must not fill the memory."""

_NO_DATA = (b":", b"event:", b"id:", b"retry:")
_BOM = b"\xef\xbb\xbf"
_END = b"[DONE]"
_NOTHING = object()
_DECODER = json.JSONDecoder(strict=False)


async def chunks_in(blocks: AsyncIterable[bytes]) -> AsyncGenerator[Any]:
    """Each chunk, decoded, as soon as it is complete.

    Raises:
        ValueError: something is neither JSON nor UTF-8, or the body is too long.
    """
    lines, rest, read = _Lines(), b"", 0
    async for block in blocks:
        rest += block if read else block.removeprefix(_BOM)
        read += len(block)
        if read > MAX_BYTES:
            raise ValueError("the body is too long")
        *whole, rest = rest.split(b"\n")
        for line in whole:
            if (chunk := lines.take(line.rstrip(b"\r"))) is not _NOTHING:
                yield chunk
            elif lines.ended:
                return
    for line in rest.split(b"\r"):
        if (chunk := lines.take(line)) is not _NOTHING:
            yield chunk
    if lines.begun and not lines.ended:
        raise ValueError("the body ends in the middle")


class _Lines:
    """Chunks from lines: one in a line, or one over several."""

    def __init__(self) -> None:
        self.begun = b""
        """A chunk that goes on in the next line."""
        self.ended = False
        self._is_data = False

    def take(self, line: bytes) -> Any:
        """The chunk that this line completes, if it does."""
        is_data = line.startswith(b"data:")
        payload = line[5:].strip() if is_data else line.strip()
        if not payload:
            if self.begun and self._is_data:
                raise ValueError("a broken event")
            return _NOTHING
        if payload == _END:
            self.ended = True
            return _NOTHING
        if not is_data and line.startswith(_NO_DATA):
            return _NOTHING
        payload = self.begun + payload
        chunk = _decoded(payload)
        self.begun, self._is_data = (payload + b"\n", is_data) if chunk is _NOTHING else (b"", False)
        return chunk


def _decoded(payload: bytes) -> Any:
    """The value, if it is complete."""
    if payload[-1] not in b"}]" and payload[0] in b"{[":
        return _NOTHING
    text = payload.decode("utf-8", "surrogatepass")
    try:
        return _DECODER.decode(text)
    except ValueError:
        return _NOTHING
