"""Refusals and failures as OpenAI's API writes them: HTTP status, a code for programs, headers for retries."""

from collections.abc import Mapping
from datetime import timedelta

import msgspec
from msgspec import Struct

from a2a_bridge.surface.http_json import STATUSES
from a2a_bridge.wire import errors
from a2a_bridge.wire.errors import denied_text
from a2a_bridge.wire.task import State, Task, text_in
from accounts.authn import Unauthenticated
from agents.core.errors import Denied, RateLimited
from agents.core.reasons import RefusalKind, Retry
from kit.asgi import Header, RequestRefused, retry_after
from kit.clock import approximate_now
from kit.jsonrpc import INTERNAL_ERROR, RpcError

RETRY_AFTER_S = 2
NO_RETRY = (b"x-should-retry", b"false")  # clients of OpenAI would ask the agent once more
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class Refusal(Struct, frozen=True, kw_only=True):
    """An error response. `param`: the field that is wrong. `retry_after_s`: when to try again."""

    status: int
    code: str
    message: str
    param: str | None = None
    retry_after_s: int | None = None
    headers: tuple[Header, ...] = ()

    @property
    def body(self) -> bytes:
        """The response body."""
        kind = TYPES.get(self.status) or ("server_error" if self.status >= 500 else "invalid_request_error")
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return msgspec.json.encode({"error": error})

    @property
    def all_headers(self) -> tuple[Header, ...]:
        """The response headers besides those of every response."""
        if self.retry_after_s is None:
            return self.headers
        return *self.headers, retry_after(self.retry_after_s)


CODES_OF_KINDS = {RefusalKind.OFFLINE: "agent_offline", RefusalKind.TOO_FAST: "rate_limit_exceeded"}
FAILED: Mapping[State, tuple[int, str]] = {
    State.FAILED: (502, "agent_failed"),
    State.REJECTED: (422, "agent_rejected"),
    State.CANCELED: (502, "canceled"),
}
CODES: Mapping[int, str] = {
    errors.UNAUTHENTICATED: "invalid_api_key",
    errors.AGENT_NOT_FOUND: "model_not_found",
    errors.TASK_NOT_FOUND: "previous_response_not_found",
    errors.INSUFFICIENT_SCOPE: "insufficient_scope",
    errors.FOREIGN_ORIGIN: "forbidden_origin",
    errors.TOO_MANY_STREAMS: "too_many_streams",
    errors.UNAVAILABLE: "unavailable",
    errors.IDEMPOTENCY_KEY_REUSED: "idempotency_key_reused",
    INTERNAL_ERROR: "internal_error",
}
WORDS: Mapping[int, str] = {
    errors.UNAUTHENTICATED: "Send a live token of this hub as the API key: an app token with the scope `ask`.",
    errors.AGENT_NOT_FOUND: "There is no such model: GET /v1/models lists those that you may ask.",
}


def refusal_of_denied(denied: Denied, handle: str) -> Refusal:
    """A refusal of admission: the agent was not asked."""
    status, code = status_and_code(denied)
    return Refusal(
        status=status,
        code=code,
        message=f"{denied_text(denied, handle)}. {denied.entry.advice}",
        retry_after_s=_retry_after_s(denied),
        headers=(NO_RETRY,) if denied.entry.kind.retry is Retry.AT_MIDNIGHT else (),
    )


def status_and_code(denied: Denied | type[Denied]) -> tuple[int, str]:
    """The HTTP status of a refusal, and its code for programs."""
    kind = denied.entry.kind
    return kind.status, CODES_OF_KINDS.get(kind, denied.reason)


def _retry_after_s(denied: Denied) -> int | None:
    if isinstance(denied, RateLimited):
        return denied.retry_in_s
    match denied.entry.kind.retry:
        case Retry.SOON:
            return RETRY_AFTER_S
        case Retry.AT_MIDNIGHT:
            now = approximate_now()
            midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
            return int((midnight - now).total_seconds()) + 1
    return None


def refusal_of_task(task: Task) -> Refusal:
    """The end of a task without an answer. The agent may have been asked, so clients are told not to repeat it."""
    status, code = FAILED[task.state]
    said = text_in(task.message.parts) if task.message is not None else ""
    return Refusal(status=status, code=code, message=said or "the agent failed", headers=(NO_RETRY,))


def refusal_of_error(error: RpcError) -> Refusal:
    """An error of the bridge."""
    status = error.status if error.status != 200 else STATUSES.get(error.code, 400)
    return Refusal(
        status=status,
        code=CODES.get(error.code, "invalid_request"),
        message=WORDS.get(error.code, error.message),
        param=error.field or None,
        retry_after_s=RETRY_AFTER_S if status in (429, 503) else None,
        headers=((b"www-authenticate", b"Bearer"),) if status == 401 else (),
    )


def refusal_of_request(refused: RequestRefused) -> Refusal:
    """A request whose form or caller is not accepted."""
    if isinstance(refused, Unauthenticated) or type(refused) in errors.OF_CALLER:
        return refusal_of_error(errors.form_error(refused))
    return Refusal(status=refused.status, code=refused.code, message=str(refused), headers=tuple(refused.headers))
