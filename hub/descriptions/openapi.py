"""The OpenAPI document: what drf-spectacular reads from the views, and the rooms' tables beside it."""

import threading
from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator

from hub.descriptions.operations import Writer
from hub.descriptions.rooms import OPERATIONS
from hub.descriptions.schemes import SCHEMES
from hub.descriptions.shapes import Json, merged


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
