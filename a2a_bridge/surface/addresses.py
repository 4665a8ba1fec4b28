"""The addresses of the HTTP+JSON binding, below an agent's own: one table for serving, describing and documenting.

Every address also exists as `/{tenant}/…`. No card declares a tenant, so any is ignored, as it is among params.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

from a2a_bridge.wire.dialects.dialect import AGENT, STREAMS, TEXTS, Operation
from a2a_bridge.wire.dialects.v1 import V1, Card, Nothing, of_v1, shapes
from kit import describe
from kit.describe import CALLER, DescribedAnswer, Parameter
from kit.jsonrpc import METHOD_NOT_FOUND, RpcError

IN_BRACES = re.compile(r"\\{(\w+)\\}")
TENANT = re.compile(r"^[\w-][\w.~-]*/")
CARDS = re.compile(r"(?:(?:v1|core)/?|agent-card\.json|usage\.md|(?:.*/)?\.well-known/.*)", re.DOTALL)  # Django's
EVENTS = ("text/event-stream",)
VERSION = Parameter(
    name="A2A-Version", place="header", required=True, shape=Literal["1.0"], text="May stand in the query, too."
)
LAST_EVENT_ID = Parameter(name="Last-Event-ID", place="header", text="The last event seen: `<taskId>.<seq>`.")
HISTORY = Parameter(name="historyLength", shape=int, text="The most recent messages; 0: none.")
PAGE = (Parameter(name="pageSize", shape=int, text="1 to 100."), Parameter(name="pageToken"))
LIST = (
    Parameter(name="contextId"),
    Parameter(name="status", text="A `TASK_STATE_` name."),
    *PAGE,
    HISTORY,
    Parameter(name="statusTimestampAfter", text="RFC 3339, inclusive."),
    Parameter(name="includeArtifacts", shape=bool),
)
FAILURES: Mapping[int, str] = {
    **describe.COMMON_FAILURES,
    400: "It has the wrong form, or is against what is there; the message says which.",
    404: "There is no such agent, task or address, or the task is not yours.",
}
ONLY_OF_POST = {413, 415}
ONLY_OF_STREAMS = {429}
WITH_BODY = frozenset({Operation.SEND, Operation.STREAM, Operation.CREATE_PUSH, Operation.RATE})


class Fault(TypedDict):
    """An error as google.rpc.Status: `code` is the HTTP status, `details` begin with an ErrorInfo."""

    code: int
    status: str
    message: str
    details: list[dict[str, Any]]


class Failure(TypedDict):
    """The reason of a failure."""

    error: Fault


class NotThere(TypedDict):
    """An error; for an address that no agent can have, the native API's `{error, message}`."""

    error: Fault | str
    message: NotRequired[str]


class HttpCall(NamedTuple):
    """The operation of a call of the binding, and its public description.

    `answer`: the shape of the answer, or of an event of a stream. `parameters`: those of the query.
    `summary`: empty:
    the sentence of the operation.
    """

    operation: Operation
    verb: str
    path: str
    name: str
    answer: Any
    parameters: Sequence[Parameter] = ()
    summary: str = ""


class Address:
    """A path below an agent's and its calls by HTTP method; `{names}` are members of the operation's params."""

    def __init__(self, path: str, calls: Mapping[str, HttpCall]) -> None:
        self.path = path
        self.calls = calls
        self._pattern = re.compile(IN_BRACES.sub(r"(?P<\1>[^/:]+)", re.escape(path)))

    @property
    def verbs(self) -> list[str]:
        """The HTTP methods it takes; HEAD is a GET of what is no stream."""
        has_head = "GET" in self.calls and self.calls["GET"].operation not in STREAMS
        return [*self.calls, *(["HEAD"] if has_head else [])]

    def operation(self, verb: str) -> Operation:
        """The operation of one of the address's HTTP methods."""
        return self.calls["GET" if verb == "HEAD" else verb].operation

    def match(self, rest: str) -> dict[str, str] | None:
        """The values of the names in a path; None when the path is not of this address."""
        found = self._pattern.fullmatch(rest)
        return found.groupdict() if found else None


PUSHES = "tasks/{taskId}/pushNotificationConfigs"
PUSH = f"{PUSHES}/{{id}}"
CALLS = (
    HttpCall(
        Operation.SEND,
        "POST",
        "message:send",
        "sendMessage",
        shapes.Sent,
        summary="Ask an agent: its task, ended unless `returnImmediately`.",
    ),
    HttpCall(
        Operation.STREAM,
        "POST",
        "message:stream",
        "streamMessage",
        shapes.StreamEvent,
        summary="Ask an agent, and follow the task as events.",
    ),
    HttpCall(
        Operation.LIST, "GET", "tasks", "listTasks", shapes.TaskPage, LIST, summary="Your tasks with an agent."
    ),
    HttpCall(Operation.GET, "GET", "tasks/{id}", "getTask", shapes.Task, [HISTORY], summary="A task of yours."),
    HttpCall(Operation.CANCEL, "POST", "tasks/{id}:cancel", "cancelTask", shapes.Task),
    HttpCall(Operation.RATE, "POST", "tasks/{id}:rate", "rateTask", shapes.Task),
    HttpCall(Operation.SUBSCRIBE, "POST", "tasks/{id}:subscribe", "subscribeToTask", shapes.StreamEvent),
    HttpCall(
        Operation.SUBSCRIBE,
        "GET",
        "tasks/{id}:subscribe",
        "followTask",
        shapes.StreamEvent,
        summary="Follow a task, from a browser's EventSource, too.",
    ),
    HttpCall(Operation.CREATE_PUSH, "POST", PUSHES, "createPushConfig", shapes.KeptPush),
    HttpCall(Operation.LIST_PUSH, "GET", PUSHES, "listPushConfigs", shapes.PushPage, PAGE),
    HttpCall(Operation.GET_PUSH, "GET", PUSH, "getPushConfig", shapes.KeptPush),
    HttpCall(Operation.DELETE_PUSH, "DELETE", PUSH, "deletePushConfig", Nothing),
    HttpCall(Operation.SHOW_CARD, "GET", "extendedAgentCard", "getExtendedAgentCard", Card),
)
ADDRESSES = tuple(
    Address(path, {one.verb: one for one in calls}) for path, calls in groupby(CALLS, lambda one: one.path)
)


def find_address(rest: str) -> tuple[Address, dict[str, str]]:
    """The address of a path below an agent's, a slash at its end tolerated; and what its names stand for.

    Raises:
        RpcError: there is none.
    """
    path = rest.removesuffix("/")
    for one in (path, TENANT.sub("", path)) if rest.isprintable() else ():
        for address in ADDRESSES:
            names = address.match(one)
            if names is not None:
                return address, names
    raise RpcError(METHOD_NOT_FOUND, "no such address below an agent's", status=404)


def _describe(call: HttpCall) -> describe.DescribedOperation:
    """A call for the public description, in which the id in a path says of what."""
    is_stream, has_body = call.operation in STREAMS, call.operation in WITH_BODY
    id_name = "{config_id}" if call.path == PUSH else "{task_id}"
    left_out = (set() if call.verb == "POST" else ONLY_OF_POST) | (set() if is_stream else ONLY_OF_STREAMS)
    left_out |= {403} if call.verb == "GET" else set()
    answer = of_v1(call.answer)
    failures = {
        status: DescribedAnswer(shape=of_v1(NotThere if status == 404 else Failure), text=text)
        for status, text in FAILURES.items()
        if status not in left_out
    }
    return describe.DescribedOperation(
        method=call.verb.lower(),
        path=f"{AGENT}/{call.path.replace('{id}', id_name).replace('{taskId}', '{task_id}')}",
        name=call.name,
        summary=call.summary or TEXTS[call.operation],
        text="A2A 1.0, binding HTTP+JSON; more in the reference, /demos/a2a/. Errors are google.rpc.Status.",
        tag="a2a-http",
        security=CALLER,
        request=of_v1(V1.method(call.operation).params) if has_body else None,
        parameters=(VERSION, *([LAST_EVENT_ID] if is_stream else []), *call.parameters),
        adds_errors=False,
        answers={200: DescribedAnswer(shape=answer, media_types=EVENTS) if is_stream else answer, **failures},
    )


OPERATIONS = tuple(map(_describe, CALLS))
