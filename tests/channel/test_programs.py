"""`manage.py connect --protocol lines` on a real hub: what a program prints is what its caller gets."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lab import ROOT
from lab.agents import publish
from lab.callers import Json
from lab.hub_process import HubProcess
from lab.hub_storage import hub_env
from lab.waiting import eventually
from tests.channel.agents import sql
from tests.operators.operator import route

PROGRAM = """
import json, sys
if json.loads(sys.stdin.readline())["text"] == "fail":
    print("half of")
    sys.exit("no such file")
print(json.dumps({"type": "status", "text": "at it"}), flush=True)
print("all of it")
"""


@asynccontextmanager
async def connected(hub: HubProcess, slug: str, *command: str) -> AsyncIterator[Json]:
    """The command as a published agent."""
    arguments = [sys.executable, "manage.py", "connect", "--hub", hub.urls[-1], "--name", slug, *command]
    env = hub_env(hub.home.env) | {
        "CLAWBRIDGE_TOKEN": hub.mint("owner", "channel"),
        "XDG_STATE_HOME": str(hub.home.folder),
    }
    process = await asyncio.create_subprocess_exec(
        *arguments, cwd=ROOT, env=env, stderr=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(30):
            line = (await process.stderr.readline()).decode()
        assert "connected as" in line, line
        session_id = line.rpartition("session ")[2].strip(")\n")
        yield await publish(hub, hub.mint("owner", "session"), session_id, slug)
    finally:
        process.terminate()
        await process.communicate()


async def test_what_a_program_prints_is_what_its_caller_gets(embedded_hub: HubProcess, tmp_path: Path) -> None:
    hub, alice = embedded_hub, embedded_hub.mint("alice", "session")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = ("--protocol", "lines", "--exec", "--", sys.executable, str(program))
    async with connected(hub, "lines", *command) as agent:
        assert (await route(hub, alice, agent["handle"], "more")).json()["reply"] == "all of it\n"
        failed = await route(hub, alice, agent["handle"], "fail")
        assert failed.status_code == 502
        assert failed.json()["message"] == "command failed with exit status 1\nno such file"

        async def is_kept() -> bool:
            notes = sql(hub, "SELECT payload FROM agents_event WHERE type = 'task_status'")
            return any("at it" in payload for (payload,) in notes)

        await eventually(is_kept, "the note is in the transcript")
