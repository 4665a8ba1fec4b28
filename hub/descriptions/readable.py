"""JSON Schema in a few words: the fields of an object one below the other, a type as text, a value that fits."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hub.descriptions.shapes import Json

DEEPEST = 4
VARIANTS = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One parameter, body field or answer field. `depth`: how far inside others it stands.

    `place`, `choices`: of a parameter: path, query or header; and the only values that it takes.
    """

    name: str
    type: str
    required: bool = False
    text: str = ""
    depth: int = 0
    place: str = ""
    choices: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One object that may come, by its name where others may come in its place."""

    title: str = ""
    fields: list[Field]


def shapes_of(document: Json, schema: Json) -> list[Shape]:
    """An object, or all of those of which any may come."""
    shapes = list(_alternatives(document, schema, ""))
    return shapes if len(shapes) > 1 else [Shape(fields=one.fields) for one in shapes if one.fields]


def _alternatives(document: Json, schema: Json, family: str) -> Iterator[Shape]:
    found, family = _resolved(document, schema), schema.get("title", family)
    variants = _variants(found)
    for variant in variants:
        yield from _alternatives(document, variant, family)
    if not variants:
        method = type_of(document, found.get("properties", {}).get("method", schema)).strip('"')
        title = ", ".join(part for part in (method, family) if part)
        yield Shape(title=title, fields=list(fields_of(document, schema)))


def fields_of(document: Json, schema: Json, depth: int = 0) -> Iterator[Field]:
    """The fields of an object, those of objects inside it after each."""
    found = _resolved(document, schema)
    if found.get("type") == "array":
        yield from fields_of(document, found.get("items", {}), depth)
    for variant in _variants(found):
        yield from fields_of(document, variant, depth)
    required = found.get("required", ())
    for name, inner in found.get("properties", {}).items():
        text = plain(inner.get("description", ""))
        yield Field(name=name, type=type_of(document, inner), required=name in required, text=text, depth=depth)
        if depth < DEEPEST:
            yield from fields_of(document, inner, depth + 1)


def type_of(document: Json, schema: Json) -> str:
    """A type in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2].rpartition(".")[2]
    if variants := _variants(schema):
        return " or ".join(type_of(document, variant) for variant in variants)
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {type_of(document, schema.get('items', {}))}"
    default = schema.get("default")
    told = "" if default in (None, "") else f", default {json.dumps(default)}"
    return str(schema.get("format", kind)) + _bounds(schema) + told


def plain(text: str) -> str:
    """A docstring's line without its marks of code."""
    return text.replace("`", "")


def _bounds(schema: Json) -> str:
    least = schema.get("minimum", schema.get("minLength"))
    most = schema.get("maximum", schema.get("maxLength"))
    if least is None and most is None:
        return ""
    unit = " characters" if "maxLength" in schema or "minLength" in schema else ""
    if most is None:
        return f", at least {least}{unit}"
    return f", {least} to {most}{unit}" if least is not None else f", at most {most}{unit}"


def _resolved(document: Json, schema: Json) -> Json:
    while "$ref" in schema:
        found: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def example(document: Json, schema: Json, depth: int = 0) -> Any:
    """A value a schema takes, with the fields it requires."""
    found = _resolved(document, schema)
    if variants := _variants(found):
        return example(document, variants[0], depth)
    if "const" in found or "enum" in found:
        return found.get("const", found.get("enum", [""])[0])
    if found.get("type") == "object":
        inner = found.get("properties", {}) if depth < DEEPEST else {}
        return {
            name: example(document, inner[name], depth + 1) for name in found.get("required", ()) if name in inner
        }
    if found.get("type") == "array":
        return [example(document, found.get("items", {}), depth + 1)] if depth < DEEPEST else []
    return {"integer": 1, "number": 1, "boolean": False, "null": None}.get(str(found.get("type")), "…")


def _variants(schema: Json) -> list[Json]:
    return [variant for name in VARIANTS for variant in schema.get(name, ())]
