"""Errors that callers of plain ASGI endpoints of REST get when a request fails."""

import pytest
from django.db import OperationalError

from agents.core.errors import Unavailable
from agents.core.rest_server import public_refusal
from kit.asgi import RETRY_SOON, RequestRefused


@pytest.mark.parametrize("failure", [Unavailable(), OperationalError("disk full")])
def test_a_database_that_is_away_is_a_503_that_says_when_to_retry(failure: Exception) -> None:
    refused = public_refusal(failure, "test.failed", "/path")
    assert (refused.status, refused.code, refused.headers) == (503, "unavailable", (RETRY_SOON,))


def test_a_fault_tells_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    refused = public_refusal(KeyError("secret"), "test.failed", "/path")
    assert (refused.status, refused.body) == (500, b'{"error":"internal","message":"internal error"}')
    assert [one.message for one in caplog.records] == ["test.failed"]


def test_a_refusal_is_told_as_it_is() -> None:
    refused = RequestRefused(404, "not_found", "no such thing")
    assert public_refusal(refused, "test.failed", "/path") is refused
