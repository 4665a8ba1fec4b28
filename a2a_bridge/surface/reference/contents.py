"""The reference as a whole, for the page and for /llms.txt; the fields of structs in a few words each."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from msgspec import Struct, UnsetType, inspect

from a2a_bridge.surface.addresses import CALLS
from a2a_bridge.surface.reference import errors, samples
from a2a_bridge.surface.reference.errors import summary
from a2a_bridge.wire.dialects.dialect import STREAMS, Dialect, Method, Operation
from a2a_bridge.wire.dialects.v1 import V1
from a2a_bridge.wire.task import State
from a2a_bridge.wire.versions import DIALECTS
from agents.links.channel import frames, payloads
from agents.transcript.announcements import FROM_LIVE

SUMMARIES = {
    Operation.SEND: "Ask, and answer with the finished task.",
    Operation.STREAM: "Ask, and tell the task's progress as it happens.",
    Operation.GET: "A task of the caller's with this agent.",
    Operation.LIST: "The caller's tasks with this agent, the newest first, a page at a time.",
    Operation.CANCEL: "End a task; an agent that can be told stops.",
    Operation.RATE: "Give the answer of a task a thumb up or down, or take it away: `none`.",
    Operation.SUBSCRIBE: "Follow a task that is under way, from where it is.",
    Operation.CREATE_PUSH: "Have a task's changes sent to an address of yours.",
    Operation.GET_PUSH: "One address that a task's changes go to.",
    Operation.LIST_PUSH: "All addresses that a task's changes go to.",
    Operation.DELETE_PUSH: "Send no more there.",
    Operation.SHOW_CARD: "The agent's card for a caller who is signed in.",
}
STATES = {
    State.SUBMITTED: "taken, and not begun",
    State.WORKING: "the agent has the question; with a message: a note on how far it is",
    State.INPUT_REQUIRED: "the agent asks back: send a message with this taskId",
    State.AUTH_REQUIRED: "the agent needs leave or credentials; the same",
    State.COMPLETED: "the reply is there",
    State.FAILED: "refused, or not answered; its message says why",
    State.CANCELED: "its caller canceled it",
    State.REJECTED: "the agent does not want to answer this",
}

PAYLOADS: Mapping[str, type[Struct]] = {
    "reply": payloads.Reply,
    "reply_chunk": payloads.ReplyChunk,
    "task_status": payloads.TaskStatus,
    "task_artifact": payloads.TaskArtifact,
}
DEEPEST = 3


@dataclass(frozen=True, slots=True)
class ShownField:
    """One field as it is on the wire. `name`: a path for what lies inside others, `message.parts[].text`."""

    name: str
    type: str
    required: bool


@dataclass(frozen=True, slots=True)
class ShownMethod:
    """One JSON-RPC method. `id`: its place on the page. `direct`: an answer that is no task, if one may come."""

    id: str
    name: str
    summary: str
    streams: bool
    params: list[ShownField]
    request: str
    answer: str
    direct: str


@dataclass(frozen=True, slots=True)
class Language:
    """A dialect and all that can be said in it."""

    key: str
    title: str
    version: str
    about: str
    methods: list[ShownMethod]


@dataclass(frozen=True, slots=True)
class ShownFrame:
    """One frame of a socket."""

    type: str
    summary: str
    fields: list[ShownField]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """All parts of the reference, in the order of the page.

    `states`: a row for each, as the `languages` write it, and its meaning. `cards`: paths below an agent's own.
    """

    languages: list[Language]
    http_calls: list[dict[str, str]]
    states: list[tuple[list[str], str]]
    cards: list[list[str]]
    codes: list[errors.Code]
    refusals: list[errors.ReasonShown]
    failures: list[errors.ReasonShown]
    limits: list[list[str]]
    from_agent: list[ShownFrame]
    replies: list[ShownFrame]
    to_agent: list[ShownFrame]
    to_operator: list[ShownFrame]
    settings: list[list[str]]


@cache
def reference(public_url: str) -> Reference:
    """The reference of this hub's code; it does not change while the process lives."""
    names = {one.operation: name for name, one in V1.methods.items()}
    return Reference(
        languages=[_language(one, public_url) for one in DIALECTS],
        http_calls=[{"verb": one.verb, "path": f"/{one.path}", "method": names[one.operation]} for one in CALLS],
        states=[([samples.status_of(one, state) for one in DIALECTS], text) for state, text in STATES.items()],
        cards=[[row[0].strip("`").removeprefix("{base}"), row[1]] for row in errors.rows("cards.md", "Where")],
        codes=errors.codes(),
        refusals=errors.refusals(),
        failures=errors.failures(),
        limits=errors.rows("methods.md", "Limits"),
        from_agent=_frames(frames.FROM_AGENT.values()),
        replies=[ShownFrame(name, summary(kind), list(fields_of(kind))) for name, kind in PAYLOADS.items()],
        to_agent=_frames(frames.TO_AGENT),
        to_operator=_frames(FROM_LIVE),
        settings=errors.rows("settings.md", ""),
    )


def key_of(one: Dialect) -> str:
    """A dialect's name in addresses of the page, `hub` or `v1-0`."""
    return f"v{one.name.replace('.', '-')}" if one.name[:1].isdigit() else one.name


def _language(one: Dialect, public_url: str) -> Language:
    methods = [_method(one, method, public_url) for method in one.methods.values()]
    said = one.description
    return Language(key_of(one), said.title, said.header, said.about, methods)


def _method(one: Dialect, method: Method, public_url: str) -> ShownMethod:
    return ShownMethod(
        id=f"{key_of(one)}-{method.name.replace('/', '-')}",
        name=method.name,
        summary=SUMMARIES[method.operation],
        streams=method.operation in STREAMS,
        params=list(fields_of(method.params)) if method.params else [],
        request=samples.pretty(samples.request_of(method)),
        answer=samples.answer_to(one, method, public_url),
        direct=samples.direct_of(one) if method.operation is Operation.SEND else "",
    )


def _frames(structs: Iterable[type[Struct]]) -> list[ShownFrame]:
    return [ShownFrame(str(one.__struct_config__.tag), summary(one), list(fields_of(one))) for one in structs]


def fields_of(shape: type[Struct], before: str = "") -> Iterator[ShownField]:
    """The fields of a struct, those of structs inside it after each."""
    info = inspect.type_info(shape)
    if not isinstance(info, inspect.StructType):
        raise TypeError(f"{shape!r} is no struct")
    yield from _fields(info, before)


def _fields(info: inspect.StructType, before: str) -> Iterator[ShownField]:
    for field in info.fields:
        name = f"{before}{field.encode_name}"
        yield ShownField(name, _named(field.type), field.required)
        inner, path = _inside(field.type, name)
        if isinstance(inner, inspect.StructType) and name.count(".") < DEEPEST:
            yield from _fields(inner, path)


def _inside(kind: inspect.Type, name: str) -> tuple[inspect.Type, str]:
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return kind.item_type, f"{name}[]."
    if isinstance(kind, inspect.UnionType):
        structs = (one for one in kind.types if isinstance(one, inspect.StructType))
        return next(structs, kind), f"{name}."
    return kind, f"{name}."


def _named(kind: inspect.Type) -> str:
    match kind:
        case inspect.StrType():
            return "text" + _bounds(kind.min_length, kind.max_length, " characters")
        case inspect.IntType():
            return "whole number" + _bounds(kind.ge, kind.le)
        case inspect.BoolType():
            return "true or false"
        case inspect.NoneType():
            return "null"
        case inspect.LiteralType():
            return " or ".join(f'"{value}"' for value in kind.values)
        case inspect.FloatType():
            return "number"
        case inspect.ListType() | inspect.VarTupleType():
            return f"list of {_named(kind.item_type)}" + _bounds(kind.min_length, kind.max_length)
        case inspect.UnionType():
            return _either(kind)
        case inspect.StructType() | inspect.DictType() | inspect.TypedDictType():
            return "object"
    return "any JSON"


def _either(kind: inspect.UnionType) -> str:
    """The types that a field may have. A field that may be left out or null is shown as not required."""
    left_out = (inspect.type_info(UnsetType), inspect.NoneType())
    names = [_named(one) for one in kind.types if one not in left_out]
    return " or ".join(names) or "null"


def _bounds(least: int | None, most: int | None, unit: str = "") -> str:
    if most is None:
        return "" if least is None else f", at least {least}{unit}"
    return f", at most {most}{unit}" if least is None else f", {least} to {most}{unit}"
