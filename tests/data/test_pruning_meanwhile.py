"""Old rows are deleted while users ask: no ask is refused, and the pruning finishes.

The embedded hub prunes itself, some seconds after its start.
"""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from lab.agents import Echo, online
from lab.callers import reply_text, send
from lab.hub_process import StartHub
from lab.hub_storage import HubStorage, manage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

OLD = 2_000
SEED = f"""
from datetime import timedelta
from django.utils import timezone
from agents.models import Agent, Event, Turn
agent = Agent.objects.get()
old = timezone.now() - timedelta(days=500)
ends = dict(asked_at=old, settled_at=old, released_at=old, outcome="completed")
Turn.objects.bulk_create([
    Turn(chat_id=f"old-{{n}}", agent=agent, session=agent.session, surface="a2a", question="x" * 300, **ends)
    for n in range({OLD})
], batch_size=500)
Event.objects.bulk_create([
    Event(session=agent.session, kind="tail", type="t", payload="{{}}", ts=old) for n in range({OLD})
], batch_size=500)
"""
PRUNE = """
from agents import jobs
from agents.models import Event, Turn
jobs.blank_questions(90)
print(Turn.objects.filter(chat_id__startswith="old-").exclude(question="").count())
jobs.retain(400), jobs.forget_events(90)
print(Turn.objects.filter(chat_id__startswith="old-").count(), Event.objects.filter(type="t").count())
"""


async def run(home: HubStorage, text: str) -> str:
    """Run a program beside the hub; what it prints."""
    return await asyncio.to_thread(manage, home.env, "shell", "-v", "0", "-c", text)


def left_of(home: HubStorage) -> tuple[int, int]:
    with closing(sqlite3.connect(home.folder / "hub.sqlite3")) as database:
        [turns] = database.execute("SELECT count(*) FROM agents_turn WHERE chat_id LIKE 'old-%'").fetchone()
        [events] = database.execute("SELECT count(*) FROM agents_event WHERE type = 't'").fetchone()
    return turns, events


async def test_asks_go_on_while_old_rows_go(home: HubStorage, start_hub: StartHub) -> None:
    hub = start_hub(home)
    async with online(hub, Echo, agent={"dailyBudgetQueries": 100_000}) as agent:
        await run(home, SEED)
        pruning = None
        if home.is_grown:
            pruning = asyncio.create_task(run(home, PRUNE))  # as the worker would
        else:
            hub.kill9()
            await asyncio.to_thread(hub.serve, 0)
            await agent.connect()
        asked = 0
        while not pruning.done() if pruning else left_of(home) != (0, 0):
            told = await send(hub.url, agent.handle, f"number {asked}", hub.mint("alice", "session"))
            assert reply_text(told) == f"echo: number {asked}"
            asked += 1
        if pruning:
            assert (await pruning).split() == ["0", "0", "0"]
    assert asked > 2
