"""Shapes as JSON Schema: one document's components, whatever kind of type they come from."""

import typing
from collections.abc import Collection
from functools import cache
from typing import Any

import msgspec

from accounts.authn import COOKIE as COOKIE_NAME
from kit.describe import AGNT_KEY, BEARER, CHANNEL_TOKEN, COOKIE

Json = dict[str, Any]
REF = "#/components/schemas/"


def is_shape(target: Any) -> bool:
    """Whether a type is a `TypedDict` (a generic one with its arguments, too) or a `Struct`."""
    plain = typing.get_origin(target) or target
    return isinstance(plain, type) and (typing.is_typeddict(plain) or issubclass(plain, msgspec.Struct))


def schemas_of(shapes: Collection[Any], *, prefix: str = "") -> tuple[list[Json], Json]:
    """The schema of each shape, and the components they refer to; `prefix` keeps two families of names apart."""
    schemas, components = msgspec.json.schema_components(shapes, ref_template=REF + prefix + "{name}")
    return list(schemas), {prefix + name: _tidy(schema) for name, schema in components.items()}


@cache
def schema_of(shape: Any) -> tuple[Json, Json]:
    """The schema of one shape, and the components it refers to; callers ask for most shapes again and again."""
    [schema], components = schemas_of([shape])
    return schema, components


def merged(one: Json, other: Json) -> Json:
    """Both families of components, by name.

    Raises:
        ValueError: two that differ have one name.
    """
    if twins := sorted(name for name in one.keys() & other.keys() if one[name] != other[name]):
        raise ValueError(f"two shapes of one name: {twins}")
    return dict(sorted((one | other).items()))


def _tidy(schema: Json) -> Json:
    """A component is titled by its name already."""
    return {key: value for key, value in schema.items() if key != "title"}


SCHEMES: dict[str, Json] = {
    BEARER: {
        "type": "http",
        "scheme": "bearer",
        "description": "A session token (cw_sess_…) or an app token (cw_app_…).",
    },
    COOKIE: {
        "type": "apiKey",
        "in": "cookie",
        "name": COOKIE_NAME,
        "description": "The same session in a browser; counts for the hub's own pages only.",
    },
    CHANNEL_TOKEN: {
        "type": "http",
        "scheme": "bearer",
        "description": "A channel token (ck_live_…), for agents.",
    },
    AGNT_KEY: {
        "type": "http",
        "scheme": "bearer",
        "description": "A key of a network (agnt_live_…), for programs that send envelopes.",
    },
}
