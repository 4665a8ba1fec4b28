"""Errors of envelopes: each code has its status, and says whether the envelope may be sent again."""

import re

import pytest

from agnt.wire.errors import MEANINGS, EnvelopeRefused, ErrorCode, describe_error, error_headers
from lab import ROOT

REFERENCE_ROW = re.compile(r"^\| `(\w+)` \| ([45]\d\d) \| (yes|no) \|", re.MULTILINE)


def test_an_error_as_the_protocol_shows_it() -> None:
    refused = EnvelopeRefused(ErrorCode.CIRCUIT_OPEN, "the venue failed too often", retry_after_s=211.2)
    error = {"code": "circuit_open", "message": "the venue failed too often", "retryable": True}
    assert describe_error(refused) == {"status": "error", "error": error | {"retry_after_s": 212}}
    assert error_headers(refused) == {"X-A2A-Error": "circuit_open", "Retry-After": "212"}
    assert refused.status == 503


def test_an_error_names_fields_and_protocols() -> None:
    fields = EnvelopeRefused(ErrorCode.INVALID_ENVELOPE, "missing", fields=["from"])
    assert describe_error(fields)["error"]["fields"] == ["from"]
    assert "retry_after_s" not in describe_error(fields)["error"]
    protocol = EnvelopeRefused(ErrorCode.UNSUPPORTED_PROTOCOL, "no", supported=["openclaw/a2a/v1"])
    assert describe_error(protocol)["error"]["supported"] == ["openclaw/a2a/v1"]


def test_named_fields_are_bounded() -> None:
    refused = EnvelopeRefused(ErrorCode.INVALID_ENVELOPE, "unknown", fields=["x" * 1000] * 1000)
    assert describe_error(refused)["error"]["fields"] == ["x" * 64] * 16


@pytest.mark.parametrize(("code", "expected"), [("unauthorized", "Bearer"), ("invalid_signature", None)])
def test_only_a_missing_key_is_asked_for(code: str, expected: str | None) -> None:
    assert error_headers(EnvelopeRefused(ErrorCode(code), "no")).get("WWW-Authenticate") == expected


def test_the_reference_has_the_status_of_each_code() -> None:
    rows = REFERENCE_ROW.findall((ROOT / "docs" / "reference" / "agnt.md").read_text())
    assert set(MEANINGS) == set(ErrorCode)
    expected = {
        (code.value, str(meaning.status), "yes" if meaning.is_retryable else "no")
        for code, meaning in MEANINGS.items()
    }
    assert set(rows) == expected
