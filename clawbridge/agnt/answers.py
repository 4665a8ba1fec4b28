"""Reads responses: a checked answer, or the error that the other side names. The module does no I/O."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from clawbridge.agnt.asks import Ask, CallFailed
from clawbridge.agnt.breakers import Blame, blame_status
from clawbridge.agnt.fields import MEANINGS, PROTOCOL, ErrorCode, Json

MAX_ANSWER_BYTES = 1_048_576
MAX_MESSAGE_CHARS = 500
MAX_SHOWN_BYTES = 4_000  # as UTF-8, of a text that is cut to fewer characters
MAX_RETRY_AFTER_S = 86_400
OK = 200
TOO_MANY = 429
_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SECONDS = re.compile(r"[0-9]{1,9}", re.ASCII)
_KNOWN = {code.value: code for code in ErrorCode}
_CODES = {  # of answers that are no envelopes, such as those of a proxy
    401: ErrorCode.UNAUTHORIZED,
    403: ErrorCode.SCOPE_DENIED,
    413: ErrorCode.PAYLOAD_TOO_LARGE,
    TOO_MANY: ErrorCode.RATE_LIMITED,
    504: ErrorCode.TTL_EXCEEDED,
}

Parse = Callable[[bytes], Any]
"""Reads JSON; raises ValueError for what it does not take."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The result of an ask; `payload` is never empty. `is_replay`: the stored answer of an earlier try."""

    payload: Json
    agent_context: Json
    is_replay: bool = False


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole answer. `headers`: names in lower case. `body`: as it came, not decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswer(Exception):
    """No whole answer came; the text says why, and may be shown to the user who gave the URL.

    `was_sent`: the other side may have read the request. `retryable`: another try may succeed.
    """

    def __init__(self, message: str, *, was_sent: bool, retryable: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent
        self.retryable = retryable


class _Unsound(Exception):
    """The body is no response to the ask."""


def read_response(response: Any, ask: Ask) -> Answer:
    """The answer in a response envelope, which is the data part of a venue's reply.

    Raises:
        CallFailed: it is an error, or no response to this ask.
    """
    try:
        return _read_envelope(response, ask, OK, {})
    except _Unsound as unsound:
        raise CallFailed(ErrorCode.VENUE_UNREACHABLE, f"the answer {unsound}", blame=Blame.VENUE) from None


def read_answer(got: HttpAnswer, ask: Ask, parse: Parse) -> Answer:
    """The answer in an HTTP response.

    Raises:
        CallFailed: it is an error, or no response to this ask.
    """
    try:
        return _read_envelope(_read_json(got, parse), ask, got.status, got.headers)
    except CallFailed as failed:
        failed.said = _show(got)
        raise
    except _Unsound as unsound:
        raise CallFailed(
            _CODES.get(got.status, ErrorCode.VENUE_UNREACHABLE),
            f"HTTP {got.status}: the answer {unsound}",
            retryable=got.status == TOO_MANY or blame_status(got.status).is_failure,
            retry_after_s=_seconds(got.headers.get("retry-after")),
            blame=Blame.VENUE if got.status == OK else blame_status(got.status),
            said=_show(got),
        ) from None


def parse_json(body: bytes) -> Any:
    """The value of a body.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return json.loads(body, parse_constant=_refuse_constant, parse_float=_read_finite)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _read_json(got: HttpAnswer, parse: Parse) -> Any:
    if got.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise _Unsound("is compressed")
    if got.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise _Unsound("is not JSON")
    try:
        return parse(got.body)
    except ValueError:
        raise _Unsound("is not JSON") from None


def _read_envelope(response: Any, ask: Ask, status: int, headers: Mapping[str, str]) -> Answer:
    payload = response.get("payload") if isinstance(response, dict) else None
    if not isinstance(payload, dict) or response.get("protocol") != PROTOCOL:
        raise _Unsound(f"is no envelope of {PROTOCOL}")
    if payload.get("status") == "error":
        raise _read_error(payload.get("error"), status, headers)
    if status != OK:
        raise _Unsound("has no error")
    if not payload:
        raise _Unsound("is empty")
    if (response.get("from"), response.get("to"), response.get("intent")) != (ask.to, ask.sender, ask.intent):
        raise _Unsound("is one to another envelope")
    context = response.get("agent_context")
    return Answer(
        payload=payload,
        agent_context=context if isinstance(context, dict) else {},
        is_replay=headers.get("idempotent-replay", "").lower() == "true",
    )


def _read_error(error: Any, status: int, headers: Mapping[str, str]) -> CallFailed:
    word = error.get("code") if isinstance(error, dict) else None
    if not isinstance(word, str) or not _WORD.fullmatch(word):
        raise _Unsound("is an error without a code")
    code = _KNOWN.get(word)
    said, retryable = error.get("message"), error.get("retryable")
    return CallFailed(
        code or word,
        said[:MAX_MESSAGE_CHARS] if isinstance(said, str) and said else word,
        retryable=retryable if isinstance(retryable, bool) else code is not None and MEANINGS[code].is_retryable,
        retry_after_s=_seconds(error.get("retry_after_s")) or _seconds(headers.get("retry-after")),
        blame=Blame.NONE if code == ErrorCode.CIRCUIT_OPEN else blame_status(status),
    )


def _show(got: HttpAnswer) -> str:
    """The beginning of a body, for a log."""
    return got.body[:MAX_SHOWN_BYTES].decode(errors="replace")


def _seconds(value: Any) -> float:
    """The seconds to wait that an error or the header `Retry-After` names; 0: none."""
    if isinstance(value, str) and _SECONDS.fullmatch(value):
        value = int(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        return 0.0
    return float(min(value, MAX_RETRY_AFTER_S))


def _read_finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
