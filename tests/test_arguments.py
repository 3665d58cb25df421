"""Whatever a model sends as arguments, a tool runs on what was meant, or the model reads what to mend."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from agent.conversation import Conversation, ToolCall, ToolResult
from agent.toolkit import Arguments, Tool, ToolError, Toolkit, Visit
from agent.wire.arguments import Unreadable, read_arguments

VISIT = Visit("c1", Conversation(), "Hi")


class One(Arguments):
    """One field."""

    question: str


class Many(Arguments):
    """Several fields of several kinds."""

    email: str
    count: int = Field(default=1, ge=0)
    tags: tuple[str, ...] = ()
    extra: dict[str, float] = Field(default_factory=dict[str, float])


async def _repeat(arguments: One | Many, visit: Visit) -> str:
    return arguments.model_dump_json()


TOOLKIT = Toolkit(Tool("one", One, _repeat, "", ""), Tool("many", Many, _repeat, "", ""))


async def run(name: str, arguments: str) -> Any:
    return (await TOOLKIT.call(ToolCall("c", name, arguments), VISIT)).content


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from(["\ud83d", "1e999"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["question", "email", "count", "tags", "extra", "arguments", ""]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
SPOILT = st.tuples(JSON.map(json.dumps), st.integers(0, 60), st.text(alphabet="{}[]\",:\\'`/*# a", max_size=3))


@given(
    st.sampled_from(["one", "many", "none"]),
    JSON.map(json.dumps)
    | JSON.map(lambda value: json.dumps(value, ensure_ascii=False))
    | JSON.map(lambda value: json.dumps(json.dumps(value)))
    | JSON.map(str)
    | SPOILT.map(lambda spoilt: spoilt[0][: spoilt[1]] + spoilt[2] + spoilt[0][spoilt[1] :])
    | st.text(),
)
def test_any_arguments_to_any_tool_give_a_result_or_are_taken_back(name: str, arguments: str) -> None:
    try:
        result = asyncio.run(TOOLKIT.call(ToolCall("c", name, arguments), VISIT))
    except ToolError:
        return
    assert isinstance(result, ToolResult)
    result.content.encode()


@pytest.mark.parametrize(
    ("arguments", "question"),
    [
        ('"Do you play?"', "Do you play?"),
        ('["Do you play?"]', "Do you play?"),
        ("42", "42"),
        ('{"question": 42}', "42"),
        ('{"question": 4.5}', "4.5"),
        ('{"question": "\\ud83d\\ude00 \\ud83d"}', "😀 \ufffd"),
        ('{"question": "a\nb"}', "a\nb"),
        ("{'question': 'it\\'s \"it\"'}", 'it\'s "it"'),
        ('{"question": "see https://a.b/c, or # 3, /* 4 */"}', "see https://a.b/c, or # 3, /* 4 */"),
        ('{"question": "x", "mood": "good", "arguments": {"question": "y"}}', "x"),
        ('{"parameters": {"question": "y"}}', "y"),
    ],
)
async def test_what_was_meant_is_read(arguments: str, question: str) -> None:
    assert json.loads(await run("one", arguments)) == {"question": question}


@pytest.mark.parametrize(
    "arguments", ["", "null", "{}", "[]", '"jo"', "[1, 2]", "true", '{"email": null}', '[{"a": 1}, {}]']
)
async def test_the_missing_field_is_named(arguments: str) -> None:
    assert "email" in await run("many", arguments)


async def test_the_wrong_field_is_named() -> None:
    answer = await run("many", '{"email": ["a"], "count": -1, "tags": "x"}')
    assert all(name in answer for name in ("email", "count", "tags"))


@pytest.mark.parametrize(
    "arguments",
    ['{"question": "te', '{"question": "te"', '{"question', '"{\\"question\\": \\"te', '"{\\"question\\": \\"te"', "te",
     '{"question": "a"} {"question": "b"}', "[" * 100_000, '{"question": ' * 5_000, "```json\n{\"question\": \"te"],
)  # fmt: skip
async def test_what_could_only_be_guessed_is_taken_back(arguments: str) -> None:
    with pytest.raises(ToolError, match="not JSON"):
        await run("one", arguments)
    with pytest.raises(Unreadable):
        read_arguments(arguments)
