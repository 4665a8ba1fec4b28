"""A dialect: its methods, a reader of parameters, renderers, a description. A dialect decides nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Any, Generic, Literal, NotRequired, Protocol, TypedDict, TypeVar, Union

from msgspec import Struct, defstruct

from a2a_bridge.wire.requests import ListTasks, PushTarget, Request, Send
from a2a_bridge.wire.task import Message, Task, TaskEvent, TaskPage
from agents.models.choices import Surface
from kit import describe
from kit.asgi import Header
from kit.jsonrpc import METHOD_NOT_FOUND, RpcError

AGENT = "/api/a2a/v1/agents/{owner}/{slug}"
SAMPLE_QUESTION = "what's a lifetime?"
SAMPLE_TASK_ID = "task-cf8d"
SAMPLE_RATING: Mapping[str, Any] = {"rating": "up", "note": "just what I needed"}
SAMPLE_CONFIG_ID = "push-1"
SAMPLE_PUSH_URL = "https://example.com/hook"
SAMPLE_PUSH_TOKEN = "of-your-choice"  # noqa: S105  a sample
SAMPLE_MESSAGE: Mapping[str, Any] = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": SAMPLE_QUESTION}]}

Id = str | int | None
Result = TypeVar("Result")
Renderer = TypeVar("Renderer")


class Operation(StrEnum):
    """The operations, by names that no dialect changes."""

    SEND = "send"
    STREAM = "stream"
    GET = "get"
    LIST = "list"
    CANCEL = "cancel"
    RATE = "rate"
    SUBSCRIBE = "subscribe"
    CREATE_PUSH = "create push"
    GET_PUSH = "get push"
    LIST_PUSH = "list push"
    DELETE_PUSH = "delete push"
    SHOW_CARD = "show card"


STREAMS = frozenset({Operation.STREAM, Operation.SUBSCRIBE})
# Texts about each operation, for the public description; a method or a binding may have a sentence of its own.
TEXTS: Mapping[Operation, str] = {
    Operation.SEND: "Ask, and get the finished task.",
    Operation.STREAM: "Ask, and follow the task as events.",
    Operation.GET: "Look at a task again.",
    Operation.LIST: "List your tasks with this agent.",
    Operation.CANCEL: "End a task.",
    Operation.RATE: "Rate the answer of a task, by an extension of this hub.",
    Operation.SUBSCRIBE: "Follow a task.",
    Operation.CREATE_PUSH: "Send the changes of a task to an address.",
    Operation.GET_PUSH: "A push address of a task.",
    Operation.LIST_PUSH: "The push addresses of a task.",
    Operation.DELETE_PUSH: "Delete a push address of a task.",
    Operation.SHOW_CARD: "The extended card, for callers who may ask the agent.",
}


class RpcRequest(Struct, tag_field="method"):
    """A JSON-RPC request; `method` says which."""

    jsonrpc: Literal["2.0"]
    id: Id


class Rpc(TypedDict, Generic[Result]):
    """A JSON-RPC answer that is no error."""

    jsonrpc: Literal["2.0"]
    id: Id
    result: Result


class RpcFault(TypedDict):
    """Code and sentence of a JSON-RPC error."""

    code: int
    message: str
    data: NotRequired[Any]


@dataclass(frozen=True, slots=True)
class Method:
    """A JSON-RPC method: what it does, how its parameters are read, and what they may hold.

    `read` checks parameters, and raises RpcError: -32602 naming the field, -32005 for content that no agent takes.
    `params`: the struct of its parameters, if it takes any; `sample`: sound ones. `needs_params`: a request
    without parameters is refused. `text`, `shape`: the sentence and the name of the described request; empty:
    those of the operation and of the method.
    """

    name: str
    operation: Operation
    read: Callable[[Any], Request]
    _: KW_ONLY
    params: type[Struct] | None = None
    sample: Mapping[str, Any] | None = None
    needs_params: bool = True
    text: str = ""
    shape: str = ""

    @property
    def request(self) -> type[Struct]:
        """The JSON-RPC request as a shape."""
        fields: list[Any] = []
        if self.params is not None:
            fields = [("params", self.params, *(() if self.needs_params else (self.params(),)))]
        namespace = {"__doc__": self.text or TEXTS[self.operation]}
        return defstruct(self.shape or self.name, fields, bases=(RpcRequest,), tag=self.name, namespace=namespace)


def by_name(*methods: Method) -> Mapping[str, Method]:
    """Methods by their names: see `Dialect.methods`."""
    return {one.name: one for one in methods}


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A dialect in words, and its JSON-RPC answers as shapes.

    `header`: what to send as `A2A-Version`; empty: nothing. `family`: puts a shape among those of this dialect.
    `answers`: of JSON-RPC; `events`: of its streams.
    """

    title: str
    header: str = ""
    about: str
    family: Callable[[Any], describe.Family]
    answers: Sequence[Any]
    events: Sequence[Any]


class EventRenderer(Protocol):
    """Renders the frames of an event, none if the dialect does not show it. `task`: as it is by now."""

    def __call__(self, task: Task, event: TaskEvent, *, is_last: bool) -> Sequence[object]: ...


def renders_alike(renderer: EventRenderer) -> Callable[[Task], EventRenderer]:
    """The method for a dialect whose frame of an event does not depend on the frames before it."""
    return lambda task: renderer


def keep_error(error: RpcError) -> RpcError:
    """The dialect says nothing about errors besides code and message."""
    return error


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A way to speak A2A: the reading of requests, and the rendering of answers as structs that msgspec encodes.

    `versions`: the values of `A2A-Version` that name it; `has_slash`: where two dialects share a version, its
    methods are those with a slash, or without; None: it shares none. `headers`: of every answer. `bindings`: what
    an agent card names of it. `methods`: its JSON-RPC methods, by name. A renderer is None in a dialect without
    the methods that need it.

    `streams_errors`: a refused stream is a stream. `has_envelope`: each frame of a stream is a JSON-RPC response.
    `passes_ended`: a caller who cancels or follows a task that has ended gets it as it is, and one who follows a
    task that asks for something gets no more. `adds_follow_ups`: a task that has ended is shown with its
    follow-ups as artifacts. `replays`: frames have ids, and a client that names the last one it saw gets what it
    missed. `surface`: what the audit says of asks in it.
    """

    name: str
    surface: Surface = Surface.A2A
    versions: frozenset[str]
    has_slash: bool | None = None
    headers: Sequence[Header] = ()
    bindings: Sequence[str] = ()
    methods: Mapping[str, Method]
    description: Description
    streams_errors: bool = False
    has_envelope: bool = True
    passes_ended: bool = False
    replays: bool = False
    adds_follow_ups: bool = False

    # A task; the number says how much of its history, None: all.
    render_task: Callable[[Task, int | None], object]
    # The answer to a message that was waited for, or not.
    render_answer: Callable[[Task, Request], object]
    # The first frames of a stream.
    render_opening: Callable[[Task, Request], Sequence[object]]
    # Makes a renderer for the events of one stream, in their order, after frames that showed this task.
    follow: Callable[[Task], EventRenderer]
    # A message without a task, by its context; needed where a reader sets `Send.takes_direct` or leaves `question`
    # empty.
    render_message: Callable[[str, Message], object] | None = None
    # A page of tasks, and the token of the next one, if any.
    render_page: Callable[[TaskPage, ListTasks, str], object] | None = None
    # A push address of a task.
    render_push: Callable[[str, PushTarget], object] | None = None
    # A page of them, and the token of the next one, if any.
    render_push_page: Callable[[str, Sequence[PushTarget], str], object] | None = None
    # Raises RpcError (-32005) for the end of a turn of which this dialect has nothing to show.
    check_answer: Callable[[Task, Send], None] | None = None
    # Adds to an error what this dialect says about it besides.
    error: Callable[[RpcError], RpcError] = keep_error

    def method(self, operation: Operation) -> Method:
        """The method of an operation."""
        return next(one for one in self.methods.values() if one.operation is operation)

    def frame_id(self, task_id: str, seq: int) -> str:
        """The value that a client that comes back sends as Last-Event-ID; empty where it cannot name a frame."""
        return f"{task_id}.{seq}" if self.replays else ""

    @property
    def requests(self) -> describe.Family:
        """The JSON-RPC requests as one shape."""
        requests = tuple(one.request for one in self.methods.values())
        return self.description.family(Union[requests])  # noqa: UP007  of a list that is made

    @property
    def sample_message(self) -> Any:
        """A sample of a message."""
        return (self.method(Operation.SEND).sample or {})["message"]


def version_header(version: str) -> Sequence[Header]:
    """The headers of answers in a dialect that is a version of A2A."""
    return [(b"a2a-version", version.encode())]


def get_renderer(renderer: Renderer | None) -> Renderer:
    """A renderer that a method needs.

    Raises:
        RpcError: -32601, the dialect has no such method.
    """
    if renderer is None:
        raise RpcError(METHOD_NOT_FOUND, "the dialect of this request has no such method")
    return renderer
