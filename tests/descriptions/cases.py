"""Requests that schemathesis generates: how one is sent, checked, recorded and read again."""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.core import NOT_SET
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from hub.descriptions.openapi import openapi
from tests.descriptions.seeded import HOOK, Seeded

ORDER = ("get", "patch", "put", "post", "delete")  # what takes away comes last
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
OPTIONS = {  # no server listens at GITHUB_URL: no call of these gets as far as asking there
    "DEMO": 1,
    "SIGNIN_RATE_PER_MINUTE": 1_000_000,
    "GITHUB_CLIENT_ID": "client",
    "GITHUB_CLIENT_SECRET": "secret",
    "GITHUB_URL": "http://127.0.0.1:9",
    "WEBHOOK_ALLOW_PRIVATE": 1,
}
MODES = ("positive", "negative")
WITHIN_S = 30
MIN_TTL_MS = 15_000
RECORDED = Path(__file__).with_name("recorded_cases.json")
KEPT_EACH = 3
MAX_CHARACTERS = 2000
FIELDS = ("path_parameters", "headers", "cookies", "query", "body", "media_type")
BYTES = "hexadecimal bytes"
Recorded = dict[str, list[dict[str, Any]]]
Call = tuple[str, str]


def in_order(calls: Iterable[Call]) -> list[Call]:
    return sorted(calls, key=lambda call: (ORDER.index(call[1]), call[0]))


@cache
def described_calls() -> list[Call]:
    """Every call of the description, which takes most of a second to make: not while tests are collected."""
    return in_order((path, method) for path, item in openapi()["paths"].items() for method in item)


def recorded_calls() -> list[Call]:
    named = {tuple(key.split(" ")[:2]) for key in read_recorded()}
    return in_order((path, verb.lower()) for verb, path in named)


def key_of(call: Call, mode: str, *, is_own: bool) -> str:
    return f"{call[1].upper()} {call[0]} {mode} {'own' if is_own else 'any'}"


def send_and_check(
    seeded: Seeded, operation: Any, case: Any, *, is_own: bool, more_checks: Sequence[CheckFunction] = ()
) -> int:
    """Send a case with the credential its operation takes, check the answer; its status.

    With `is_own` the logins, sessions and addresses in body and query are replaced by ones that exist. An envelope
    gets a time to live in which it can be answered.
    """
    ttl_ms = case.body.get("ttl_ms") if isinstance(case.body, dict) else None
    if type(ttl_ms) is int and 0 < ttl_ms < MIN_TTL_MS:
        case.body["ttl_ms"] = MIN_TTL_MS
    if is_own and isinstance(case.body, dict) and "url" in case.body:
        case.body["url"] = HOOK
    if is_own and isinstance(case.body, dict) and operation.path.endswith("/prompt"):
        case.body.setdefault("text", "hello")  # the description lets text be absent beside attachments
    if is_own and isinstance(case.body, dict) and "login" in case.body:
        case.body["login"] = seeded.names["login"]
    for given in (case.body, case.query) if is_own else ():
        if isinstance(given, dict) and given.pop("remote", None) is not None:
            given["sessionId"] = ""  # an agent has a session or a remote address
        if isinstance(given, dict) and "sessionId" in given:
            given["sessionId"] = seeded.free_session
        if isinstance(given, dict) and "login" in given:
            given["login"] = "bob"
    answer = case.call(
        headers=seeded.headers(operation, is_own=is_own),
        session=seeded.http,
        allow_redirects=False,
        timeout=WITHIN_S,
    )
    case.validate_response(answer, checks=[*CHECKS, *more_checks])
    return int(answer.status_code)


def as_json(case: Any) -> dict[str, Any]:
    fields = {name: getattr(case, name) for name in FIELDS}
    kept = {name: _plain(value) for name, value in fields.items() if value is not None and value is not NOT_SET}
    return {name: value for name, value in kept.items() if value or name == "body"}


def from_json(seeded: Seeded, operation: Any, kept: dict[str, Any], *, is_own: bool) -> Any:
    """The case again. With `is_own` the path leads to what there is in this run."""
    fields = {name: _rich(value) for name, value in kept.items()}
    if is_own:
        fields["path_parameters"] = fields.get("path_parameters", {}) | seeded.own(operation)
    return operation.Case(**fields)


def choose(tried: list[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Of what was tried, by status and request: a few small ones, of each status one if there is room."""
    small = [(status, one) for status, one in tried if len(json.dumps(one)) <= MAX_CHARACTERS]
    first = dict(reversed(small))
    further = [one for _, one in small if one not in first.values()]
    return [*first.values(), *further][:KEPT_EACH]


@cache
def read_recorded() -> Recorded:
    recorded: Recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return recorded


def write_recorded(recorded: Recorded) -> None:
    """Put cases into the file, in place of those of the same calls; calls that are gone go from it."""
    known = {
        key_of(call, mode, is_own=own) for call in described_calls() for mode in MODES for own in (True, False)
    }
    kept = {key: cases for key, cases in (read_recorded() | recorded).items() if key in known}
    lines = [f"{json.dumps(key)}: {json.dumps(cases, sort_keys=True)}" for key, cases in sorted(kept.items())]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {BYTES: value.hex()}
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _rich(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {BYTES}:
            return bytes.fromhex(value[BYTES])
        return {key: _rich(one) for key, one in value.items()}
    return [_rich(one) for one in value] if isinstance(value, list) else value
