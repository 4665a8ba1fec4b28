"""The bridge's errors: the protocol's, and the texts of refusals and failures.

A denial is an answer: a FAILED task on HTTP 200. JSON-RPC errors are for broken requests alone. `OWN_CODES`
are the hub's own (docs/reference/errors.md).
"""

from collections.abc import Callable, Mapping, Sequence

from a2a_bridge.wire.task import TERMINAL, State
from accounts.authn import ForeignOrigin, OutOfScope, Unauthenticated
from agents.core.errors import Denied, Unavailable
from agents.core.failures import find_failure
from kit import jsonrpc
from kit.asgi import RequestRefused
from kit.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, RpcError

TASK_NOT_FOUND = -32001
TASK_NOT_CANCELABLE = -32002
PUSH_NOTIFICATION_NOT_SUPPORTED = -32003
UNSUPPORTED_OPERATION = -32004
CONTENT_TYPE_NOT_SUPPORTED = -32005
VERSION_NOT_SUPPORTED = -32009
UNAUTHENTICATED = -32010
FOREIGN_ORIGIN = -32011
AGENT_NOT_FOUND = -32012
UNAVAILABLE = -32013
TOO_MANY_STREAMS = -32014
INSUFFICIENT_SCOPE = -32017
REFUSED = -32015
IDEMPOTENCY_KEY_REUSED = -32016
OWN_CODES = range(-32099, -32009)
# The name of each code is that of its constant, here or in `kit.jsonrpc`.
NAMES: Mapping[int, str] = {
    value: name
    for name, value in {**vars(jsonrpc), **globals()}.items()
    if name.isupper() and type(value) is int and value < 0
}


class OtherContext(RpcError):
    """A message names a task, and a context that is not the task's."""


class InputRefused(RpcError):
    """A part of a message is of a kind or a media type that the agent does not take."""


class OutputRefused(RpcError):
    """The caller accepts none of the media types that the agent gives."""

    accepted: Sequence[str] = ()
    available: Sequence[str] = ()


class TaskEnded(RpcError):
    """A message to a task that has ended."""


class AgentUnreachable(RpcError):
    """The process that runs the task cannot be reached, so it cannot cancel it."""


def denied_text(denied: Denied, handle: str) -> str:
    """The public text of a refusal."""
    return denied.text(f"agent @{handle}")


def failure_text(reason: str, wait_s: float) -> str:
    """The public text of a failed turn, whose caller waited `wait_s` seconds."""
    return find_failure(reason).text.format(agent="the agent", wait_s=wait_s)


def task_not_found() -> RpcError:
    """The error for a task that is absent, expired or another caller's."""
    return RpcError(TASK_NOT_FOUND, "task not found")


def not_cancelable(state: str) -> RpcError:
    """The error for canceling a task that has ended."""
    return RpcError(TASK_NOT_CANCELABLE, f"the task cannot be canceled: it is {state}")


def agent_unreachable(state: str) -> RpcError:
    """The error for canceling a task of a process that cannot be reached."""
    return AgentUnreachable(TASK_NOT_CANCELABLE, f"the task cannot be canceled: it is {state}, and out of reach")


def not_continuable(state: State) -> RpcError:
    """The error for a message to a task that does not ask for anything."""
    kind = TaskEnded if state in TERMINAL else RpcError
    return kind(UNSUPPORTED_OPERATION, f"the task takes no message now: it is {state}")


def other_context() -> RpcError:
    """The error for a message whose context is not that of its task."""
    field = "message.contextId"
    return OtherContext(INVALID_PARAMS, f"{field}: the task belongs to another context", field=field)


def not_followable(state: str) -> RpcError:
    """The error for a subscription to a task that has ended."""
    return RpcError(UNSUPPORTED_OPERATION, f"the task has ended: it is {state}; read it instead")


def refused(text: str) -> RpcError:
    """The error for a further message that admission refused; the task still asks."""
    return RpcError(REFUSED, text)


def wrong_mode(accepted: Sequence[str], available: Sequence[str]) -> RpcError:
    """The error for an agent that has no output mode that the caller accepts."""
    text = f"the agent gives {' and '.join(available)}, not {', '.join(accepted)[:200]}"
    refused = OutputRefused(CONTENT_TYPE_NOT_SUPPORTED, text)
    refused.accepted, refused.available = accepted, available
    return refused


def input_refused(where: str, taken: Sequence[str]) -> RpcError:
    """The error for input that the agent's card does not list. `where`: the part."""
    text = f"{where} is not supported: the agent takes {', '.join(taken)}"
    return InputRefused(CONTENT_TYPE_NOT_SUPPORTED, text, field=where)


def file_gone(where: str = "message.parts") -> RpcError:
    """The error for a file of this hub that a message names, and that is not there for its caller."""
    return RpcError(INVALID_PARAMS, f"{where}: no such file of yours: upload it again", field=where)


def file_refused(refused: RequestRefused, where: str) -> RpcError:
    """The error for a file that the hub does not take. `where`: the part."""
    if refused.status == 415:
        return InputRefused(CONTENT_TYPE_NOT_SUPPORTED, f"{where}: {refused}", field=where)
    return RpcError(UNAVAILABLE, str(refused), status=refused.status)


def no_room_for_files(text: str) -> RpcError:
    """The error for files that the caller's account has no room for."""
    return RpcError(REFUSED, text, status=429)


def agent_not_found() -> RpcError:
    """The error for an agent that is absent, a draft or deleted."""
    return RpcError(AGENT_NOT_FOUND, "no such agent", status=404)


def too_large(limit_bytes: int) -> RpcError:
    """The error for a body over the limit of the hub or of the agent."""
    return RpcError(INVALID_REQUEST, f"the body is over {limit_bytes} bytes", status=413)


def unauthenticated() -> RpcError:
    """The error for a request without a live token; its response has WWW-Authenticate."""
    return RpcError(UNAUTHENTICATED, "sign in: send a live token as Authorization: Bearer", status=401)


def form_error(refused: RequestRefused) -> RpcError:
    """The error for a refusal of the request guard. The bridge has its own texts for authentication."""
    if (of_caller := OF_CALLER.get(type(refused))) is not None:
        return of_caller()
    code = CONTENT_TYPE_NOT_SUPPORTED if refused.status == 415 else INVALID_REQUEST
    return RpcError(code, str(refused), status=refused.status)


def too_many_streams(limit: int) -> RpcError:
    """The error for a caller who has too many open streams; nothing was sent."""
    return RpcError(TOO_MANY_STREAMS, f"you hold {limit} streams open, the most there may be", status=429)


def unavailable() -> RpcError:
    """The error for a hub that takes no asks now; nothing was sent."""
    return RpcError(UNAVAILABLE, Unavailable.text, status=503)


OF_CALLER: dict[type[RequestRefused], Callable[[], RpcError]] = {
    Unauthenticated: unauthenticated,
    ForeignOrigin: lambda: RpcError(
        FOREIGN_ORIGIN, "the cookie is accepted from this hub's own pages only", status=403
    ),
    OutOfScope: lambda: RpcError(INSUFFICIENT_SCOPE, "this token is not for asking this agent", status=403),
}
