"""The documents as the page shows them: calls and frames with their fields one below the other, types as text."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.conf import settings

from gateway.wire.errors import GatewayErrorCode
from hub.descriptions.asyncapi import ENVELOPE, ERROR, GATEWAY_SOCKET
from hub.descriptions.schemas import Json

TITLES = {"receive": "From the client", "send": "From the hub"}

SOCKETS = "sockets"
GATEWAY = "a2a-v1"
A2A = ("a2a", "a2a-http")
JSON_TYPE = "application/json"
METHODS = ("get", "post", "put", "patch", "delete")
DEEPEST = 4
VARIANTS = ("anyOf", "oneOf", "allOf")


class DescribedField(NamedTuple):
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


class DescribedShape(NamedTuple):
    """One possible object, with its name if there are several."""

    title: str
    fields: list[DescribedField]


def operations_of(document: Json) -> Iterator[tuple[str, str, Json]]:
    """Path, method and operation of every call of an OpenAPI document."""
    for path, operations in document["paths"].items():
        yield from ((path, method, operations[method]) for method in METHODS if method in operations)


def calls_by_tag(document: Json) -> dict[str, list[Json]]:
    """The operations of an OpenAPI document as the page shows them, by their tag."""
    by_tag: dict[str, list[Json]] = {}
    for path, method, operation in operations_of(document):
        by_tag.setdefault(operation["tags"][0], []).append(_show_call(document, path, method, operation))
    return dict(sorted(by_tag.items()))


def _show_call(document: Json, path: str, method: str, operation: Json) -> Json:
    """One operation. `can_try`: whether the page has a form for it; `example`: the JSON to begin with."""
    content: Json = operation.get("requestBody", {}).get("content", {JSON_TYPE: {}})
    body: Json = next(iter(content.values())).get("schema", {})
    sample = example(document, body) if body else None
    return {
        "name": operation["operationId"],
        "method": method.upper(),
        "path": path,
        "summary": plain(operation["summary"]),
        "text": plain(operation.get("description", "")),
        "credentials": " or ".join(name for one in operation.get("security", ()) for name in one),
        "parameters": [_show_parameter(document, one) for one in operation.get("parameters", ())],
        "bodies": shapes_of(document, body) if body else [],
        "answers": [_show_answer(document, *answer) for answer in operation["responses"].items()],
        "curl": _show_curl(path, method, json.dumps(sample) if body else "", bool(operation.get("security"))),
        "can_try": JSON_TYPE in content and operation["tags"][0] not in A2A,
        "example": json.dumps(sample, indent=2, ensure_ascii=False) if body else "",
    }


def _show_parameter(document: Json, one: Json) -> DescribedField:
    place = "" if one["in"] == "query" else f"in the {one['in']}"
    return DescribedField(
        name=one["name"],
        type=type_of(document, one["schema"]),
        required=one.get("required", False),
        text=plain("; ".join(filter(None, (place, one.get("description", ""))))),
        place=one["in"],
        choices=one["schema"].get("enum", ()),
    )


def _show_answer(document: Json, status: str, answer: Json) -> Json:
    content = answer.get("content", {})
    schema = next(iter(content.values()))["schema"] if content else {}
    return {
        "status": status,
        "text": plain(answer["description"]),
        "type": type_of(document, schema) if content else "",
        "shapes": shapes_of(document, schema) if status < "400" else [],
    }


def _show_curl(path: str, method: str, body: str, takes_token: bool) -> str:
    verb = "" if method == "get" else f"-X {method.upper()} "
    lines = [f"curl {verb}{settings.PUBLIC_URL}{path}"]
    if takes_token:
        lines.append('-H "Authorization: Bearer $TOKEN"')
    if body:
        lines.append(f"--json '{body}'")
    return " \\\n  ".join(lines)


def sockets(document: Json) -> list[Json]:
    """The sockets of an AsyncAPI document as the page shows them, without the gateway's."""
    return [_show_socket(document, name) for name in document["channels"] if name != GATEWAY_SOCKET]


def gateway_page(document: Json) -> Json:
    """The values that the page of the gateway shows: what all frames have, those of each type, the error codes."""
    schemas = document["components"]["schemas"]
    return {
        "socket": _show_socket(document, GATEWAY_SOCKET),
        "envelope": list(fields_of(document, schemas[ENVELOPE])),
        "error": list(fields_of(document, schemas[ERROR])),
        "codes": [(int(code), code.name, code.meaning) for code in GatewayErrorCode],
    }


def _show_socket(document: Json, name: str) -> Json:
    channel = document["channels"][name]
    operations = {action: document["operations"][f"{name}.{action}"] for action in TITLES}
    return {
        "name": name,
        "path": channel["address"],
        "summary": channel["summary"],
        "credentials": " or ".join(_last_part(one) for one in operations["receive"]["security"]),
        "directions": [
            {
                "title": TITLES[action],
                "name": f"{name}-{action}",
                "is_inward": action == "receive",
                "frames": [_show_frame(document, name, _last_part(one)) for one in operation["messages"]],
            }
            for action, operation in operations.items()
        ],
    }


def _show_frame(document: Json, socket: str, tag: str) -> Json:
    """One frame. `type`: its name among the frames of its socket; `name`: its `type` on the wire."""
    message = document["components"]["messages"][f"{socket}.{tag}"]
    own_part = message["payload"].get("allOf", [message["payload"]])[-1]  # without the envelope of the gateway
    return {
        "type": tag,
        "name": message["name"],
        "summary": plain(message["summary"]),
        "fields": list(fields_of(document, own_part)),
    }


def _last_part(reference: Json) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def shapes_of(document: Json, schema: Json) -> list[DescribedShape]:
    """An object, or all of those of which any may come."""
    shapes = list(_alternatives(document, schema, ""))
    return shapes if len(shapes) > 1 else [DescribedShape("", one.fields) for one in shapes if one.fields]


def _alternatives(document: Json, schema: Json, family: str) -> Iterator[DescribedShape]:
    found, family = _resolve(document, schema), schema.get("title", family)
    variants = _variants(found)
    for variant in variants:
        yield from _alternatives(document, variant, family)
    if not variants:
        method = type_of(document, found.get("properties", {}).get("method", schema)).strip('"')
        title = ", ".join(part for part in (method, family) if part)
        yield DescribedShape(title, list(fields_of(document, schema)))


def fields_of(document: Json, schema: Json, depth: int = 0) -> Iterator[DescribedField]:
    """The fields of an object, those of objects inside it after each."""
    found = _resolve(document, schema)
    if found.get("type") == "array":
        yield from fields_of(document, found.get("items", {}), depth)
    for variant in _variants(found):
        yield from fields_of(document, variant, depth)
    required = found.get("required", ())
    for name, inner in found.get("properties", {}).items():
        yield DescribedField(
            name, type_of(document, inner), name in required, plain(inner.get("description", "")), depth
        )
        if depth < DEEPEST:
            yield from fields_of(document, inner, depth + 1)


def type_of(document: Json, schema: Json) -> str:
    """A type in a few words."""
    if "$ref" in schema:
        return _last_part(schema).rpartition(".")[2]
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
    preset = "" if default in (None, "") else f", default {json.dumps(default)}"
    return str(schema.get("format", kind)) + _show_bounds(schema) + preset


def plain(text: str) -> str:
    """A docstring's line without its marks of code."""
    return text.replace("`", "")


def example(document: Json, schema: Json, depth: int = 0) -> Any:
    """A value that a schema takes, with the fields that the schema requires."""
    found = _resolve(document, schema)
    if variants := _variants(found):
        return example(document, variants[0], depth)
    if "const" in found or "enum" in found:
        return found.get("const", found.get("enum", [""])[0])
    if found.get("type") == "object":
        inner = found.get("properties", {}) if depth < DEEPEST else {}
        names = [name for name in found.get("required", ()) if name in inner]
        return {name: example(document, inner[name], depth + 1) for name in names}
    if found.get("type") == "array":
        return [example(document, found.get("items", {}), depth + 1)] if depth < DEEPEST else []
    return {"integer": 1, "number": 1, "boolean": False, "null": None}.get(str(found.get("type")), "…")


def _show_bounds(schema: Json) -> str:
    least = schema.get("minimum", schema.get("minLength"))
    most = schema.get("maximum", schema.get("maxLength"))
    if least is None and most is None:
        return ""
    unit = " characters" if "maxLength" in schema or "minLength" in schema else ""
    if most is None:
        return f", at least {least}{unit}"
    return f", {least} to {most}{unit}" if least is not None else f", at most {most}{unit}"


def _resolve(document: Json, schema: Json) -> Json:
    while "$ref" in schema:
        found: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def _variants(schema: Json) -> list[Json]:
    return [variant for name in VARIANTS for variant in schema.get(name, ())]
