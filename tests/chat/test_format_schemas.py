"""Schemas that callers send: which are refused, what is checked, and that the work is bounded."""

import time
from typing import Any

import pytest

from kit import json_schemas as schemas
from kit.json_schemas import find_flaw, find_schema_flaw

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
SLOW = "(a+)+$"
HOSTILE_TEXT = "a" * 40 + "b"


def doubling(levels: int) -> dict[str, Any]:
    """A schema that applies its last definition 2**levels times."""
    names = [f"#/$defs/d{level + 1}" for level in range(levels)]
    each: dict[str, Any] = {f"d{level}": {"allOf": [{"$ref": names[level]}] * 2} for level in range(levels)}
    return {"$defs": each | {f"d{levels}": {"type": "object"}}, "$ref": "#/$defs/d0"}


UNSOUND: list[tuple[dict[str, Any], str]] = [
    ({"type": "text"}, "'text'"),
    ({"properties": []}, "properties"),
    ({"$schema": DRAFT_7, "required": "a"}, "required"),
    ({"$ref": "file:///etc/passwd"}, "inside the schema"),
    ({"properties": {"a": {"$ref": "other.json#/a"}}}, "inside the schema"),
    ({"$ref": "#/$defs/absent"}, "no such place"),
    ({"$ref": "#"}, "without end"),
    ({"properties": {"a": {"$schema": DRAFT_7}}}, "$schema"),
    ({"description": "x" * 20_000}, "characters"),
    ({"allOf": [{}] * 2_001}, "objects"),
]


@pytest.mark.parametrize(("schema", "named"), UNSOUND, ids=[named for _, named in UNSOUND])
def test_an_unsound_schema_is_refused(schema: dict[str, Any], named: str) -> None:
    assert named in find_schema_flaw(schema)


SOUND: list[tuple[dict[str, Any], Any, Any]] = [
    ({"type": "object"}, {}, []),
    ({"$schema": DRAFT_7, "definitions": {"n": {"type": "null"}}, "$ref": "#/definitions/n"}, None, 1),
    (
        {
            "$defs": {"tree": {"properties": {"next": {"$ref": "#/$defs/tree"}}, "type": "object"}},
            "$ref": "#/$defs/tree",
        },
        {"next": {"next": {}}},
        {"next": {"next": 1}},
    ),
    ({"properties": {"$ref": {"type": "string"}}, "additionalProperties": False}, {"$ref": "a"}, {"b": 1}),
    ({"anyOf": [{"type": "null"}, {"enum": ["a"]}]}, "a", "b"),
]


@pytest.mark.parametrize(("schema", "good", "bad"), SOUND)
def test_a_value_is_checked(schema: dict[str, Any], good: Any, bad: Any) -> None:
    assert (find_schema_flaw(schema), find_flaw(good, schema)) == ("", "")
    assert find_flaw(bad, schema)


SLOW_SCHEMAS: list[tuple[dict[str, Any], Any]] = [
    ({"pattern": SLOW}, HOSTILE_TEXT),
    ({"$schema": DRAFT_7, "properties": {"a": {"$ref": "#"}}, "pattern": SLOW}, {"a": HOSTILE_TEXT}),
    ({"patternProperties": {SLOW: False}, "additionalProperties": False}, {HOSTILE_TEXT: 1}),
]


@pytest.mark.parametrize(("schema", "value"), SLOW_SCHEMAS)
def test_no_regular_expression_of_a_caller_runs(schema: dict[str, Any], value: Any) -> None:
    begun = time.thread_time()
    assert (find_schema_flaw(schema), find_flaw(value, schema)) == ("", "")
    assert time.thread_time() - begun < schemas.MAX_CPU_S


def test_a_check_that_takes_too_long_is_given_up() -> None:
    begun = time.thread_time()
    assert "too long" in find_schema_flaw(doubling(20))
    assert time.thread_time() - begun < 2 * schemas.MAX_CPU_S


def test_a_schema_that_finds_errors_without_end_is_refused_before_they_fill_the_memory() -> None:
    """It would be checked in less than half a second."""
    levels = 10  # 2,047 errors
    schema = doubling(levels)
    for level in range(levels):
        inner = schema["$defs"][f"d{level}"]
        inner["anyOf"] = inner.pop("allOf")
    schema["$defs"] |= {f"d{levels}": {"not": {}}}
    assert "too long" in find_schema_flaw(schema)
    assert "too long" not in find_schema_flaw({"anyOf": [{"not": {}}] * 100})
