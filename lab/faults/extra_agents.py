"""Agents and questions of one fault; the load asks these agents nothing."""

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from lab.faults.agents import EchoAgent
from lab.faults.fault import Scene
from lab.faults.participants import ONLINE_WITHIN_S
from lab.faults.request_kinds import Question

Kind = TypeVar("Kind", bound=EchoAgent)
OWNER = "owner-1"  # the first owner's webhook hears of its agents only
_numbers = itertools.count(1)


@asynccontextmanager
async def extra_agent(
    scene: Scene, kind: Callable[..., Kind], *, at: str = "", owner: str = OWNER, **fields: Any
) -> AsyncIterator[Kind]:
    """An agent that is published and stays for the block. `at`: the URL it dials; `fields`: of the agent."""
    slug = f"extra-{next(_numbers)}"
    token = scene.stack.tokens[owner, "channel"]
    agent = kind([at or scene.stack.url], token, scene.log, name=slug)
    agent.start()
    try:
        await asyncio.wait_for(agent.online.wait(), ONLINE_WITHIN_S)
        await scene.participants.publish(agent, owner, slug, **({"dailyBudgetQueries": 100_000} | fields))
        yield agent
    finally:
        await agent.stop()


def question(scene: Scene, agent: EchoAgent, number: int = 0) -> Question:
    """Something to ask an agent, as the caller of that number."""
    nonce = secrets.token_hex(8)
    login = caller(scene, number)
    token = scene.stack.tokens[login, "session"]
    return Question(agent.handle, token, f"{nonce} what did I say?", f"m-{nonce}")


def caller(scene: Scene, number: int) -> str:
    """One of the callers."""
    callers = scene.participants.callers
    return callers[number % len(callers)]


def note(scene: Scene, asked: Question, number: int, *, task_id: str = "") -> None:
    """Log an ask whose reply is no echo: the audit must have its row, and nothing else is said of it."""
    nonce = asked.text.partition(" ")[0]
    scene.log.write(
        "ask", kind="by hand", caller=caller(scene, number), agent=asked.handle, url=0, nonce=nonce,
        message_id=asked.message_id, keyed=False, attempt=0, took_s=0, status=200, outcome="broken", text="",
        task_id=task_id, events=[], retry_after=False, began_in=scene.log.fault,
    )  # fmt: skip
