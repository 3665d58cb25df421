"""What the README says of small and free tiers is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent.fitting import Fitting
from agent.knowledge import load_knowledge
from agent.loop import Replica
from agent.model import ChatModel, Warming
from agent.persona import KNOWLEDGE_SHARE, leaves_out, persona
from agent.settings import Settings, load_settings
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


def is_warned_of(folder: Path, characters: int, **settings: str) -> tuple[bool, bool]:
    """Whether the start says that files are cut, and that no room is left for a talk."""
    (folder / "notes.md").write_text("# Ada Lovelace\n\n" + "The engine weaves. " * (characters // 19), "utf-8")
    hands = toolkit(outbox=None)  # pyright: ignore[reportArgumentType]
    read, knowledge = load_settings(settings), load_knowledge(folder)
    text = persona(knowledge, "Ada Lovelace", hands.tools.values(), read.context_tokens)
    replica = Replica(Warming("unasked", unasked), hands, text, max_turns=read.max_turns)
    fitting = Fitting(replica, read.context_tokens, read.max_output_tokens, can_write=True)
    return leaves_out(knowledge, read.context_tokens), fitting.persona_is_too_large


def unasked() -> ChatModel:
    raise AssertionError("no model is asked here")


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
    assert is_warned_of(tmp_path, characters, **settings) == (False, False)
    assert is_warned_of(tmp_path, 2 * characters, **settings)[1]


def test_the_share_of_the_files_is_as_the_passage_says() -> None:
    assert f"{KNOWLEDGE_SHARE:.0%} of `CONTEXT_TOKENS`" in passage()
