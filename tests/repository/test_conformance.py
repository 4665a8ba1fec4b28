"""The page on conformance says what the record of the last run of the kit says."""

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.profile import (
    EXPLAINED,
    KINDS,
    PAGE,
    RECORD,
    UNEXPLAINED,
    Record,
    Requirement,
    decode,
    encode,
    join,
    page_of,
    read_report,
)

REPORT: dict[str, Any] = {
    "summary": {"timestamp": "2026-11-20T10:00:00+00:00", "sut_url": "http://hub", "must_compatibility": "75.0%"},
    "per_requirement": {
        "CORE-SEND-002": {
            "level": "MUST",
            "status": "FAIL",
            "transports": {"jsonrpc": "FAIL", "http_json": "PASS"},
            "errors": ["no"],
            "test_ids": ["t"],
        },
        "CORE-SEND-001": {"level": "MUST", "status": "PASS", "transports": {"jsonrpc": "PASS"}},
        "PUSH-001": {"level": "MUST", "status": "SKIPPED", "transports": {}},
        "CORE-HIST-001": {"level": "SHOULD", "status": "NOT TESTED", "transports": {}},
        "CORE-X-001": {"level": "MAY", "status": "PASS"},
    },
    "per_transport": {},
}


def test_the_page_and_the_record_agree() -> None:
    record = decode(RECORD.read_bytes()) if RECORD.exists() else None
    assert PAGE.read_text() == page_of(record)
    if record is not None:
        assert RECORD.read_bytes() == encode(record)


def test_each_failure_of_the_record_is_explained() -> None:
    assert UNEXPLAINED not in PAGE.read_text()


def test_runs_against_two_kinds_of_hub_are_one_record() -> None:
    name = next(iter(EXPLAINED))
    good = Record("1", "2026-01-01", {name: Requirement("MUST", "PASS", {"jsonrpc": "PASS"})})
    bad = Record("1", "2026-01-02", {name: Requirement("MUST", "FAIL", {"jsonrpc": "FAIL"})})
    record = join({"embedded": good, "grown": bad})
    assert (record.day, record.homes, record.requirements[name].status) == (
        "2026-01-02",
        ["embedded", "grown"],
        "FAIL",
    )
    page = page_of(record)
    assert f"- `{name}` (jsonrpc on grown): {EXPLAINED[name]}." in page
    assert f"on each kind of hub ({'; '.join(KINDS.values())})" in page


def test_without_a_record_the_page_claims_nothing() -> None:
    page = page_of(None)
    assert "No run of the A2A conformance kit" in page
    assert "|" not in page


def test_a_report_becomes_a_record_and_a_page() -> None:
    record = read_report(json.dumps(REPORT).encode(), "commit 1234567")
    assert decode(encode(record)) == record
    assert record.requirements["CORE-SEND-001"] == Requirement("MUST", "PASS", {"jsonrpc": "PASS"})
    page = page_of(record)
    must, should = page.split("## MUST")[1].split("## SHOULD")
    assert "commit 1234567) of 2026-11-20" in page
    for row in ("| `CORE-SEND` | 1 | 1 | 0 | 0 |", "| `PUSH` | 0 | 0 | 1 | 0 |", "| **all** | 1 | 1 | 1 | 0 |"):
        assert row in must
    assert f"- `CORE-SEND-002` (jsonrpc): {UNEXPLAINED}." in must
    assert "| **all** | 0 | 0 | 0 | 1 |" in should
    assert "- `CORE-HIST-001`" in should
    assert "CORE-X-001" not in page


def test_what_is_no_report_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for raw in [
        b"{}",
        b"no JSON",
        json.dumps(REPORT | {"per_requirement": {"A-001": {"level": "MUST", "status": "PERHAPS"}}}).encode(),
        json.dumps(REPORT | {"per_requirement": {"A-001": {"level": "MUST", "status": "NOT TESTED"}}}).encode(),
    ]:
        with subtests.test(raw=raw), pytest.raises(ValueError, match=r"."):
            read_report(raw, "1")


def test_a_page_lists_nothing_where_all_passed() -> None:
    page = page_of(Record("1.0", "2026-01-01", {"A-1": Requirement("MUST", "PASS")}))
    assert "Failed:" not in page
