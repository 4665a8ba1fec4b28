"""Agents of one fault; the load asks these agents nothing."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from lab.faults.agents import EchoAgent
from lab.faults.fault import Scene
from lab.faults.participants import ONLINE_WITHIN_S

Kind = TypeVar("Kind", bound=EchoAgent)
OWNER = "owner-1"  # the first owner's webhook hears of its agents only
_numbers = itertools.count(1)


@asynccontextmanager
async def extra_agent(
    scene: Scene, kind: Callable[..., Kind], *at: str, owner: str = OWNER, **fields: Any
) -> AsyncIterator[Kind]:
    """An agent that is published and stays for the block.

    `at`: the URLs it dials in turn, by default the first; `fields`: of the agent.
    """
    slug = f"extra-{next(_numbers)}"
    token = scene.stack.tokens[owner, "channel"]
    agent = kind(list(at) or [scene.stack.url], token, scene.log, name=slug)
    agent.start()
    try:
        await asyncio.wait_for(agent.online.wait(), ONLINE_WITHIN_S)
        await scene.participants.publish(agent, owner, slug, **({"dailyBudgetQueries": 100_000} | fields))
        yield agent
    finally:
        await agent.stop()
