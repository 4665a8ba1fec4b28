"""Requests that schemathesis generated once, sent again: each answer is one that is described, and none a crash.

`test_generated.py` (`make test-deep`) generates new ones, and says how these are recorded. That each call takes a
credential is shown by tests/tenancy/test_matrix.py.
"""

from typing import Any

import pytest

from tests.descriptions.cases import (
    MODES,
    described_calls,
    from_json,
    key_of,
    read_recorded,
    recorded_calls,
    send_and_check,
)
from tests.descriptions.seeded import Seeded

RECORDED = read_recorded()
HOW = "record its cases: RECORD_CASES=1 .venv/bin/python -m pytest tests/descriptions/test_generated.py"


@pytest.mark.slow
@pytest.mark.parametrize("call", recorded_calls(), ids=" ".join)
def test_recorded_requests_get_described_answers(live: tuple[Seeded, Any], call: tuple[str, str]) -> None:
    seeded, operation = live[0], live[1][call[0]][call[1].upper()]
    seeded.prepare(operation)
    for mode in MODES:
        for is_own in (True, False):
            for kept in RECORDED.get(key_of(call, mode, is_own=is_own), []):
                case = from_json(seeded, operation, kept, is_own=is_own)
                send_and_check(seeded, operation, case, is_own=is_own)


@pytest.mark.slow
def test_a_changed_network_changes_no_later_case(live: tuple[Seeded, Any]) -> None:
    live[0].call("PATCH", "/network", json={"requiresSignature": True})
    assert serves(live, "/a2a/v1")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [("agent", "demo/echo"), ("caller", "demo")])
def test_a_halt_changes_no_later_case(live: tuple[Seeded, Any], kind: str, name: str) -> None:
    live[0].call("POST", "/admin/halts", json={"kind": kind, "name": name})
    assert serves(live, "/api/v1/peers/{peer}/route")


def serves(live: tuple[Seeded, Any], path: str) -> bool:
    """True if a POST there still serves some recorded request, after the preparation for it."""
    seeded, operation = live[0], live[1][path]["POST"]
    seeded.prepare(operation)
    kept = RECORDED[key_of((path, "post"), "positive", is_own=True)]
    cases = [from_json(seeded, operation, one, is_own=True) for one in kept]
    return any(send_and_check(seeded, operation, case, is_own=True) < 400 for case in cases)


def test_each_call_has_recorded_requests() -> None:
    assert not [call for call in described_calls() if not RECORDED.get(key_of(call, "positive", is_own=True))], HOW
