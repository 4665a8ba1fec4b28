"""The documents as what the page shows: lists of small rows, each made of text."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings

from hub.descriptions import gateway_frames as gateway
from hub.descriptions.gateway_texts import ERRORS
from hub.descriptions.readable import Field, Shape, example, fields_of, plain, shapes_of, type_of
from hub.descriptions.shapes import Json

TITLES = {"receive": "From the client", "send": "From the hub"}

SOCKETS = "sockets"
GATEWAY = "a2a-v1"
A2A = ("a2a", "a2a-http")
JSON_TYPE = "application/json"
METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedStatus:
    """One answer."""

    status: str
    text: str
    type: str
    shapes: list[Shape]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedCall:
    """One operation. `can_try`: whether the page has a form for it; `example`: the JSON to begin with."""

    name: str
    method: str
    path: str
    summary: str
    text: str
    credentials: str
    parameters: list[Field]
    bodies: list[Shape]
    answers: list[DescribedStatus]
    curl: str
    can_try: bool
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The operations of one tag."""

    tag: str
    calls: list[DescribedCall]


def operations_of(document: Json) -> Iterator[tuple[str, str, Json]]:
    """Path, method and operation of every call of an OpenAPI document."""
    for path, operations in document["paths"].items():
        yield from ((path, method, operations[method]) for method in METHODS if method in operations)


def sections(document: Json) -> list[Section]:
    """The operations of an OpenAPI document by tag."""
    by_tag: dict[str, list[DescribedCall]] = {}
    for path, method, operation in operations_of(document):
        by_tag.setdefault(operation["tags"][0], []).append(_call(document, path, method, operation))
    return [Section(tag=tag, calls=calls) for tag, calls in sorted(by_tag.items())]


def _call(document: Json, path: str, method: str, operation: Json) -> DescribedCall:
    body = _body_schema(operation)
    media_types = operation.get("requestBody", {}).get("content", {JSON_TYPE: {}})
    return DescribedCall(
        name=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=plain(operation["summary"]),
        text=plain(operation.get("description", "")),
        credentials=" or ".join(name for one in operation.get("security", ()) for name in one),
        parameters=[_parameter(document, one) for one in operation.get("parameters", ())],
        bodies=shapes_of(document, body) if body else [],
        answers=[_status(document, status, one) for status, one in operation["responses"].items()],
        curl=_curl(document, path, method, operation, body),
        can_try=JSON_TYPE in media_types and operation["tags"][0] not in A2A,
        example=json.dumps(example(document, body), indent=2, ensure_ascii=False) if body else "",
    )


def _parameter(document: Json, one: Json) -> Field:
    place = "" if one["in"] == "query" else f"in the {one['in']}"
    text = "; ".join(part for part in (place, one.get("description", "")) if part)
    return Field(
        name=one["name"],
        type=type_of(document, one["schema"]),
        required=one.get("required", False),
        text=plain(text),
        place=one["in"],
        choices=one["schema"].get("enum", ()),
    )


def _status(document: Json, status: str, answer: Json) -> DescribedStatus:
    content = answer.get("content", {})
    schema = next(iter(content.values()))["schema"] if content else {}
    shapes = shapes_of(document, schema) if status < "400" else []
    kind = type_of(document, schema) if content else ""
    return DescribedStatus(status=status, text=plain(answer["description"]), type=kind, shapes=shapes)


def _body_schema(operation: Json) -> Json:
    content: Json = operation.get("requestBody", {}).get("content", {})
    schema: Json = next(iter(content.values()))["schema"] if content else {}
    return schema


def _curl(document: Json, path: str, method: str, operation: Json, body: Json) -> str:
    lines = [f"curl {settings.PUBLIC_URL}{path}"]
    if method != "get":
        lines[0] = f"curl -X {method.upper()} {settings.PUBLIC_URL}{path}"
    if operation.get("security"):
        lines.append('-H "Authorization: Bearer $TOKEN"')
    if body:
        lines.append("--json '" + json.dumps(example(document, body)) + "'")
    return " \\\n  ".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRow:
    """One frame. `type`: its name among the frames of its socket; `name`: its `type` on the wire."""

    type: str
    name: str
    summary: str
    fields: list[Field]


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """The frames of one direction."""

    title: str
    name: str
    is_inward: bool
    frames: list[FrameRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketRow:
    """One socket."""

    name: str
    path: str
    summary: str
    credentials: str
    directions: list[Direction]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayPage:
    """The socket of the gateway: what all frames have, what those of a type have besides, and the error codes."""

    socket: SocketRow
    envelope: list[Field]
    error: list[Field]
    codes: list[tuple[int, str, str]]


def sockets(document: Json) -> list[SocketRow]:
    """The sockets of an AsyncAPI document, without the gateway's."""
    return [
        _socket(document, name, channel) for name, channel in document["channels"].items() if name != gateway.NAME
    ]


def gateway_page(document: Json) -> GatewayPage:
    """The values that the page of the gateway shows."""
    schemas = document["components"]["schemas"]
    return GatewayPage(
        socket=_socket(document, gateway.NAME, document["channels"][gateway.NAME]),
        envelope=list(fields_of(document, schemas[gateway.ENVELOPE])),
        error=list(fields_of(document, schemas[gateway.ERROR])),
        codes=[(int(code), code.name, text) for code, text in ERRORS.items()],
    )


def _socket(document: Json, name: str, channel: Json) -> SocketRow:
    told = {action: document["operations"][f"{name}.{action}"] for action in TITLES}
    credentials = [one["$ref"].rpartition("/")[2] for one in told["receive"]["security"]]
    directions = [
        Direction(
            title=title,
            name=f"{name}-{action}",
            is_inward=action == "receive",
            frames=_frames(document, name, told[action]),
        )
        for action, title in TITLES.items()
    ]
    return SocketRow(
        name=name,
        path=channel["address"],
        summary=channel["summary"],
        credentials=" or ".join(credentials),
        directions=directions,
    )


def _frames(document: Json, socket: str, operation: Json) -> list[FrameRow]:
    tags = [message["$ref"].rpartition("/")[2] for message in operation["messages"]]
    messages = {tag: document["components"]["messages"][f"{socket}.{tag}"] for tag in tags}
    return [
        FrameRow(
            type=tag,
            name=message["name"],
            summary=plain(message["summary"]),
            fields=list(fields_of(document, _own_part(message["payload"]))),
        )
        for tag, message in messages.items()
    ]


def _own_part(payload: Json) -> Json:
    """The fields of a frame's type: without the envelope, where it is a part of its own."""
    parts: list[Json] = payload.get("allOf", [payload])
    return parts[-1]
