"""The regular work of a process, and its end: a failure ends neither."""

import asyncio
from types import SimpleNamespace

import pytest

from agents.core.post import LocalPost
from agents.core.waiting import WaitingTurns
from agents.links.sockets import SocketLink
from agents.models.choices import TurnFailure
from hub.runtime import SocketDrain, end, every, next_due
from tests.contracts.test_link import Desk

AGENTS = 120
PAUSE_S = 0.02
WITHIN_S = 10


class Work:
    """Fails so many times, then is done."""

    def __init__(self, failures: int) -> None:
        self.done = asyncio.Event()
        self._failures = failures

    async def __call__(self) -> None:
        if self._failures:
            self._failures -= 1
            raise OSError("not now")
        self.done.set()


def told(caplog: pytest.LogCaptureFixture, field: str) -> list[tuple[str, object]]:
    return [(record.msg, vars(record)[field]) for record in caplog.records]


@pytest.mark.parametrize(("tries", "attempts"), [(1, [0, 0, 0, 0]), (3, [0, 1, 2, 0])])
async def test_what_is_done_again_and_again_survives_failures(
    tries: int, attempts: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    work = Work(failures=4)
    doing = asyncio.create_task(every(PAUSE_S, work, "tend.failed", tries=tries))
    await asyncio.wait_for(work.done.wait(), WITHIN_S)
    assert not doing.done()
    doing.cancel()
    assert told(caplog, "attempt") == [("tend.failed", attempt) for attempt in attempts]


def test_timers_run_at_multiples_of_their_time() -> None:
    for ended, due in [
        (100.0, 100.25),
        (99.999, 100.25),  # the loop ran it early, by less than the millisecond it counts in
        (100.125, 100.25),
        (100.126, 100.5),  # so that slow work leaves a pause
        (107.3, 107.5),
        (107.4, 107.75),
    ]:
        assert next_due(100.0, 0.25, ended) == due, (ended, due)


def test_a_slow_timer_is_due_together_with_a_fast_one() -> None:
    fast, slow = 3.7, next_due(3.7, 1.0, 9999.123)
    while fast < slow:
        fast = next_due(fast, 0.25, fast + 0.1)
    assert fast == pytest.approx(slow)


async def test_a_step_of_leaving_that_fails_or_hangs_gives_way(caplog: pytest.LogCaptureFixture) -> None:
    fine = Work(failures=0)
    await end("post", Work(failures=1)())
    await end("ledger", asyncio.Event().wait(), within_s=PAUSE_S)
    await end("spans", fine())
    assert fine.done.is_set()
    assert told(caplog, "step") == [("stop.failed", "post"), ("stop.failed", "ledger")]


class Leaving(Desk):
    """An idle agent's socket, which notes when it is told to leave."""

    def __init__(self, link: SocketLink, number: int, left: list[float], clock: SimpleNamespace) -> None:
        super().__init__()
        self._link, self._number, self._left, self._clock = link, number, left, clock

    async def close_from_hub(
        self, code: int, *, bye: str = "", retry: bool = True, reason: TurnFailure = TurnFailure.CHANNEL_LOST
    ) -> None:
        self._link.detach(self._number)
        self._left.append(self._clock.now)


async def test_a_quarter_of_the_agents_is_sent_away_in_any_second() -> None:
    clock, left = SimpleNamespace(now=0.0), list[float]()
    link = SocketLink(process_id="p", post=LocalPost(), waiting=WaitingTurns(_never))
    for number in range(AGENTS):
        link.attach(number, Leaving(link, number, left, clock))
    drain = SocketDrain(link, lambda: clock.now)
    while link.sockets:
        drain.send_some_away()
        await drain.wait()
        clock.now += 0.1
    assert len(left) == AGENTS
    assert max(sum(at <= one < at + 1 for one in left) for at in left) <= AGENTS / 4 + 2


async def _never(*_: object) -> None:
    raise AssertionError
