"""The steps of docs/howto/run-a-team.md and clawbridge/connect/README.md work as they are written."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import httpx

from clawbridge.connect.gateway_client import GatewayClient
from lab import ROOT
from lab.callers import TLS, bearer
from lab.hub_process import HubProcess

WITHIN_S = 30
PAGE = (ROOT / "docs" / "howto" / "run-a-team.md").read_text()
BLOCKS = re.findall(r"(?:file `(\w+\.\w+)`:\n\n)?```\w+\n(.*?)```", PAGE, re.DOTALL)
FILES = {name: text for name, text in BLOCKS if name}
GET_CONNECTOR, CONNECT, PROPOSE, TALK, LIST_AGENTS, PUBLISH_AND_ASK = [text for name, text in BLOCKS if not name]


def environment_of(hub: HubProcess) -> dict[str, str]:
    """The variables that the page exports. The Python that runs the tests is `python3`."""
    folder = Path(sys.executable).parent
    return {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "CLAWBRIDGE_HUB": hub.url,
        "CLAWBRIDGE_TOKEN": hub.mint("you", "channel"),
        "SESSION_TOKEN": hub.mint("you", "session"),
    }


def run(command: str, folder: Path, environment: dict[str, str]) -> str:
    """The output of a command of the page."""
    done = subprocess.run(
        ["sh", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=WITHIN_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def team(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """The agents of the page, once all are connected."""
    program = subprocess.Popen(
        ["sh", "-ec", f"{CONNECT}wait"],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert program.stderr is not None
        missing = {"alpha", "beta", "charlie"}
        while missing:
            line = program.stderr.readline()
            assert line, f"not connected: {missing}"
            missing -= {line.removeprefix("connected as ").strip()}
        yield
    finally:
        os.killpg(program.pid, signal.SIGTERM)
        program.communicate(timeout=WITHIN_S)


def test_the_page_runs_a_team(embedded_hub: HubProcess, tmp_path: Path) -> None:
    environment = environment_of(embedded_hub)
    assert FILES.keys() == {"judge.sh", "propose.py", "talk.py"}
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    run(GET_CONNECTOR, tmp_path, environment)
    with team(tmp_path, environment):
        approved, rejected = run(PROPOSE, tmp_path, environment).splitlines()
        assert re.fullmatch(r"approved \{('\w+': 'approve'(, )?){2,3}\}", approved), approved
        assert re.fullmatch(r"rejected \{('\w+': 'reject'(, )?){2,3}\}", rejected), rejected
        printed = run(TALK, tmp_path, environment)
        shown = "".join(f"    {line}".rstrip(" ") + "\n" for line in printed.splitlines())
        assert f"```\n\n{shown}\n" in PAGE, printed
        until = time.monotonic() + WITHIN_S  # the agents of the conversation leave it a moment later
        while f"    {(listed := run(LIST_AGENTS, tmp_path, environment))}\n" not in PAGE:
            assert time.monotonic() < until, listed
        headers = bearer(environment["SESSION_TOKEN"])
        page = httpx.get(f"{embedded_hub.url}/desk/team", headers=headers, verify=TLS).text
        assert [name for name in ("alpha", "beta", "charlie", "coder", "planner") if f">{name}<" not in page] == []
        assert "Ship on Friday, and delete the old release" in page
        sessions = httpx.get(f"{embedded_hub.url}/api/v1/sessions", headers=headers, verify=TLS).json()["items"]
        session_id = next(one["id"] for one in sessions if one["routingName"] == "@alpha")
        answers = run(PUBLISH_AND_ASK, tmp_path, environment | {"SESSION_ID": session_id})
        agent, end = json.JSONDecoder().raw_decode(answers)
        assert agent["handle"] == "you/alpha"
        assert "you said: hello" in answers[end:]


async def test_the_client_of_the_readme_votes_and_answers(embedded_hub: HubProcess) -> None:
    section = (
        (ROOT / "clawbridge" / "connect" / "README.md").read_text().partition("## A client of the gateway\n")[2]
    )
    (code,) = re.findall(r"\n((?:    .*\n|\n)+)\|", section.partition("\n| Method")[0] + "\n|")
    token = embedded_hub.mint("reader", "channel")
    code = dedent(code).replace("https://hub.example", embedded_hub.url).replace("ck_live_...", token)
    names: dict[str, Any] = {}
    exec(f"async def run():\n{indent(code, '    ')}", names)
    running = asyncio.create_task(names["run"]())
    try:
        async with GatewayClient(embedded_hub.url, token, name="reader") as client, asyncio.timeout(WITHIN_S):
            proposal_id = await client.propose("Read the page")  # goes to alpha, also when it comes later
            while not (await client.request("triad.get", {"proposalId": proposal_id}))["proposal"]["votes"]:
                assert not running.done()
                await asyncio.sleep(0.1)
            assert await client.ask("alpha", "hello") == "reader said: hello"
    finally:
        running.cancel()
        await asyncio.wait({running})
