"""What the README says of small and free tiers is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent.opening import opening_lines
from agent.room import KNOWLEDGE_SHARE, room_for
from agent.settings import Settings, load_settings
from tests.shelves import library_of
from tools.registry import toolkit

README = Path(__file__).parents[1] / "README.md"
FOREIGN = {"OLLAMA_CONTEXT_LENGTH"}


def passage() -> str:
    [found] = re.findall(r"^### Small and free tiers\n(.*?)^## ", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return found


def test_every_setting_that_the_passage_names_is_one() -> None:
    named = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", passage())) - FOREIGN
    assert len(named) >= 8
    assert named - {name.upper() for name in Settings.model_fields} == set()


def test_every_value_that_the_passage_names_can_be_set() -> None:
    values = re.findall(r"`([A-Z_]+)=(\w+)`", passage())
    assert len(values) >= 8
    for name, value in values:
        load_settings({name: value})


def opening_of(folder: Path, characters: int, **settings: str) -> str:
    """What the start says of files of that length."""
    (folder / "notes.md").write_text("# Ada Lovelace\n\n" + "The engine weaves. " * (characters // 19), "utf-8")
    hands = toolkit(outbox=None)  # pyright: ignore[reportArgumentType]
    read = load_settings(settings)
    room = room_for(hands, read.context_tokens, read.max_output_tokens, read.max_turns)
    shelf = library_of(folder, room=room, toolkit=hands).shelf
    return "\n".join(line for _, line in opening_lines(read, shelf, room, "replica.db"))


@pytest.mark.parametrize(
    ("characters", "settings"),
    [
        (12_000, {"CONTEXT_TOKENS": "8000", "MAX_OUTPUT_TOKENS": "400"}),
        (2_500, {"CONTEXT_TOKENS": "4000", "MAX_OUTPUT_TOKENS": "300", "MAX_TURNS": "1"}),
    ],
)
def test_files_of_the_length_that_the_passage_names_fit(
    tmp_path: Path, characters: int, settings: dict[str, str]
) -> None:
    assert f"{characters:,} characters" in passage() or f"about {characters:,}" in passage()
    assert "searched for each question" not in opening_of(tmp_path, characters, **settings)
    assert "searched for each question" in opening_of(tmp_path, 2 * characters, **settings)


def test_the_start_says_when_there_is_no_room_for_a_talk(tmp_path: Path) -> None:
    settings = {"CONTEXT_TOKENS": "3000", "MAX_OUTPUT_TOKENS": "800"}
    assert "CONTEXT_TOKENS is too small" in opening_of(tmp_path, 100, **settings)


def test_the_share_of_the_files_is_as_the_passage_says() -> None:
    assert f"{KNOWLEDGE_SHARE:.0%} of `CONTEXT_TOKENS`" in passage()


def test_a_model_for_embeddings_without_a_provider_is_named(tmp_path: Path) -> None:
    assert "EMBEDDINGS_MODEL is not used" in opening_of(tmp_path, 100, EMBEDDINGS_MODEL="embed-1")
    provided = {"EMBEDDINGS_MODEL": "embed-1", "OPENAI_API_KEY": "sk-x"}
    assert "EMBEDDINGS_MODEL" not in opening_of(tmp_path, 100, **provided)
