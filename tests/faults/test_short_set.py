"""The short set of the fault suite: the grown hub under load, killed and cut off, and nothing broken."""

import tempfile
from pathlib import Path

import pytest

from lab.faults.invariants import as_markdown, examples
from lab.faults.kinds import chosen
from lab.faults.run import Todo, run
from lab.waiting import SCALE
from tests.faults.test_short_network import HERE as ELSEWHERE

pytestmark = [pytest.mark.slow, pytest.mark.distributed]


QUICK = "F1=1,F3,F7,F9=2,I13"  # one of each kind: a web process, Redis, PostgreSQL, agents, tokens


@pytest.mark.deep
@pytest.mark.timeout(200)
async def test_no_invariant_breaks_in_the_quick_set() -> None:
    """On a hub whose durations are scaled like those of all tests."""
    await _check(chosen(QUICK), scale=SCALE)


@pytest.mark.deep
@pytest.mark.timeout(600)
async def test_no_invariant_breaks_in_the_short_set() -> None:
    """Real speed."""
    await _check([(fault, count) for fault, count in chosen("short") if fault.name not in ELSEWHERE], scale=1)


async def _check(todo: Todo, *, scale: float) -> None:
    with tempfile.TemporaryDirectory(prefix="hub-faults-") as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user when we are root
        outcome = await run(todo, Path(folder), asks=0, scale=scale)
    assert outcome.asks > 100
    assert not outcome.violations, f"{as_markdown(outcome.rows)}\n{examples(outcome.rows)}"
