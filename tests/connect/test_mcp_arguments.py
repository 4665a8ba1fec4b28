"""The arguments of an MCP tool from a question, its results as a reply, and its skill."""

import pytest
from mcp_types import CallToolResult, ImageContent, TextContent, Tool

from agents.pages.card_fields import SkillsField
from clawbridge.connect.frames import Question
from clawbridge.connect.mcp_calls import (
    MAX_DESCRIPTION_CHARS,
    MAX_SCHEMA_CHARS,
    BadToolArguments,
    describe_skill,
    read_arguments,
    read_result,
    text_property,
)
from clawbridge.connect.reply_parts import Artifact, Failed

STRING, NUMBER = {"type": "string"}, {"type": "integer"}
SEARCH = {"type": "object", "properties": {"query": STRING, "limit": NUMBER}, "required": ["query"]}
ADD = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]}
TWO_TEXTS = {"type": "object", "properties": {"a": STRING, "b": STRING}}
NOTHING = {"type": "object", "properties": {}}
FILE = {"raw": "YQ==", "mediaType": "text/plain"}


def asked(text="", *parts):
    return Question(chat_id="c", text=text, parts=list(parts))


GIVEN = [
    (SEARCH, asked("cats"), {"query": "cats"}),
    (SEARCH, asked('{"query": "cats", "limit": 2}'), {"query": '{"query": "cats", "limit": 2}'}),
    (
        SEARCH,
        asked("as data", {"text": "as data"}, {"data": {"query": "cats", "limit": 2}}),
        {"query": "cats", "limit": 2},
    ),
    ({"type": "object", "properties": {"query": STRING}}, asked("cats"), {"query": "cats"}),
    ({"type": "object", "properties": {"limit": NUMBER, "query": STRING}}, asked("cats"), {"query": "cats"}),
    ({"properties": {"query": {"anyOf": [STRING, {"type": "null"}]}}}, asked("cats"), {"query": "cats"}),
    ({"properties": {"query": {"type": ["null", "string"]}}}, asked("cats"), {"query": "cats"}),
    (
        {"properties": {"query": {"$ref": "#/$defs/Word"}}, "$defs": {"Word": {"type": "string"}}},
        asked("cats"),
        {"query": "cats"},
    ),
    (
        {"properties": {"query": {"const": {"$schema": "x"}}}},
        asked('{"query": {"$schema": "x"}}'),
        {"query": {"$schema": "x"}},
    ),
    (ADD, asked('{"a": 1, "b": 2}'), {"a": 1, "b": 2}),
    (TWO_TEXTS, asked("{}"), {}),
    (NOTHING, asked("go"), {}),
    ({}, asked("go"), {}),
    ({}, asked("", {"data": {"any": 1}}), {"any": 1}),
    ({"type": "object", "properties": 7, "required": [[]]}, asked('{"a": 1}'), {"a": 1}),
    ({"properties": {"a": {"$ref": "https://example.org/schema"}}}, asked('{"a": 1}'), {"a": 1}),
    ({"properties": {"a": {"type": "no such type"}}}, asked('{"a": 1}'), {"a": 1}),
]


def test_a_question_becomes_arguments():
    assert [read_arguments(question, schema) for schema, question, _ in GIVEN] == [wanted for *_, wanted in GIVEN]


REFUSED = [
    (SEARCH, asked("", {"data": {"limit": 2}}), "'query' is a required property"),
    (SEARCH, asked("", {"data": {"query": "x", "limit": "2"}}), "limit: '2' is not of type 'integer'"),
    (SEARCH, asked("", {"data": ["cats"]}), "want a JSON object"),
    (SEARCH, asked("", {"data": {}}, {"data": {}}), "want one data part"),
    (SEARCH, asked("cats", {"text": "cats"}, FILE), "files cannot be given to it"),
    (ADD, asked("1 and 2"), "the text is not JSON"),
    (ADD, asked('{"a": NaN, "b": 1}'), "the text is not JSON"),
    (ADD, asked("[" * 100_000), "the text is not JSON"),
    (ADD, asked("[1, 2]"), "want a JSON object"),
    (TWO_TEXTS, asked("cats"), "the text is not JSON"),
    ({**SEARCH, "required": ["limit"]}, asked("cats"), "the text is not JSON"),
    ({"$ref": "#", "properties": {"a": NUMBER, "b": NUMBER}}, asked("{}"), "nested too deeply"),
]


def test_anything_else_says_what_the_tool_wants(subtests):
    for schema, question, flaw in REFUSED:
        with subtests.test(question=question, flaw=flaw):
            with pytest.raises(BadToolArguments) as refused:
                read_arguments(question, schema)
            assert f"no arguments of the tool: {flaw}.\n" in str(refused.value)
            assert '"properties":{' in str(refused.value)


def test_the_reply_names_the_text_property_and_is_bounded():
    large = {**SEARCH, "description": "x" * 2 * MAX_SCHEMA_CHARS}
    with pytest.raises(BadToolArguments) as refused:
        read_arguments(asked("", {"data": {"query": 7}}), large)
    assert "A plain text becomes 'query'. Or send a JSON object, as data," in str(refused.value)
    assert len(str(refused.value)) < MAX_SCHEMA_CHARS + 400
    assert text_property(ADD) is None


def test_what_a_caller_sends_costs_little_to_check():
    schema = {
        "type": "object",
        "properties": {"word": {"type": "string", "pattern": "^(a+)+$"}, "list": {"uniqueItems": True}},
        "patternProperties": {"^(b+)+$": NUMBER},
        "additionalProperties": False,
    }
    hostile = {"word": "a" * 60 + "!", "list": [{} for _ in range(100_000)], "b" * 60 + "!": 1}
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    nested = {"properties": {"in": {**schema, **dialect}}}
    referring = {**dialect, **schema, "properties": {**schema["properties"], "in": {"$ref": "#"}}}
    for checked, given in ((schema, hostile), (nested, {"in": hostile}), (referring, {"in": hostile})):
        assert read_arguments(asked("", {"data": given}), checked) == given  # else it would take hours


def make_result(*content, **more):
    return CallToolResult(content=list(content), **more)


A, B = TextContent(text="a"), TextContent(text="b")
BROKEN = ImageContent(data="a", mime_type="image/png")
ODD = ImageContent(data="YQ==", mime_type="no media type")
RESULTS = [
    (make_result(), []),
    (make_result(A, B), ["a\nb"]),
    (make_result(A, structured_content={"result": "a"}), ["a"]),
    (make_result(TextContent(text="5"), structured_content={"result": 5}), ["5"]),
    (make_result(A, structured_content={"n": float("nan")}), ["a"]),
    (make_result(BROKEN), ["(a file that is not valid base64 was left out)"]),
    (
        make_result(ODD),
        [Artifact(artifact_id="result-1", parts=[{"raw": "YQ==", "filename": "result-1"}], name="result-1")],
    ),
    (make_result(A, ODD, is_error=True), [Failed("a")]),
    (make_result(is_error=True), [Failed("the tool failed")]),
]


def test_a_result_becomes_parts_of_a_reply():
    assert [list(read_result(result)) for result, _ in RESULTS] == [parts for _, parts in RESULTS]


def test_a_skill_with_a_long_schema_loses_its_notes_and_then_its_end():
    long = {"type": "string", "description": "x" * MAX_DESCRIPTION_CHARS}
    noted = {"type": "object", "properties": {"description": long}}
    wide = {"type": "object", "properties": {f"property_{number}": STRING for number in range(500)}}
    texts = "\n\n".join(
        describe_skill(Tool(name=name, description="One.\n\nTwo.", input_schema=schema))
        for name, schema in (("noted", noted), ("wide", wide))
    )
    without_notes, cut = (skill["description"] for skill in SkillsField().clean(texts))
    start = "One.\nTwo.\nArguments, as a JSON Schema: "
    assert without_notes == start + '{"type":"object","properties":{"description":{"type":"string"}}}'
    assert cut.startswith(start)
    assert cut.endswith("…")
    assert len(cut) <= MAX_DESCRIPTION_CHARS
