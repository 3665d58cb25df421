"""How much of each request the one before had, in talks of fifty turns: `python -m bench.prefix`.

What a provider has read before costs a fraction and comes sooner. The provider is scripted; its answers are as long as
a real one's, and its summaries copy what was said of the visitor. The files are made of English words by chance.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from bench.finding import vocabulary
from tests.fakes.provider import serving
from tests.long_talk import KEPT, Request, talk, write_files

CONTEXT_TOKENS = 16_000
AIM = 0.9
SIZES = (("small", 20), ("large", 6_000))


def counter() -> Callable[[str], int] | None:
    """Tokens as OpenAI's models count them; None where tiktoken or its table, which it downloads, is not at hand."""
    try:
        encoding: Any = import_module("tiktoken").get_encoding("o200k_base")
    except Exception:  # it raises whatever its client does
        return None
    return lambda text: len(encoding.encode(text))


def lines(name: str, folder: Path, requests: Sequence[Request]) -> Iterator[str]:
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    yield f"{name} knowledge: {size:.2f} MB, {len(requests)} turns"
    pairs = list(enumerate(pairwise(requests), 2))
    shortened = [number for number, (before, now) in pairs if now.is_shortened_from(before)]
    shared = {number: now.shared_with(before) for number, (before, now) in pairs if number not in shortened}
    least = min(shared, key=shared.__getitem__)
    yield (
        f"  of a request, from its beginning, the one before had {shared[least]:.1%} at the least (turn {least}), "
        f"{median(shared.values()):.1%} at the median: aim {AIM:.0%}, {'met' if shared[least] >= AIM else 'MISSED'}"
    )
    yield f"  left out, since history was shortened: turns {', '.join(map(str, shortened)) or 'none'}; rollbacks: none"
    last = requests[-1]
    count = counter()
    counted = f"{count(last.text)} counted by tiktoken" if count else "not counted: no tiktoken with its table"
    most = max(request.tokens for request in requests)
    yield (
        f"  tokens of the request at turn {len(requests)}: {last.tokens} estimated (most of all: {most}), {counted}: "
        f"aim {CONTEXT_TOKENS}, {'met' if most <= CONTEXT_TOKENS else 'MISSED'}"
    )
    yield f"  what the visitor said at turn 1 is in the last request: {'yes' if KEPT in last.text else 'NO'}"
    if shortened:
        yield f"  and in its summary: {'yes' if KEPT in last.system else 'NO'}"
    yield f"  passages in the last request: {last.text.count('<passage from=')}"


async def main() -> None:
    logging.disable(logging.WARNING)
    words = vocabulary()[:4000]
    with tempfile.TemporaryDirectory() as place:
        for name, sections in SIZES:
            data = Path(place, name)
            questions = write_files(data / "knowledge", sections, words)
            async with serving() as provider:
                requests = await talk(provider, data / "knowledge", data, questions, CONTEXT_TOKENS)
            sys.stdout.writelines(f"{line}\n" for line in lines(name, data / "knowledge", requests))


if __name__ == "__main__":
    asyncio.run(main())
