"""Refusals and failures as OpenAI's API writes them: HTTP status, a code for programs, headers for retries."""

from collections.abc import Mapping
from datetime import timedelta

import msgspec

from a2a_bridge.surface.http_json import STATUSES
from a2a_bridge.wire import errors
from a2a_bridge.wire.errors import denied_text
from a2a_bridge.wire.task import State, Task
from accounts.authn import Unauthenticated
from agents.core.errors import Denied, RateLimited
from agents.core.reasons import RefusalKind, Retry
from agents.transcript.pieces import text_in
from kit.asgi import RETRY_SOON, Header, RequestRefused, retry_after
from kit.clock import approximate_now
from kit.jsonrpc import INTERNAL_ERROR, RpcError

HEADERS = {401: [(b"www-authenticate", b"Bearer")], 429: [RETRY_SOON], 503: [RETRY_SOON]}
# An agent that was asked may have worked: clients must not ask it again. OpenAI's clients read the header;
# Vercel's `ai` repeats every status of 500 and above.
NO_RETRY = (b"x-should-retry", b"false")
AGENT_FAILED = 424
TYPES = {
    401: "authentication_error",
    403: "permission_error",
    AGENT_FAILED: "server_error",
    429: "rate_limit_error",
}


class ModelRefused(RequestRefused):
    """A refusal in the form of OpenAI's API. `param`: the field that is wrong."""

    param: str | None = None

    @property
    def body(self) -> bytes:
        """The response body."""
        kind = TYPES.get(self.status) or ("server_error" if self.status >= 500 else "invalid_request_error")
        error = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        return msgspec.json.encode({"error": error})


CODES_OF_KINDS = {RefusalKind.OFFLINE: "agent_offline", RefusalKind.TOO_FAST: "rate_limit_exceeded"}
FAILED: Mapping[State, tuple[int, str]] = {
    State.FAILED: (AGENT_FAILED, "agent_failed"),
    State.REJECTED: (422, "agent_rejected"),
    State.CANCELED: (AGENT_FAILED, "canceled"),
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


def refusal_of_denied(denied: Denied, handle: str) -> ModelRefused:
    """A refusal of admission: the agent was not asked."""
    text = f"{denied_text(denied, handle)}. {denied.entry.advice}"
    return ModelRefused(*status_and_code(denied), text, *_retry_headers(denied))


def status_and_code(denied: Denied | type[Denied]) -> tuple[int, str]:
    """The HTTP status of a refusal, and its code for programs."""
    kind = denied.entry.kind
    return kind.status, CODES_OF_KINDS.get(kind, denied.reason)


def _retry_headers(denied: Denied) -> list[Header]:
    if isinstance(denied, RateLimited):
        return [retry_after(denied.retry_in_s)]
    match denied.entry.kind.retry:
        case Retry.SOON:
            return [RETRY_SOON]
        case Retry.AT_MIDNIGHT:
            now = approximate_now()
            midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
            return [NO_RETRY, retry_after(int((midnight - now).total_seconds()) + 1)]
    return []


def refusal_of_task(task: Task) -> ModelRefused:
    """The end of a task without an answer. The agent may have been asked, so clients are told not to repeat it."""
    said = text_in(task.message.parts) if task.message is not None else ""
    return ModelRefused(*FAILED[task.state], said or "the agent failed", NO_RETRY)


def refusal_of_error(error: RpcError) -> ModelRefused:
    """An error of the bridge."""
    status = error.status if error.status != 200 else STATUSES.get(error.code, 400)
    code, text = CODES.get(error.code, "invalid_request"), WORDS.get(error.code, error.message)
    refused = ModelRefused(status, code, text, *HEADERS.get(status, ()))
    refused.param = error.field or None
    return refused


def refusal_of_request(refused: RequestRefused) -> ModelRefused:
    """A request whose form or caller is not accepted."""
    if isinstance(refused, Unauthenticated) or type(refused) in errors.OF_CALLER:
        return refusal_of_error(errors.form_error(refused))
    return ModelRefused(refused.status, refused.code, str(refused), *refused.headers)
