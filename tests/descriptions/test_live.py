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
    response_schema_conformance,
    status_code_conformance,
)

from hub.descriptions.openapi import openapi
from tests.conftest import MakeHome
from tests.descriptions.seeded import Seeded, seed
from tests.hub_process import HubProcess

pytestmark = pytest.mark.slow

CALLS = [(path, method) for path, item in openapi()["paths"].items() for method in item]
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
WITHIN_S = 30
OPTIONS = {  # nobody listens at GITHUB_URL: no call of these gets as far as asking there
    "DEMO": 1,
    "SIGNIN_RATE_PER_MINUTE": 1_000_000,
    "GITHUB_CLIENT_ID": "client",
    "GITHUB_CLIENT_SECRET": "secret",
    "GITHUB_URL": "http://127.0.0.1:9",
}


@pytest.fixture(scope="module")
def live(make_home: MakeHome) -> Iterator[tuple[Seeded, Any]]:
    hub = HubProcess.start(make_home("embedded"), **OPTIONS)
    try:
        url = f"{hub.url}/api/v1/schema"
        yield seed(hub), schemathesis.from_url(url, wait_for_schema=WITHIN_S)
    finally:
        hub.stop()


@pytest.mark.parametrize("values", ["known", "any"])
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=lambda one: one.value)
@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_every_answer_is_as_described(
    live: tuple[Seeded, Any], call: tuple[str, str], mode: GenerationMode, values: str
) -> None:
    seeded, schema = live
    operation = schema[call[0]][call[1].upper()]
    fixed = seeded.known(operation) if values == "known" else {}
    if values == "known" and not fixed:
        pytest.skip("no name in its path")
    cases = operation.as_strategy(generation_mode=mode, path_parameters=fixed or None)

    @settings(
        max_examples=15, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(case=cases)
    def ask(case: Any) -> None:
        answer = case.call(
            headers=seeded.headers(operation), session=seeded.http, allow_redirects=False, timeout=WITHIN_S
        )
        case.validate_response(answer, checks=CHECKS)

    with suppress(*([Unsatisfiable] if mode is GenerationMode.NEGATIVE else [])):  # nothing of it can be wrong
        ask()
