"""`python -m lab.attacks`, for a moment: attacks reach the hub, and honest callers are measured meanwhile."""

from dataclasses import replace
from pathlib import Path

import pytest

from lab.attacks.attacker import described
from lab.attacks.kinds import KINDS
from lab.attacks.outcome import AttackOutcome, Phase, as_markdown
from lab.attacks.run import run_attacks
from lab.bench.client import RawResponse
from tests.attempts import Attempts
from tests.bench.runs import run

SHORT = ("tokens", "deep_json", "markdown")
QUIET = Phase(run(10, p95_ms=10), run(10, p95_ms=20), 200.0)
CALM = AttackOutcome("a flood", 200.0, QUIET, QUIET, QUIET, {"200": 5, "429 rate_limited": 1_000})


def slowed(asks_ms: float, reads_ms: float, *, errors: int = 0) -> Phase:
    return Phase(run(10, p95_ms=asks_ms, errors=errors), run(10, p95_ms=reads_ms), 200.0)


def test_twice_as_slow_and_noticeably_so_is_starved() -> None:
    assert replace(CALM, during=slowed(19, 39)).flaws == []
    assert replace(CALM, during=slowed(11, 60)).flaws == ["during: p95 of reads 60 ms, quiet 20 ms"]
    assert replace(CALM, after=slowed(30, 20)).flaws == ["after: p95 of asks 30 ms, quiet 10 ms"]
    fast = Phase(run(10, p95_ms=1), run(10, p95_ms=1), 200.0)
    assert replace(CALM, quiet=fast, during=slowed(5, 10), after=fast).flaws == []


def test_an_unanswered_request_is_a_flaw() -> None:
    assert len(replace(CALM, during=slowed(10, 20, errors=1)).flaws) == 1


def test_an_attack_that_the_hub_did_not_notice_is_a_flaw() -> None:
    assert len(replace(CALM, ends={}).flaws) == 1


def test_memory_that_is_not_given_back_is_a_flaw_until_it_is() -> None:
    grown = CALM.with_rss(300)
    assert grown.flaws == ["memory: 200 MiB before, 300 MiB after"]
    assert grown.with_rss(239).flaws == []


def test_the_table_names_the_commonest_answers() -> None:
    assert as_markdown([CALM]).splitlines()[-1] == (
        "| a flood | 1,005 | 1.0 × | 1.0 × | 1.00 × | 1.00 × | 429 rate_limited (1,000), 200 (5) | no |"
    )


@pytest.mark.parametrize(
    ("status", "body", "wanted"),
    [
        (200, b'{"items": []}', "200"),
        (429, b'{"error": "rate_limited", "message": "later"}', "429 rate_limited"),
        (200, b'{"error": {"code": -32600}}', "200 -32600"),
        (200, b'{"result": {"state": "TASK_STATE_FAILED"}}', "200 failed task"),
        (502, b"<html>", "502"),
    ],
)
def test_answers_are_told_apart(status: int, body: bytes, wanted: str) -> None:
    assert described(RawResponse(status, body)) == wanted


@pytest.mark.attack
@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_each_attack_is_answered_and_a_table_is_printed(tmp_path: Path, attempts: Attempts) -> None:
    """Not whether a caller starved: the figures of a moment, beside other tests, do not tell."""
    outcomes = run_attacks(SHORT, tmp_path, 1.0, lambda _: None, tries=1)
    assert len(as_markdown(outcomes).splitlines()) == 2 + len(SHORT)
    for kind, outcome in zip(SHORT, outcomes, strict=True):
        assert outcome.title == KINDS[kind].__doc__
        attempts.count(f"one account against the others: {outcome.title}", outcome.requests)
        assert outcome.requests > 0
