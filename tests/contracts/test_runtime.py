"""What a process does again and again, and how it leaves: a failure ends neither."""

import asyncio

import pytest

from hub.runtime import end, every

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


async def test_a_step_of_leaving_that_fails_or_hangs_gives_way(caplog: pytest.LogCaptureFixture) -> None:
    fine = Work(failures=0)
    await end("post", Work(failures=1)())
    await end("ledger", asyncio.Event().wait(), within_s=PAUSE_S)
    await end("spans", fine())
    assert fine.done.is_set()
    assert told(caplog, "step") == [("stop.failed", "post"), ("stop.failed", "ledger")]
