"""What holds for every tool: what the model reads, what the owner gets, and that nothing else comes out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.toolkit import ToolError
from store.records import Question
from tests.tool_house import House, call, opened, turn, visit
from tools.emails import Address, check
from tools.excerpt import excerpt
from tools.find_emails import address_key
from tools.gather_user_details import decide


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with opened(tmp_path) as house:
        yield house


# Questions


async def test_a_question_is_stored_and_alerted_once(house: House) -> None:
    here = visit("Do you ski?")
    assert await house.ask(here, "  Does Ada ski? ") == "ok"
    assert await house.ask(here, "does ada ski") == "ok"
    assert await house.store.questions() == [Question("conversation-1", "Does Ada ski?")]
    (alert,) = await house.alerts()
    assert "Does Ada ski?" in alert


# What the model reads


@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("gather_user_details", {"notes": "A job."}, "email"),
        ("gather_user_details", {"email": "jane@acme.com"}, "notes"),
        ("gather_user_details", {"email": "jane@acme.com", "notes": "x" * 4001}, "notes"),
        ("gather_user_details", {"email": ["jane@acme.com"], "notes": "A job."}, "email"),
        ("inform_unknown", {}, "question"),
        ("inform_unknown", {"question": "  "}, "question"),
        ("inform_unknown", {"question": "x" * 1001}, "question"),
    ],
)
async def test_a_mendable_call_is_told_the_field(
    house: House, name: str, arguments: dict[str, Any], field: str
) -> None:
    answer = (await house.tools.call(call(name, arguments), visit("jane@acme.com"))).content
    assert answer.startswith("ERROR: The call was not carried out.")
    assert f"{field}: " in answer
    assert await house.store.contacts() == []
    assert await house.store.questions() == []


def test_each_field_and_each_tool_is_described(house: House) -> None:
    required: dict[str, list[str]] = {}
    for schema in house.tools.schemas:
        function = schema["function"]
        assert "Do not call it" in function["description"]
        properties = function["parameters"]["properties"]
        assert all(field["type"] == "string" and len(field["description"]) > 40 for field in properties.values())
        required[function["name"]] = function["parameters"]["required"]
    assert required == {"gather_user_details": ["email", "notes"], "inform_unknown": ["question"]}


def test_the_page_has_a_line_for_each_tool(house: House) -> None:
    assert [tool.done for tool in house.tools.tools.values()] == ["Passed your details on", "Passed your question on"]
    assert all(tool.working.endswith("…") for tool in house.tools.tools.values())


# The excerpt


def test_the_excerpt_is_the_last_three_lines() -> None:
    here = visit("third", turn("zeroth", text="nothing"), turn("first", text="second"))
    assert excerpt(here) == ("Visitor: first", "Replica: second", "Visitor: third")


def test_a_long_or_many_lined_text_becomes_one_short_line() -> None:
    (line,) = excerpt(visit("one\n\ntwo " + "x" * 100_000))
    assert line.startswith("Visitor: one two xxx")
    assert line.endswith("…")
    assert len(line) == len("Visitor: ") + 200


def test_an_answer_that_nobody_saw_is_left_out() -> None:
    assert excerpt(visit("second", turn("first", text=""))) == ("Visitor: first", "Visitor: second")


# Properties

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
EMAILS = st.sampled_from(
    [
        "jane@acme.com",
        "xjane@acme.com",
        "jane@acme.community",
        "jane@gmial.com",
        "jane@gmail.com",
        "jane@acme,com",
        "a@b",
    ]
)
FIELDS = st.fixed_dictionaries({}, optional={name: EMAILS | JSON for name in ("email", "notes", "name", "question")})


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(["gather_user_details", "inform_unknown", "other"]), arguments=FIELDS, message=EMAILS)
async def test_any_json_to_any_tool_is_a_result_or_a_tool_error(
    house: House, name: str, arguments: dict[str, Any], message: str
) -> None:
    try:
        result = await house.tools.call(call(name, arguments), visit(message))
    except ToolError:
        assert name == "other"
    else:
        assert result.content == "ok" or result.content.startswith(("ERROR: ", "NOT STORED"))


@given(st.lists(EMAILS, max_size=4), st.lists(EMAILS, min_size=1, max_size=3))
def test_every_accepted_address_stood_in_the_visitor_s_text(written: list[str], passed: list[str]) -> None:
    decided = decide(check(" ".join(passed)), visit(" ".join(written)))
    if isinstance(decided, Address):
        assert address_key(decided.email) in written
