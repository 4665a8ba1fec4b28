"""The OpenAPI document: what drf-spectacular reads from the views, and the operations that no DRF view serves."""

import re
import threading
from functools import cache
from typing import Any, Literal

from django.conf import settings
from drf_spectacular.generators import SchemaGenerator

from a2a_bridge.surface.api import OPERATIONS as QUESTIONS
from a2a_bridge.surface.described import OPERATIONS as A2A
from a2a_bridge.surface.sharing import OPERATIONS as SHARING
from agents.links.channel.events import OPERATIONS as HOOKS
from agnt.endpoint.metadata import OPERATIONS as AGNT
from gateway.surface.health import OPERATIONS as GATEWAY
from hub.descriptions.schemas import SCHEMES, Json, add_errors, likely_errors, merged, schemas_of
from hub.monitoring.endpoints import Health, PageGone
from kit.describe import JSON, DescribedAnswer, DescribedOperation, Either, ErrorBody, Family, Parameter
from mcp_server.surface.metadata import OPERATIONS as MCP
from openai_api.surface.metadata import OPERATIONS as CHAT
from operators.surface.api import OPERATIONS as OPERATORS

YAML = "application/yaml"


def _describe_document(path: str, name: str, summary: str, *media_types: str, **more: Any) -> DescribedOperation:
    answers = {200: DescribedAnswer(shape=dict[str, Any], text="The document.", media_types=media_types)}
    return DescribedOperation(
        method="get",
        path=path,
        name=name,
        summary=summary,
        tag="descriptions",
        security=(),
        answers=answers,
        **more,
    )


_OF_HUB = (
    DescribedOperation(
        method="get",
        path="/livez",
        name="isAlive",
        summary="Whether the process answers at all.",
        tag="health",
        security=(),
        answers={200: Health},
    ),
    DescribedOperation(
        method="get",
        path="/readyz",
        name="isReady",
        summary="Whether the database answers and the process takes new work.",
        tag="health",
        security=(),
        answers={
            200: Health,
            503: DescribedAnswer(
                shape=Health, text="It starts or drains, or the database gave no answer in a second."
            ),
        },
    ),
    DescribedOperation(
        method="get",
        path="/metrics",
        name="getMetrics",
        summary="Figures for Prometheus: from this machine, or with METRICS_TOKEN as Bearer token.",
        tag="health",
        security=(),
        answers={
            200: DescribedAnswer(shape=str, text="Prometheus' text format.", media_types=("text/plain",)),
            404: DescribedAnswer(shape=PageGone, text="Not for who asks."),
        },
    ),
    _describe_document(
        "/api/v1/schema",
        "getSchema",
        "This description, OpenAPI 3.1.",
        JSON,
        YAML,
        parameters=[Parameter(name="format", shape=Literal["json", "yaml"], text="instead of the header Accept")],
        adds_errors=False,
    ),
    _describe_document("/api/ws-docs/json", "getSocketsAsJson", "The sockets, AsyncAPI 3.0.", JSON),
    _describe_document("/api/ws-docs/yaml", "getSocketsAsYaml", "The sockets, AsyncAPI 3.0, as YAML.", YAML),
)


_OF_AGNT = AGNT if settings.AGNT else ()
OPERATIONS: tuple[DescribedOperation, ...] = (
    *(*A2A, *MCP, *CHAT, *QUESTIONS, *SHARING, *HOOKS, *OPERATORS, *GATEWAY),
    *(*_OF_AGNT, *_OF_HUB),
)


EVENTS = "text/event-stream"
IN_BRACES = re.compile(r"\{(\w+)\}")


class Writer:
    """Writes operations and gathers the components they refer to."""

    def __init__(self) -> None:
        self.components: Json = {}

    def operation(self, one: DescribedOperation) -> Json:
        """One operation, its errors included."""
        written: Json = {"operationId": one.name, "summary": one.summary, "tags": [one.tag]}
        if one.text:
            written["description"] = one.text
        if parameters := [self._parameter(parameter) for parameter in _all_parameters(one)]:
            written["parameters"] = parameters
        if one.request is not None:
            written["requestBody"] = {"required": True, "content": {JSON: {"schema": self._schema(one.request)}}}
        if one.security:
            written["security"] = [{name: []} if name else {} for name in one.security]
        written["responses"] = {str(status): self._answer(answer) for status, answer in one.answers.items()}
        statuses = likely_errors(one.path, one.method, written) if one.adds_errors else set()
        add_errors(written, statuses, self._schema(ErrorBody))
        return written

    def _parameter(self, one: Parameter) -> Json:
        required = one.required or one.place == "path"
        written: Json = {
            "name": one.name,
            "in": one.place,
            "required": required,
            "schema": self._schema(one.shape),
        }
        return written | ({"description": one.text} if one.text else {})

    def _answer(self, answer: Any) -> Json:
        told = answer if isinstance(answer, DescribedAnswer) else DescribedAnswer(shape=answer)
        written: Json = {"description": told.text}
        if told.shape is not None:
            schema = self._schema(told.shape)
            written["content"] = {media_type: {"schema": schema} for media_type in told.media_types}
        if told.streams is not None:
            written["content"][EVENTS] = {"schema": _event(self._schema(told.streams))}
        if told.headers:
            written["headers"] = {one.name: self._header(one) for one in told.headers}
        return written

    def _header(self, one: Parameter) -> Json:
        return {"description": one.text, "schema": self._schema(one.shape)}

    def _schema(self, shape: Any) -> Json:
        if isinstance(shape, Either):
            return {"anyOf": [self._titled(one) for one in shape.shapes]}
        family = shape if isinstance(shape, Family) else Family("", shape)
        [schema], components = schemas_of([family.shape], prefix=family.prefix)
        self.components = merged(self.components, components)
        return schema

    def _titled(self, shape: Any) -> Json:
        title = shape.title if isinstance(shape, Family) else ""
        return self._schema(shape) | ({"title": title} if title else {})


def _event(schema: Json) -> Json:
    """An event of a stream: its data is JSON text of that shape."""
    data = {"type": "string", "contentMediaType": JSON, "contentSchema": schema}
    return {"type": "object", "properties": {"data": data, "id": {"type": "string"}}, "required": ["data"]}


def _all_parameters(one: DescribedOperation) -> list[Parameter]:
    """The parameters of an operation; those of the path are text unless the operation says otherwise."""
    told = {parameter.name: parameter for parameter in one.parameters}
    in_path = [told.pop(name, Parameter(name=name, place="path")) for name in IN_BRACES.findall(one.path)]
    return [*in_path, *told.values()]


def add_operations(result: Json, **about: Any) -> Json:
    """The document with what Django REST framework does not serve (a POSTPROCESSING_HOOK of drf-spectacular)."""
    writer, paths = Writer(), result["paths"]
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method.lower()] = writer.operation(one)
    components = result.setdefault("components", {})
    components["schemas"] = merged(components.get("schemas", {}), writer.components)
    components["securitySchemes"] = SCHEMES
    result["paths"] = dict(sorted(paths.items()))
    return result


_lock = threading.Lock()  # drf-spectacular resolves its extensions when first used, and fails when two threads do


def openapi() -> Json:
    """The whole document; it is the same as long as the process lives."""
    with _lock:
        return _document()


@cache
def _document() -> Json:
    document: Json = SchemaGenerator().get_schema(request=None, public=True)
    return document
