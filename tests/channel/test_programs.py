"""`manage.py connect --protocol lines` on a real hub: what a program prints is what its caller gets."""

import asyncio
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from lab import ROOT
from lab.agents import publish
from lab.callers import Json, bearer, web
from lab.hub_process import HubProcess
from lab.hub_storage import hub_env
from lab.waiting import eventually
from tests.channel.agents import sql

PROGRAM = """
import json, os, sys

def say(**line):
    print(json.dumps(line), flush=True)

question = json.loads(sys.stdin.readline())
text = question["text"]
if text == "more":
    say(type="status", text="at it")
    say(type="artifact", artifactId="a1", parts=[{"raw": "YWI=", "filename": "ab.txt"}])
    print("all of it")
elif text == "ask":
    say(type="input_required", text="which one?")
elif text == "fail":
    print("half of")
    sys.exit("no such file")
else:
    say(type="rejected", text="not my job")
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return str(path)


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


async def route(hub: HubProcess, agent: Json, prompt: str) -> httpx.Response:
    async with web(hub.url) as client:
        return await client.post(
            f"/api/v1/peers/{agent['handle']}/route",
            json={"prompt": prompt, "mode": "ask"},
            headers=bearer(hub.mint("alice", "session")),
        )


async def test_what_a_program_prints_is_what_its_caller_gets(embedded_hub: HubProcess, program: str) -> None:
    hub = embedded_hub
    command = ("--protocol", "lines", "--exec", "--", sys.executable, program)
    async with connected(hub, "lines", *command) as agent:
        assert (await route(hub, agent, "more")).json()["reply"] == "all of it\n"
        assert (await route(hub, agent, "ask")).json()["reply"] == "which one?"
        failed, rejected = await route(hub, agent, "fail"), await route(hub, agent, "x")
        assert failed.status_code == rejected.status_code == 502
        assert failed.json()["message"] == "command failed with exit status 1\nno such file"
        assert rejected.json() == {"error": "rejected", "message": "not my job"}

        async def kept() -> list[str] | None:
            rows = sql(hub, "SELECT type, payload FROM agents_event WHERE type LIKE 'task_%' ORDER BY id")
            types = [type_ for type_, payload in rows if "at it" in payload or "ab.txt" in payload]
            return types if len(types) > 1 else None

        assert await eventually(kept, "a note and an artifact") == ["task_status", "task_artifact"]
