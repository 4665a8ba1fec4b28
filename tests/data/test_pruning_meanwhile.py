"""Old rows go while people ask: nobody is refused, and the pruning comes to its end.

The embedded hub prunes too, some seconds after its start: both may be at it.
"""

import asyncio
import subprocess
import sys

import pytest

from tests.callers import reply_text, send
from tests.homes import ROOT, Home, hub_env
from tests.hub_process import StartHub
from tests.peers import Echo, online

pytestmark = pytest.mark.slow

OLD = 6_000
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
PROGRAM = "import sys, django; django.setup(); exec(sys.argv[1])"


def program(home: Home, text: str) -> subprocess.Popen[str]:
    env = hub_env(home.env) | {"DJANGO_SETTINGS_MODULE": "hub.settings"}
    command = [sys.executable, "-c", PROGRAM, text]
    return subprocess.Popen(command, env=env, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


async def finished(running: subprocess.Popen[str]) -> str:
    output, errors = await asyncio.to_thread(running.communicate, timeout=100)
    assert running.returncode == 0, errors
    return output


async def test_asks_go_on_while_old_rows_go(home: Home, start_hub: StartHub) -> None:
    hub = start_hub(home)
    async with online(hub, Echo, agent={"dailyBudgetQueries": 100_000}) as agent:
        await finished(program(home, SEED))
        pruning = program(home, PRUNE)
        asked = 0
        while pruning.poll() is None:
            told = await send(hub.url, agent.handle, f"number {asked}", hub.mint("alice", "session"))
            assert reply_text(told) == f"echo: number {asked}"
            asked += 1
        left = (await finished(pruning)).split()
    assert left == ["0", "0", "0"]
    assert asked > 10
