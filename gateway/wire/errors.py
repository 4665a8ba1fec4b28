"""The errors of `a2a-v1`: codes and names, and which one each refusal and failure of the hub is."""

from collections.abc import Mapping
from enum import IntEnum
from functools import partial

from agents.core.ask_starter import AmbiguousPeer, NoSuchTarget
from agents.core.errors import (
    Blocked,
    Busy,
    Cycle,
    Denied,
    FileGone,
    Halted,
    NotPublished,
    Offline,
    OverCap,
    RateLimited,
    TooDeep,
)
from agents.core.ports import MESSAGES_A_SECOND, MESSAGES_AT_ONCE
from agents.core.reasons import RefusalKind
from agents.models.choices import TurnFailure
from agents.transcript.access import NotAllowed
from kit.asgi import RETRY_SOON, Header, RequestRefused, retry_after


class GatewayErrorCode(IntEnum):
    """The registry of error codes; the name of a member is the name on the wire. `meaning`: for descriptions."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> "GatewayErrorCode":
        made = int.__new__(cls, code)
        made._value_, made.meaning = code, meaning
        return made

    CONNECTION_REFUSED = 1001, "the hub takes no more connections of this user or agent"
    CONNECTION_TIMEOUT = 1002, "no token came in time"
    CONNECTION_RESET = 1003, "the other end is gone"
    PROTOCOL_ERROR = 1004, "a binary frame, a frame over 1 MiB, another version, or too many errors"
    RATE_LIMITED = 1005, "too many frames or messages; retryAfterMs says how long to wait"
    INVALID_JSON = 2001, "the frame is not one JSON object"
    MISSING_FIELD = 2002, "a required field is missing"
    INVALID_TYPE = 2003, "a field has a value of another kind"
    UNKNOWN_TYPE = 2004, "there is no such type, or this hub does not serve it"
    INVALID_CONTENT = 2005, "a field has a value that is not allowed here"
    AGENT_NOT_FOUND = 3001, "there is no such agent, or it is not open to the sender"
    AGENT_OFFLINE = 3002, "the agent is not connected, and the message does not wait"
    AGENT_BUSY = 3003, "the agent works for another caller, and the message does not wait"
    AGENT_ERROR = 3004, "the agent failed, or did not answer in time"
    SESSION_NOT_FOUND = 4001, "there is no such session"
    SESSION_EXPIRED = 4002, "the session takes no more entries"
    SESSION_LOCKED = 4003, "another writer has the session"
    SESSION_CORRUPT = 4004, "the session cannot be read"
    AUTH_REQUIRED = 5001, "sign in first"
    AUTH_FAILED = 5002, "the token or the signature is not valid"
    TOKEN_EXPIRED = 5003, "the token has expired"
    PERMISSION_DENIED = 5004, "the sender may not do this"


MESSAGE_ERRORS = range(2000, 3000)
TOO_LATE = frozenset({"proposal_closed"})  # reasons of frames that were in order: they end no connection


class FrameRefused(Exception):
    """A frame is answered by an error; the exception's own text is public.

    `field`: what is wrong in the frame; `reason`: for programs; `close_code`: how the socket ends after it, 0: it
    stays open. `correlation_id`, `frame_id`, `frame_type`: of the refused frame, as far as it could be read.
    `is_silent`: the frame is an error itself, and gets no answer.
    """

    def __init__(
        self,
        code: GatewayErrorCode,
        message: str,
        *,
        field: str = "",
        reason: str = "",
        retry_after_ms: int = 0,
        close_code: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.field = field
        self.reason = reason
        self.retry_after_ms = retry_after_ms
        self.close_code = close_code
        self.correlation_id = self.frame_id = self.frame_type = ""
        self.is_silent = False

    def about(self, correlation_id: str, frame_id: str) -> "FrameRefused":
        """Note the frame that is refused."""
        self.correlation_id, self.frame_id = correlation_id, frame_id
        return self

    @property
    def name(self) -> str:
        """The code of the error in REST: its reason, else the name of the code."""
        return self.reason or self.code.name.lower()

    @property
    def retry_headers(self) -> list[Header]:
        """The HTTP header that says when to try again, if a time is known."""
        return [retry_after(-(-self.retry_after_ms // 1000))] if self.retry_after_ms else []


# The refusals of what a frame says, and of what its sender may not do.
missing = partial(FrameRefused, GatewayErrorCode.MISSING_FIELD)
bad_type = partial(FrameRefused, GatewayErrorCode.INVALID_TYPE)
bad_content = partial(FrameRefused, GatewayErrorCode.INVALID_CONTENT)
forbidden = partial(FrameRefused, GatewayErrorCode.PERMISSION_DENIED)

DENIED_TEXT = "the agent may not be asked now: a limit is reached, or the turn in which you ask has ended"
MESSAGES_TEXT = f"at most {MESSAGES_A_SECOND:g} messages a second of one token, {MESSAGES_AT_ONCE:g} at once"
NOT_FOUND = "there is no such agent, or it is not open to you"
_OTHERS: Mapping[type[Exception], tuple[GatewayErrorCode, str]] = {
    NoSuchTarget: (GatewayErrorCode.AGENT_NOT_FOUND, NOT_FOUND),
    FileGone: (GatewayErrorCode.INVALID_CONTENT, "a file that the message names is not there for you"),
    NotPublished: (GatewayErrorCode.AGENT_NOT_FOUND, NOT_FOUND),
    NotAllowed: (GatewayErrorCode.PERMISSION_DENIED, "you may see this agent, and not send it messages"),
    AmbiguousPeer: (GatewayErrorCode.AGENT_NOT_FOUND, "several agents have that name: write @owner/name"),
}
CODES: Mapping[RefusalKind, GatewayErrorCode] = {
    RefusalKind.OFFLINE: GatewayErrorCode.AGENT_OFFLINE,
    RefusalKind.BUSY: GatewayErrorCode.AGENT_BUSY,
    RefusalKind.TOO_FAST: GatewayErrorCode.RATE_LIMITED,
    RefusalKind.FORBIDDEN: GatewayErrorCode.PERMISSION_DENIED,
    RefusalKind.PASSED_ON: GatewayErrorCode.INVALID_CONTENT,
}
_OWN_TEXTS: Mapping[type[Denied], str] = {
    Offline: "the agent is offline",
    Busy: "the agent works for another caller",
    OverCap: "you have as many open messages at this agent as one caller may have",
    Blocked: "the agent's owner blocked you",
    Halted: "the agent, its owner or you are halted",
    TooDeep: "too many agents passed the message on",
    Cycle: "the message came through this agent already",
}
_FAILED: dict[str, tuple[GatewayErrorCode, str, str]] = {
    TurnFailure.TIMEOUT: (GatewayErrorCode.AGENT_ERROR, "response_timeout", "the agent did not answer in time"),
    TurnFailure.CHANNEL_LOST: (GatewayErrorCode.AGENT_OFFLINE, "", "the agent's connection was lost"),
    TurnFailure.NOT_DELIVERED: (GatewayErrorCode.AGENT_OFFLINE, "", "the agent never got the message"),
    TurnFailure.PROCESS_DIED: (GatewayErrorCode.AGENT_OFFLINE, "", "the agent's connection was lost"),
    TurnFailure.SHUTDOWN: (GatewayErrorCode.AGENT_OFFLINE, "shutdown", "the hub restarts"),
}


def error_code_of(denied: Denied | type[Denied]) -> GatewayErrorCode:
    """The code of a refusal of admission."""
    return CODES.get(denied.entry.kind, GatewayErrorCode.AGENT_ERROR)


def denied_error(refusal: Exception) -> FrameRefused:
    """The error for an ask that the hub refused; nothing was sent to the agent."""
    if isinstance(refusal, RateLimited):
        text = MESSAGES_TEXT if refusal.counts_messages else "you ask faster than a caller may in a minute"
        return FrameRefused(error_code_of(refusal), text, retry_after_ms=refusal.retry_in_s * 1000)
    if isinstance(refusal, Denied):
        code = error_code_of(refusal)
        text = DENIED_TEXT if code is GatewayErrorCode.AGENT_ERROR else refusal.text("the agent")
        return FrameRefused(code, _OWN_TEXTS.get(type(refusal), text), reason=refusal.reason)
    if type(refusal) in _OTHERS:
        return FrameRefused(*_OTHERS[type(refusal)])
    return FrameRefused(GatewayErrorCode.AGENT_ERROR, "the hub cannot deliver this now", reason="unavailable")


def failed_turn_error(reason: str, agents_text: str) -> FrameRefused:
    """The error for a turn that ended without a reply. `agents_text`: the agent's own reason, if it gave one."""
    code, name, text = _FAILED.get(reason, (GatewayErrorCode.AGENT_ERROR, reason, "the agent did not answer"))
    return FrameRefused(code, agents_text or text, reason=name)


STATUSES = {
    GatewayErrorCode.RATE_LIMITED: 429,
    GatewayErrorCode.AGENT_NOT_FOUND: 409,
    GatewayErrorCode.AGENT_OFFLINE: 409,
    GatewayErrorCode.AGENT_BUSY: 409,
    GatewayErrorCode.INVALID_CONTENT: 422,
    GatewayErrorCode.PERMISSION_DENIED: 403,
}
OUT_OF_BUDGET = 429  # the HTTP status of a limit that has no code in the protocol


def request_error(failure: Exception) -> Exception:
    """The error in REST for what the hub refused before it sent anything; other failures stay as they are."""
    if not isinstance(failure, FrameRefused):
        return failure
    if failure.reason == "unavailable":
        return RequestRefused(503, "unavailable", str(failure), RETRY_SOON)
    status = STATUSES.get(failure.code, OUT_OF_BUDGET)
    return RequestRefused(status, failure.name, str(failure), *failure.retry_headers)


def reply_error(refused: FrameRefused) -> RequestRefused:
    """The error in REST for what was sent, or may have been, and got no reply."""
    return RequestRefused(504 if refused.reason == "response_timeout" else 502, refused.name, str(refused))
