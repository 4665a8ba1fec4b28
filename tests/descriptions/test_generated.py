"""Schemathesis asks a running hub: whatever it sends, each answer is one that is described, and none a crash.

With RECORD_CASES=1 in the environment (and without `-n`) some of what it sends is kept for `test_recorded.py`.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import ignored_auth

from tests.descriptions.cases import (
    Recorded,
    as_json,
    choose,
    described_calls,
    key_of,
    send_and_check,
    write_recorded,
)
from tests.descriptions.seeded import NOT_OFFERED, Seeded

pytestmark = [pytest.mark.slow, pytest.mark.deep]

NEVER_BY_CHANCE = {  # these take a code that was given out before, or a server that is there; other tests do that
    "getOAuthCallback",
    "postOAuthToken",
    "getOidcStart",
    "getOidcCallback",
    "getSpaStart",
    "postSpaExchange",
    "postDeviceToken",
    "postRegisterClient",  # or an address that a browser may be sent to
    "postTokenOfClient",
    "postRemoteCards",
    "getCardBelow",  # or an address that a client is given
    "getCardChange",  # or a remote server whose card changed
    "postCardChange",
    "postAgents",  # or fields that suit each other
    "postQuestionSets",  # or the handle of an agent of the owner
    "postGroups",  # or a name that is free
    "deleteGroupAccount",
    "postAdminHalts",  # or a login that exists, or one's own
    "deleteAdminHalt",
    "deleteAccount",
    "getOneLetter",  # or a message that waited for an agent
    "deleteOneLetter",
    "postLetterRetry",
    "getExportSession",  # or an agent and a session that are there
    "postImportSessions",  # or a file that is one
    "postImportVenues",
    "getFilePreview",  # or a file of a question
    "shareAnswer",  # or a task of one's own
    "createChatCompletion",
    "createResponse",
    "reportProblem",  # or a question to an agent of another owner
    "sendMessage",  # and these a sound message, or a task that has not ended
    "streamMessage",
    "cancelTask",
    "subscribeToTask",
    "followTask",
}
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorded]:
    """Filled by each test; written when they are over, if that is wanted."""
    cases: Recorded = {}
    yield cases
    if os.environ.get("RECORD_CASES") == "1":
        write_recorded(cases)


@pytest.mark.parametrize("mode", MODES, ids=lambda one: one.value)
@pytest.mark.parametrize("call", described_calls(), ids=" ".join)
def test_every_answer_about_what_there_is_is_as_described(
    live: tuple[Seeded, Any], recorded: Recorded, call: tuple[str, str], mode: GenerationMode
) -> None:
    tried = ask(live, call, mode, is_own=True)
    recorded[key_of(call, mode.value, is_own=True)] = choose(tried)
    operation_id = live[1][call[0]][call[1].upper()].definition.raw["operationId"]
    if mode is GenerationMode.POSITIVE and operation_id not in NEVER_BY_CHANCE | NOT_OFFERED:
        assert any(status < 400 for status, _ in tried), tried


@pytest.mark.parametrize("mode", MODES, ids=lambda one: one.value)
@pytest.mark.parametrize("call", [call for call in described_calls() if "{" in call[0]], ids=" ".join)
def test_every_answer_about_what_may_not_be_is_as_described(
    live: tuple[Seeded, Any], recorded: Recorded, call: tuple[str, str], mode: GenerationMode
) -> None:
    recorded[key_of(call, mode.value, is_own=False)] = choose(ask(live, call, mode, is_own=False))


def ask(
    live: tuple[Seeded, Any], call: tuple[str, str], mode: GenerationMode, *, is_own: bool
) -> list[tuple[int, dict[str, Any]]]:
    """Send what schemathesis generates and check every answer; status and request of each."""
    seeded, operation = live[0], live[1][call[0]][call[1].upper()]
    seeded.prepare(operation)
    tried: list[tuple[int, dict[str, Any]]] = []
    cases = operation.as_strategy(generation_mode=mode, path_parameters=seeded.own(operation) if is_own else None)

    @settings(max_examples=15, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=cases)
    def one(case: Any) -> None:
        sent = as_json(case)
        status = send_and_check(seeded, operation, case, is_own=is_own, more_checks=[ignored_auth])
        tried.append((status, sent))

    with suppress(*([Unsatisfiable] if mode is GenerationMode.NEGATIVE else [])):  # nothing of it can be wrong
        one()
    return tried
