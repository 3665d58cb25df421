"""Each request of a talk begins with nearly all of the one before, and fits, however much is known and said."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.fakes.provider import Provider
from tests.long_talk import KEPT, MAX_OUTPUT_TOKENS, talk, write_files

CONTEXT = 16_000
WORDS = [
    a + b
    for a in ["ba", "ko", "mi", "ru", "ten", "sol", "var", "del", "gin", "pas"]
    for b in ["ra", "lo", "net", "du", "mar", "tik", "sen", "vo"]
]


@pytest.mark.parametrize("sections", [20, 800])
async def test_nearly_all_of_a_request_was_in_the_one_before(provider: Provider, tmp_path: Path, sections: int) -> None:
    questions = write_files(tmp_path / "knowledge", sections, WORDS)
    requests = await talk(provider, tmp_path / "knowledge", tmp_path, questions, CONTEXT)
    assert len(requests) == 50
    assert ("<passage from=" in requests[-1].text) == (sections > 20)
    shared = {
        number: now.shared_with(before)
        for number, (before, now) in enumerate(pairwise(requests), 2)
        if not now.is_shortened_from(before)
    }
    assert min(shared.values()) >= 0.9, shared
    assert len(shared) >= 40
    kept = [now.text.startswith(before.text.removesuffix("]]")) for before, now in pairwise(requests)]
    assert kept.count(True) == len(shared), "each begins with the whole of the one before"
    assert max(request.tokens for request in requests) + MAX_OUTPUT_TOKENS <= CONTEXT


async def test_what_the_visitor_said_first_is_known_in_the_end(provider: Provider, tmp_path: Path) -> None:
    questions = write_files(tmp_path / "knowledge", 800, WORDS)
    last = (await talk(provider, tmp_path / "knowledge", tmp_path, questions, CONTEXT))[-1]
    assert KEPT in last.system
    assert last.first != questions[0]


async def test_a_passage_is_sent_once(provider: Provider, tmp_path: Path) -> None:
    questions = write_files(tmp_path / "knowledge", 800, WORDS)
    requests = await talk(provider, tmp_path / "knowledge", tmp_path, [questions[1]] * 4, CONTEXT)
    passages = requests[-1].text.split("<passage from=")[1:]
    assert len(passages) > 8
    assert len(set(passages)) == len(passages)
