"""Shapes as JSON Schema, the security schemes, and the errors that follow from the form of an operation."""

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
    """True if a type is a `TypedDict` (a generic one with its arguments, too) or a `Struct`."""
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
    """The components of both kinds, by name.

    Raises:
        ValueError: two that differ have one name.
    """
    if twins := sorted(name for name in one.keys() & other.keys() if one[name] != other[name]):
        raise ValueError(f"two shapes of one name: {twins}")
    return dict(sorted((one | other).items()))


def _tidy(schema: Json) -> Json:
    """Remove the title, as a component has a name already."""
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


SAFE_METHODS = frozenset({"get", "head", "options"})
TEXTS = {
    400: "What was sent has the wrong form; the message names the field.",
    401: "No live credential came with it.",
    403: "Not with this credential, or a cookie that came from another site.",
    404: "There is no such thing, or it is not yours to see.",
    406: "Answers are JSON, and Accept excludes it.",
    408: "The body did not come in time.",
    409: "Taken, or against what is there.",
    410: "It was there once.",
    413: "The body is over the limit.",
    415: "The body is not of a media type that is read here.",
    429: "Too often; Retry-After says when to come back.",
    500: "The hub's own fault; the message tells nothing of it.",
    501: "This hub does not do that.",
    502: "A server that the hub depends on did not answer correctly.",
    503: "Not now, or not set up.",
}


def likely_errors(path: str, method: str, operation: Json) -> set[int]:
    """The statuses that the parts of an OpenAPI operation bring with them."""
    found: set[int] = set()
    places = {parameter["in"] for parameter in operation.get("parameters", ())}
    if "requestBody" in operation:
        found |= {400, 413, 415}
    if "query" in places:
        found.add(400)
    if "path" in places:
        found.add(404)
    if operation.get("security"):
        found.add(401)
    if path.startswith("/api/") and method.lower() not in SAFE_METHODS:
        found.add(403)  # for a cookie with a request from another site
    return found


def add_errors(operation: Json, statuses: set[int], schema: Json) -> None:
    """Add answers for these statuses, unless the operation has them already; in order of status."""
    answers = operation["responses"]
    for status in statuses:
        answers.setdefault(str(status), {"content": {"application/json": {"schema": schema}}})
    for status, answer in answers.items():
        if not answer.get("description"):
            answer["description"] = TEXTS.get(int(status), "As asked.")
    operation["responses"] = dict(sorted(answers.items()))
