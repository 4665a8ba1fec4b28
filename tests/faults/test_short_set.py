"""The short set of the fault suite: the grown hub under load, killed and cut off, and nothing broken."""

import pytest

from lab.faults.kinds import chosen
from lab.waiting import SCALE
from tests.faults.test_short_network import HERE as ELSEWHERE
from tests.faults.test_short_network import check_invariants

pytestmark = [pytest.mark.slow, pytest.mark.distributed]


QUICK = "F1=1,F3,F7,F9=2,I13"  # one of each kind: a web process, Redis, PostgreSQL, agents, tokens


@pytest.mark.deep
@pytest.mark.timeout(200)
async def test_no_invariant_breaks_in_the_quick_set() -> None:
    """On a hub whose durations are scaled like those of all tests."""
    await check_invariants(chosen(QUICK), scale=SCALE)


@pytest.mark.deep
@pytest.mark.timeout(600)
async def test_no_invariant_breaks_in_the_short_set() -> None:
    """Real speed."""
    await check_invariants(
        [(fault, count) for fault, count in chosen("short") if fault.name not in ELSEWHERE], scale=1
    )
