"""Calls that a model wrote into its text instead of the field for them."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any, cast

from agent.wire.loose_json import dumps, end_of_value, loads

Call = tuple[str, str]
"""Name and arguments (JSON text, as far as the model wrote it)."""

UNREADABLE = "unreadable call"
"""Stands for the name of a call that is marked as one and cannot be read: no tool is called so."""

NAME_KEYS = ("name", "function", "tool", "tool_name", "function_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input")
CALL_KEYS = (*NAME_KEYS, *_ARGUMENT_KEYS, "tool_calls", "type", "id")
"""What a call in JSON may begin with."""

_TOKENS = re.compile(r"<[|｜][^<>]{0,40}[|｜]>|```(?:json)?|\[/?TOOL_CALLS\]")
_NAMED = re.compile(
    r"(?:function\s{1,20})?(?:functions\.)?(?P<name>[A-Za-z_][\w.-]{0,63})(?::\d{1,9})?"
    r"\s{0,20}(?:\[CALL_ID\]\s{0,20}[\w-]{1,64}\s{0,20})?(?:\[ARGS\])?\s{0,20}(?=\{)"
)
_BEGINNING = re.compile(rf"{_NAMED.pattern}|(?=[{{\[])")
_NAMES_IN = re.compile(rf"""["'](?:{"|".join(NAME_KEYS)})["']\s*:\s*["']([^"']*)["']""")

_XML_CALL = re.compile(
    r"""<(?:function|invoke|tool)(?:=|\s+name\s*=)\s*["']?(?P<name>[\w.-]+)["']?\s*>"""
    r"""(?P<body>(?:(?!<(?:function|invoke)[= ]).)*?)(?:</(?:function|invoke|tool)>|(?=<(?:function|invoke)[= ])|\Z)""",
    re.DOTALL | re.IGNORECASE,
)
_XML_FIELD = re.compile(
    r"""<parameter(?:=|\s+name\s*=)\s*["']?(?P<name>[\w.-]+)["']?[^>]*>(?P<value>.*?)</parameter>"""
    r"""|<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<of_key>.*?)</arg_value>""",
    re.DOTALL | re.IGNORECASE,
)
_FIRST_WORD = re.compile(r"\s*([\w.-]+)\s*(?=<arg_key>)")


def tagged_calls(body: str) -> list[Call]:
    """The calls in what a model marked as calls; one that cannot be read, where there is none."""
    if found := [_xml_call(call["name"], call["body"]) for call in _XML_CALL.finditer(body)]:
        return found
    if word := _FIRST_WORD.match(body):
        return [_xml_call(word[1], body[word.end() :])]
    return _json_calls(_TOKENS.sub(" ", body)) or [(UNREADABLE, body)]


def untagged_calls(text: str, names: Container[str]) -> list[Call] | None:
    """The calls that a piece of JSON describes, if it describes nothing but calls of tools that were offered.

    Returns:
        None when the text is something else.
    """
    try:
        calls = _calls_of(loads(text), strict=True)
    except (ValueError, RecursionError):
        return [(UNREADABLE, text)] if names_a_tool(text, names) else None
    return calls if calls and all(name in names for name, _ in calls) else None


def names_a_tool(text: str, names: Container[str]) -> bool:
    """Somewhere in this half of a call stands the name of a tool that was offered."""
    return any(_short(name) in names for name in _NAMES_IN.findall(text))


def _json_calls(body: str) -> list[Call]:
    calls: list[Call] = []
    position = 0
    while found := _BEGINNING.search(body, position):
        end = end_of_value(body, found.end())
        written = body[found.end() : end]
        position = len(body) if end is None else end
        calls += [(_short(found["name"]), written)] if found["name"] else _read(written)
    return calls


def _read(written: str) -> list[Call]:
    try:
        return _calls_of(loads(written), strict=False) or [(UNREADABLE, written)]
    except (ValueError, RecursionError):
        return [(UNREADABLE, written)]


def _calls_of(value: Any, *, strict: bool) -> list[Call]:
    """Every call in a value; none at all when a part of it is something else.

    Args:
        value: decoded JSON.
        strict: it has to say what its arguments are.
    """
    calls: list[Call] = []
    for item in cast(list[Any], value if isinstance(value, list) else [value]):
        found = _calls_of_object(cast(dict[str, Any], item), strict=strict) if isinstance(item, dict) else []
        if not found:
            return []
        calls += found
    return calls


def _calls_of_object(item: dict[str, Any], *, strict: bool) -> list[Call]:
    if isinstance(item.get("tool_calls"), list):
        return _calls_of(item["tool_calls"], strict=strict)
    if isinstance(item.get("function"), dict):
        item = cast(dict[str, Any], item["function"])
    name = next((item[key] for key in NAME_KEYS if isinstance(item.get(key), str)), "")
    given: list[Any] = [item[key] for key in _ARGUMENT_KEYS if key in item]
    if not name or (strict and not (given and isinstance(given[0], dict | str | None))):
        return []
    if not given:
        return [(_short(name), "{}")]
    return [(_short(name), given[0] if isinstance(given[0], str) else dumps(given[0]))]


def _xml_call(name: str, body: str) -> Call:
    fields = {
        (found["name"] or found["key"]).strip(): (found["value"] or found["of_key"] or "").strip()
        for found in _XML_FIELD.finditer(body)
    }
    rest = _XML_FIELD.sub("", body).strip()
    return _short(name), rest if rest and not (fields and rest.startswith("</")) else dumps(fields)


def _short(name: str) -> str:
    return name.removeprefix("functions.")
