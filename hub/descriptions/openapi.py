"""The OpenAPI document: what drf-spectacular reads from the views, and the rooms' tables beside it."""

import re
import threading
from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator

from hub.descriptions.described import OPERATIONS
from hub.descriptions.errors import add_errors, likely_errors
from hub.descriptions.shapes import SCHEMES, Json, merged, schemas_of
from kit.describe import JSON, DescribedAnswer, Either, ErrorBody, Family, Operation, Parameter

EVENTS = "text/event-stream"
IN_BRACES = re.compile(r"\{(\w+)\}")


class Writer:
    """Writes operations and gathers the components they refer to."""

    def __init__(self) -> None:
        self.components: Json = {}

    def operation(self, one: Operation) -> Json:
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


def _all_parameters(one: Operation) -> list[Parameter]:
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
