"""Generated requests on each wire over HTTP."""

import pytest

from tests.attempts import Attempts
from tests.fuzz.live import Live, number_of, try_each
from tests.fuzz.requests import Requester
from tests.fuzz.wires import WIRES, Wires

pytestmark = [pytest.mark.attack, pytest.mark.deep, pytest.mark.timeout(3600)]


@pytest.mark.parametrize("name", WIRES)
def test_no_generated_request_breaks_the_hub(live: Live, wires: Wires, attempts: Attempts, name: str) -> None:
    wire, requester = wires.make(name), Requester(live)
    requester.check_sound(wire)
    before, broke = live.usage(), 1
    try:
        try_each(live, wire.cases, number_of(attempts, live), requester.attack)
        requester.check_sound(wire)
        broke = 0
    finally:
        attempts.count(f"generated {wire.name}", sum(requester.statuses.values()), broke)
        requester.close()
    assert any(200 <= status < 300 for status in requester.statuses), requester.statuses
    live.check_usage(before)
