"""Schemathesis asks a running hub: whatever it sends, each answer is one that is described, and none a crash."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis import openapi as schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    response_schema_conformance,
    status_code_conformance,
)

from hub.descriptions.openapi import openapi
from tests.conftest import MakeHome
from tests.descriptions.seeded import HOOK, NOT_OFFERED, Seeded, seed
from tests.hub_process import HubProcess

pytestmark = pytest.mark.slow

ORDER = ("get", "patch", "put", "post", "delete")  # what takes away comes last
CALLS = sorted(
    ((path, method) for path, item in openapi()["paths"].items() for method in item),
    key=lambda call: (ORDER.index(call[1]), call[0]),
)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    ignored_auth,
]
NEVER_BY_CHANCE = {  # these take a code that somebody was given, or a server that is there; other tests do that
    "getOAuthCallback",
    "postOAuthToken",
    "getSpaStart",
    "postSpaExchange",
    "postDeviceToken",
    "postRemoteCards",
    "postAdminHalts",  # or the name of somebody who is there, or one's own
    "deleteAdminHalt",
    "deleteAccount",
    "sendMessage",  # and these a sound message, or a task that has not ended
    "streamMessage",
    "cancelTask",
    "subscribeToTask",
    "followTask",
}
WITHIN_S = 30
OPTIONS = {  # nobody listens at GITHUB_URL: no call of these gets as far as asking there
    "DEMO": 1,
    "SIGNIN_RATE_PER_MINUTE": 1_000_000,
    "GITHUB_CLIENT_ID": "client",
    "GITHUB_CLIENT_SECRET": "secret",
    "GITHUB_URL": "http://127.0.0.1:9",
    "WEBHOOK_ALLOW_PRIVATE": 1,
}


@pytest.fixture(scope="module")
def live(make_home: MakeHome) -> Iterator[tuple[Seeded, Any]]:
    hub = HubProcess.start(make_home("embedded"), **OPTIONS)
    try:
        url = f"{hub.url}/api/v1/schema"
        yield seed(hub), schemathesis.from_url(url, wait_for_schema=WITHIN_S)
    finally:
        hub.stop()


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda one: one.value)
@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_every_answer_about_what_there_is_is_as_described(
    live: tuple[Seeded, Any], call: tuple[str, str], mode: GenerationMode
) -> None:
    seeded, schema = live
    operation = schema[call[0]][call[1].upper()]
    statuses = ask(seeded, operation, mode, is_own=True)
    if (
        mode is GenerationMode.POSITIVE
        and operation.definition.raw["operationId"] not in NEVER_BY_CHANCE | NOT_OFFERED
    ):
        assert any(status < 400 for status in statuses), statuses


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda one: one.value)
@pytest.mark.parametrize("call", [call for call in CALLS if "{" in call[0]], ids=" ".join)
def test_every_answer_about_what_may_not_be_is_as_described(
    live: tuple[Seeded, Any], call: tuple[str, str], mode: GenerationMode
) -> None:
    seeded, schema = live
    ask(seeded, schema[call[0]][call[1].upper()], mode, is_own=False)


def ask(seeded: Seeded, operation: Any, mode: GenerationMode, *, is_own: bool) -> list[int]:
    """Send what schemathesis makes up and check every answer; their statuses."""
    statuses: list[int] = []
    cases = operation.as_strategy(generation_mode=mode, path_parameters=seeded.own(operation) if is_own else None)

    @settings(
        max_examples=15, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(case=cases)
    def one(case: Any) -> None:
        if is_own and isinstance(case.body, dict) and "url" in case.body:
            case.body["url"] = HOOK
        if is_own and isinstance(case.body, dict) and "login" in case.body:
            case.body["login"] = seeded.names["login"]
        for told in (case.body, case.query) if is_own else ():
            if isinstance(told, dict) and told.pop("remote", None) is not None:
                told["sessionId"] = ""  # an agent is the one or the other
            if isinstance(told, dict) and "sessionId" in told:
                told["sessionId"] = seeded.free_session
            if isinstance(told, dict) and "login" in told:
                told["login"] = "bob"
        answer = case.call(
            headers=seeded.headers(operation, is_own=is_own),
            session=seeded.http,
            allow_redirects=False,
            timeout=WITHIN_S,
        )
        statuses.append(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    with suppress(*([Unsatisfiable] if mode is GenerationMode.NEGATIVE else [])):  # nothing of it can be wrong
        one()
    return statuses
