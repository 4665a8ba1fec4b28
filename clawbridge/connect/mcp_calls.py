"""From a question to the arguments of an MCP tool, from its result to parts of a reply, and the tool as a skill.

The module does no I/O.
"""

import json
import mimetypes
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from jsonschema import validators
from jsonschema.exceptions import SchemaError, UnknownType, ValidationError, best_match
from jsonschema.protocols import Validator
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    Tool,
)
from referencing import Registry
from referencing.exceptions import Unresolvable

from clawbridge.checks import is_base64, is_web_url
from clawbridge.connect.frames import Question
from clawbridge.connect.reply_parts import Artifact, Failed, ReplyPart

MAX_ERROR_CHARS = 300
MAX_SCHEMA_CHARS = 4_000
DEFINITIONS = ("#/$defs", "#/definitions")
VALUES = ("const", "enum", "default", "examples")  # the values of these keywords are no schemas
# The cost of these keywords depends on what the caller sends, without a bound: the server checks them.
LEFT_TO_THE_SERVER = (
    *("pattern", "patternProperties", "uniqueItems", "additionalProperties"),
    *("unevaluatedProperties", "unevaluatedItems"),
)

Schema = Mapping[str, Any]


class BadToolArguments(Exception):
    """The question holds no arguments of the tool; the text says what it wants, and is for the caller."""


def read_arguments(question: Question, schema: Schema) -> dict[str, Any]:
    """The arguments in a question: its data part, or else its text.

    Text becomes the one string that a schema requires, and is never read as JSON then.

    Raises:
        BadToolArguments: the question has no arguments, or the schema does not allow them.
    """
    parts = [part for part in question.parts if isinstance(part, Mapping)]
    data = [part["data"] for part in parts if "data" in part]
    if any("raw" in part or "url" in part for part in parts):
        _refuse("files cannot be given to it", schema)
    if len(data) > 1:
        _refuse("want one data part", schema)
    if not data and (name := text_property(schema)) is not None:
        arguments: Any = {name: question.text}
    elif not data and not schema.get("properties"):
        arguments = {}
    else:
        arguments = data[0] if data else _read_json(question.text, schema)
    if not isinstance(arguments, dict):
        _refuse("want a JSON object", schema)
    if flaw := _find_flaw(arguments, schema):
        _refuse(flaw, schema)
    return arguments


def text_property(schema: Schema) -> str | None:
    """The property that a plain text becomes: the only required one, or without any the only one of text."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return None
    texts = [name for name in properties if _is_text(properties[name], schema)]
    names = _list_in(schema, "required") or texts
    name = str(names[0]) if len(names) == 1 else ""
    return name if _is_text(properties.get(name), schema) else None


def _is_text(wanted: Any, schema: Schema) -> bool:
    """True if a property takes a text: also one of several types, as generators write what may be null."""
    if not isinstance(wanted, Mapping):
        return False
    if isinstance(ref := wanted.get("$ref"), str):
        place, _, name = ref.rpartition("/")
        shapes = schema.get(place.removeprefix("#/")) if place in DEFINITIONS else None
        wanted = shapes.get(name) if isinstance(shapes, Mapping) else None
        return isinstance(wanted, Mapping) and "string" in _types_of(wanted)
    choices = [*_list_in(wanted, "anyOf"), *_list_in(wanted, "oneOf")]
    return any("string" in _types_of(one) for one in (wanted, *choices) if isinstance(one, Mapping))


def _types_of(schema: Schema) -> list[Any]:
    return [schema["type"]] if isinstance(schema.get("type"), str) else _list_in(schema, "type")


def _list_in(schema: Schema, name: str) -> list[Any]:
    return found if isinstance(found := schema.get(name), list) else []


def describe_wanted(schema: Schema) -> str:
    """Instructions for the caller, with the schema."""
    name = text_property(schema)
    plain = f"A plain text becomes {name!r}. Or send" if name else "Send"
    return f"{plain} a JSON object, as data{'' if name else ' or as text'}, of this JSON Schema: {compact(schema)}"


def compact(schema: Schema) -> str:
    """A schema as JSON without spaces."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _refuse(flaw: str, schema: Schema) -> NoReturn:
    wanted = describe_wanted(schema)
    cut = f"{wanted[:MAX_SCHEMA_CHARS]}…" if len(wanted) > MAX_SCHEMA_CHARS else wanted
    raise BadToolArguments(f"These are no arguments of the tool: {flaw}.\n{cut}")


def _read_json(text: str, schema: Schema) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return _refuse("the text is not JSON", schema)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _find_flaw(arguments: dict[str, Any], schema: Schema) -> str:
    """The first argument that the schema does not allow; empty when no fault is known."""
    try:
        plain = validators.validator_for(schema, default=validators.Draft202012Validator)
        bounded = validators.extend(plain, dict.fromkeys(LEFT_TO_THE_SERVER, _pass))
        checked = bounded(_without_dialects(schema), registry=Registry())
        error = best_match(checked.iter_errors(arguments))
    except (SchemaError, UnknownType, Unresolvable, TypeError, AttributeError):
        return ""  # the schema is wrong, not the argument
    except RecursionError:
        return "nested too deeply"
    if error is None:
        return ""
    where = "" if error.json_path == "$" else f"{error.json_path.removeprefix('$.')}: "
    return f"{where}{error.message}"[:MAX_ERROR_CHARS]


def _without_dialects(schema: Any) -> Any:
    """A schema without `$schema`: at each, also at the one that `$ref` leads to, the library takes a validator
    of its own, without our limits.
    """
    if isinstance(schema, list):
        return [_without_dialects(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        name: value if name in VALUES else _without_dialects(value)
        for name, value in schema.items()
        if name != "$schema" or not isinstance(value, str)
    }


def _pass(validator: Validator, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    yield from ()


MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*", re.IGNORECASE)
MAX_NAME_CHARS = 200


def read_result(result: CallToolResult) -> Iterator[ReplyPart]:
    """The reply: texts as text, everything else as artifacts. A result that reports an error ends as failed."""
    texts = [text for block in result.content if (text := _text(block))]
    if result.is_error:
        yield Failed("\n".join(texts) or "the tool failed")
        return
    if texts:
        yield "\n".join(texts)
    for number, block in enumerate(result.content, 1):
        if (part := _file(block, number)) is not None:
            yield Artifact(artifact_id=f"result-{number}", parts=[part], name=str(part["filename"]))
    if _adds(result.structured_content, texts):
        part = {"data": result.structured_content, "mediaType": "application/json"}
        yield Artifact(artifact_id="result", parts=[part], name="Result")


def _text(block: ContentBlock) -> str:
    """The text of a block in words; empty for a file."""
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, ResourceLink):
        return "" if is_web_url(block.uri) else f"{block.name}: {block.uri}"
    if isinstance(block, EmbeddedResource) and not isinstance(block.resource, BlobResourceContents):
        return block.resource.text
    return "" if is_base64(_bytes_of(block)) else "(a file that is not valid base64 was left out)"


def _file(block: ContentBlock, number: int) -> dict[str, Any] | None:
    """A block as an A2A part with a file; None when its text says all."""
    if isinstance(block, ResourceLink):
        return _part(number, block.name, block.mime_type, url=block.uri) if is_web_url(block.uri) else None
    if isinstance(block, ImageContent | AudioContent):
        name, media_type = "", block.mime_type
    elif isinstance(block, EmbeddedResource):
        name, media_type = block.resource.uri.rpartition("/")[2], block.resource.mime_type or ""
    else:
        return None
    raw = _bytes_of(block)
    return _part(number, name, media_type, raw=raw) if raw and is_base64(raw) else None


def _part(number: int, name: str, media_type: str | None, **content: str) -> dict[str, Any]:
    known = media_type if media_type and MEDIA_TYPE.fullmatch(media_type) else ""
    ending = mimetypes.guess_extension(known) or ""
    part = {**content, "filename": name[:MAX_NAME_CHARS] or f"result-{number}{ending}"}
    return part | ({"mediaType": known[:MAX_NAME_CHARS]} if known else {})


def _bytes_of(block: ContentBlock) -> str:
    """The base64 of a block, empty for a block without."""
    if isinstance(block, ImageContent | AudioContent):
        return block.data
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, BlobResourceContents):
        return block.resource.blob
    return ""


def _adds(structured: Any, texts: list[str]) -> bool:
    """True if structured content is more than the one text, which servers wrap as `{"result": …}`."""
    if structured is None:
        return False
    try:
        as_json = json.dumps(structured, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    text = "\n".join(texts)
    return structured != {"result": text} and as_json != f'{{"result": {text}}}'


MAX_SKILL_ID_CHARS = 64
MAX_SKILL_NAME_CHARS = 120
MAX_DESCRIPTION_CHARS = 4_096


def describe_skill(tool: Tool) -> str:
    """The tool as a skill of the agent's card, in the lines that the hub's form reads."""
    title = tool.title or (tool.annotations.title if tool.annotations else None) or tool.name
    description = _one_block(_with_schema((tool.description or title).strip(), tool.input_schema))
    takes_text = text_property(tool.input_schema) or not tool.input_schema.get("properties")
    modes = ["text/plain"] if takes_text else []
    return "\n".join(
        (
            f"id: {_one_line(tool.name)[:MAX_SKILL_ID_CHARS]}",
            f"name: {_one_line(title)[:MAX_SKILL_NAME_CHARS]}",
            f"description: {description}",
            "tag: mcp",
            *(f"input: {mode}" for mode in [*modes, "application/json"]),
        )
    )


def _with_schema(description: str, schema: dict[str, Any]) -> str:
    """The description with the schema; what is too long is without notes, and at last cut."""
    for shown in (schema, _without_notes(schema)):
        text = f"{description}\nArguments, as a JSON Schema: {compact(shown)}"
        if len(text) <= MAX_DESCRIPTION_CHARS:
            return text
    return f"{text[: MAX_DESCRIPTION_CHARS - 1]}…"


def _without_notes(schema: Any) -> Any:
    """A schema without what is for readers: descriptions and titles are texts, properties of that name are not."""
    if isinstance(schema, list):
        return [_without_notes(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    notes = {name for name in ("description", "title") if isinstance(schema.get(name), str)}
    return {name: _without_notes(one) for name, one in schema.items() if name not in notes}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _one_block(text: str) -> str:
    """The text without empty lines; two spaces continue a value."""
    return "\n  ".join(line.rstrip() for line in text.splitlines() if line.strip())
