"""The formats that callers demand of replies: what a body may hold, what the agent reads, the JSON in a reply."""

import json
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from kit import strict_json
from kit.strict_json import BadShape, NotJson

JSON_ALONE = "Answer with JSON alone: no words before or after it."
ANY_OBJECT = "The JSON is one object."
OF_SCHEMA = "The JSON has to be valid by this JSON Schema:"


class TextFormat(Struct, frozen=True, tag_field="type", tag="text"):
    """Any text."""


class ObjectFormat(Struct, frozen=True, tag_field="type", tag="json_object"):
    """A JSON object."""


class NamedSchema(Struct, frozen=True):
    """A JSON Schema. `description`: what the reply is for. `strict`: has no effect, replies are always checked."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
    schema: dict[str, Any]
    description: Annotated[str, Meta(max_length=1_000)] | None = None
    strict: bool | None = None


class SchemaFormat(Struct, frozen=True, tag_field="type", tag="json_schema"):
    """JSON that is valid by a schema, in completions."""

    json_schema: NamedSchema


class FlatSchemaFormat(NamedSchema, frozen=True, tag_field="type", tag="json_schema"):
    """JSON that is valid by a schema, in responses."""


AnyFormat = TextFormat | ObjectFormat | SchemaFormat | FlatSchemaFormat


class ReplyFormat(NamedTuple):
    """JSON that the reply has to be. `schema`: None for any object; `field`: the field of the body that has it."""

    field: str
    schema: dict[str, Any] | None = None
    description: str = ""

    @property
    def instructions(self) -> str:
        """The text that tells the agent the format."""
        if self.schema is None:
            return f"{JSON_ALONE} {ANY_OBJECT}"
        return "\n".join(filter(None, [JSON_ALONE, self.description, OF_SCHEMA, compact(self.schema)]))


def read_format(given: AnyFormat | None, field: str) -> ReplyFormat | None:
    """The format in a field of a body; None when any text will do."""
    match given:
        case ObjectFormat():
            return ReplyFormat(field)
        case SchemaFormat(json_schema=named):
            return ReplyFormat(f"{field}.json_schema.schema", named.schema, named.description or "")
        case FlatSchemaFormat():
            return ReplyFormat(f"{field}.schema", given.schema, given.description or "")
    return None


def compact(value: object) -> str:
    """A value as JSON without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_json(text: str) -> Any:
    """The value of a bare text.

    Raises:
        UnreadableText: it is not JSON, or not such that a sound program sends it.
    """
    try:
        return strict_json.read(text)
    except (NotJson, BadShape) as wrong:
        raise type(wrong)(f"the reply is not JSON alone: {wrong}") from None
