"""Types by which each app describes its operations and sockets for OpenAPI and AsyncAPI.

A *shape* is a type msgspec knows: a `TypedDict` for an answer that a function builds as a dict, a `Struct` for
what is read or sent as one. The name, fields and docstring of a shape become a component of the description.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypedDict, TypeVar

from msgspec import Meta, Struct

Shape = TypeVar("Shape")
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Uuid = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Url = Annotated[str, Meta(extra_json_schema={"format": "uri"})]

BEARER, COOKIE, CHANNEL_TOKEN, AGNT_KEY = "bearer", "cookie", "channelToken", "agntKey"
CALLER = (BEARER, COOKIE)
# Among the schemes of an operation: callers without a credential are served too, and with one get more.
NO_CREDENTIAL = ""
JSON = "application/json"
END_OF_TEXT = r"\Z"


def as_pattern(checked: str) -> str:
    """A regular expression of Python for a whole text, as JSON Schema writes it."""
    return f"^{checked.removesuffix(END_OF_TEXT)}$"


class ErrorBody(TypedDict):
    """An error: a stable code for programs, and a sentence for people."""

    error: str
    message: str


class Items(TypedDict, Generic[Shape]):
    """All of a list, or its newest part."""

    items: list[Shape]


class Page(TypedDict, Generic[Shape]):
    """A page of a list, and how many there are in all."""

    items: list[Shape]
    total: int


class Done(TypedDict):
    """An empty answer: the call is done."""

    ok: Literal[True]


@dataclass(frozen=True, slots=True)
class Family:
    """A shape whose components' names begin with `prefix`: another family has some of the same names.

    `title`: what the family is called where it stands beside others.
    """

    prefix: str
    shape: Any
    title: str = ""


@dataclass(frozen=True, slots=True)
class Either:
    """Shapes of which any may be sent; a value outside of them says which."""

    shapes: Collection[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One value beside the body.

    `shape`: its type; `place`: its location, as in OpenAPI's `in`. A parameter of an answer is a header.
    """

    name: str
    shape: Any = str
    place: Literal["path", "query", "header"] = "query"
    required: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedAnswer:
    """One answer: its shape (None: no body), and a sentence on when it is given. `streams`: an event's shape."""

    shape: Any = None
    streams: Any = None
    text: str = ""
    media_types: Collection[str] = (JSON,)
    headers: Collection[Parameter] = ()


COMMON_FAILURES: Mapping[int, str] = {
    401: "No live credential came with it.",
    403: "The cookie came from another site.",
    408: "The body did not come in time.",
    413: "The body is over the limit.",
    415: "Want Content-Type: application/json.",
    429: "You hold as many streams open as one may.",
    503: "The hub takes no questions right now; Retry-After says when to come back.",
}


def describe_failures(shape: Any, texts: Mapping[int, str]) -> dict[int, DescribedAnswer]:
    """Answers of one shape, by status, each with a sentence on when it is given."""
    return {status: DescribedAnswer(shape=shape, text=text) for status, text in sorted(texts.items())}


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedOperation:
    """One call that Django REST framework does not serve.

    `path` is a template (`/api/v1/peers/{peer}/route`); its names are text unless `parameters` says otherwise.
    `security` names the schemes of which one is needed; none: open to every caller. `answers` maps a status to a
    `DescribedAnswer` or a bare shape; errors that follow from the call's form (401, 403, 404, 413, …) are added
    with the shape `ErrorBody`, unless `adds_errors` is off.
    """

    method: str
    path: str
    name: str
    summary: str
    tag: str
    answers: Mapping[int, Any]
    text: str = ""
    security: Collection[str] = CALLER
    request: Any = None
    parameters: Collection[Parameter] = ()
    adds_errors: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedSocket:
    """One WebSocket. `payloads`: what the field `payload` of a frame may hold, when its struct leaves it open."""

    path: str
    summary: str
    security: Collection[str]
    from_client: Collection[type[Struct]]
    to_client: Collection[type[Struct]]
    payloads: Mapping[type[Struct], Collection[Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The path as one word."""
        return self.path.strip("/").replace("/", "-")
