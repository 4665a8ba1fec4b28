"""Failures are counted once, while users ask and two jobs count, on both databases."""

import asyncio

import pytest

from lab.agents import TaskPeer, online
from lab.callers import send
from lab.hub_process import StartHub
from lab.hub_storage import HubStorage, manage
from lab.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ASKS = 60
COUNT = """
import time
from agents.core.failure_groups import group_failures
counted, end = 0, time.monotonic() + {seconds}
while time.monotonic() < end:
    counted += group_failures()
print(counted)
"""
LOOK = """
from agents.models import FailureCaller, FailureDay, FailureGroup, Turn
groups = list(FailureGroup.objects.values_list("shape", "count"))
days, callers = (sum(one.count for one in model.objects.all()) for model in (FailureDay, FailureCaller))
left = Turn.objects.filter(outcome="failed", failure_group=None).count()
print(groups, days, callers, left)
"""


async def run(home: HubStorage, text: str) -> str:
    """Run a program beside the hub; what it prints."""
    return await asyncio.to_thread(manage, home.env, "shell", "-v", "0", "--no-imports", "-c", text)


async def test_two_jobs_count_each_failure_once(home: HubStorage, start_hub: StartHub) -> None:
    hub = start_hub(home)
    async with online(hub, TaskPeer, agent={"dailyBudgetQueries": 100_000, "concurrencyCap": 20}) as agent:
        token = hub.mint("alice", "session")
        counting = [asyncio.create_task(run(home, COUNT.format(seconds=15))) for _ in range(2)]
        for first in range(0, ASKS, 10):
            asks = range(first, first + 10)
            await asyncio.gather(*(send(hub.url, agent.handle, f"fail no disk {n}", token) for n in asks))
            await asyncio.sleep(0.5)
        await asyncio.gather(*counting)

        async def is_whole() -> bool:
            return await run(home, LOOK) == f"[('no disk <number>', {ASKS})] {ASKS} {ASKS} 0\n"

        await eventually(is_whole, "each failure is counted once", within_s=60)
