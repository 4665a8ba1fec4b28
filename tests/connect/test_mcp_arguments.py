"""What a question gives to an MCP tool."""

import pytest

from connect.frames import Question
from connect.mcp_arguments import MAX_SCHEMA_CHARS, BadArguments, read_arguments, text_property

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
    (ADD, asked('{"a": 1, "b": 2}'), {"a": 1, "b": 2}),
    (TWO_TEXTS, asked("{}"), {}),
    (NOTHING, asked("go"), {}),
    ({}, asked("go"), {}),
    ({}, asked("", {"data": {"any": 1}}), {"any": 1}),
    ({"type": "object", "properties": 7, "required": [[]]}, asked('{"a": 1}'), {"a": 1}),
    ({"properties": {"a": {"$ref": "https://example.org/schema"}}}, asked('{"a": 1}'), {"a": 1}),
    ({"properties": {"a": {"type": "no such type"}}}, asked('{"a": 1}'), {"a": 1}),
]


@pytest.mark.parametrize(("schema", "question", "arguments"), GIVEN)
def test_a_question_becomes_arguments(schema, question, arguments):
    assert read_arguments(question, schema) == arguments


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
    ({"$ref": "#", "properties": {"a": NUMBER, "b": NUMBER}}, asked("{}"), "nested too deeply"),
]


@pytest.mark.parametrize(("schema", "question", "flaw"), REFUSED)
def test_anything_else_says_what_the_tool_wants(schema, question, flaw):
    with pytest.raises(BadArguments) as refused:
        read_arguments(question, schema)
    assert f"no arguments of the tool: {flaw}.\n" in str(refused.value)
    assert '"properties":{' in str(refused.value)


def test_the_reply_names_the_text_property_and_is_bounded():
    large = {**SEARCH, "description": "x" * 2 * MAX_SCHEMA_CHARS}
    with pytest.raises(BadArguments) as refused:
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
    assert read_arguments(asked("", {"data": hostile}), schema) == hostile  # else it would take hours
