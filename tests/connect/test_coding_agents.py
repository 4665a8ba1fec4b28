"""`--preset` with the real programs, which ask a scripted model: conversations, usage, permissions and cancels."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import ROOT
from lab.agents import publish
from lab.callers import Json, bearer, inbound, web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.clients.running import environment
from tests.connect.model_server import INPUT_TOKENS, OUTPUT_TOKENS, Hold, ModelServer, Say, UseTool, serving_model
from tests.operators.operator import Operator
from tests.v1.caller import Caller, reply_of

pytestmark = pytest.mark.deep

WITHIN_S = 50
PROGRAMS = ("claude", "codex", "gemini")
NOTHING_ELSE = {  # no updates, no statistics, no other servers
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "GEMINI_MODEL": "gemini-2.5-pro",  # a fixed one: Gemini asks no model which model to take
    "NO_PROXY": "127.0.0.1",
}
CODEX_CONFIG = """
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
apps = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
"""
GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}


@pytest.fixture
async def programs() -> Path:
    """The folder of the programs; the tests are skipped on a machine that cannot have them."""
    return await environment("js-coding-agents") / "node_modules" / ".bin"


@dataclass
class CodingAgent:
    """An agent of the hub that a preset answers for."""

    hub: HubProcess
    id: int
    session_id: str
    caller: Caller
    work: Path
    connector: asyncio.subprocess.Process


@pytest.fixture
async def coding_agent(
    embedded_hub: HubProcess, programs: Path, tmp_path: Path
) -> AsyncIterator[Callable[..., CodingAgent]]:
    """Publish an agent of `python -m clawbridge.connect --preset NAME`, whose program asks the model."""
    async with AsyncExitStack() as stack:

        async def begin(name: str, model: ModelServer, *options: str) -> CodingAgent:
            return await stack.enter_async_context(
                running(embedded_hub, programs, tmp_path, name, model, *options)
            )

        yield begin


@asynccontextmanager
async def running(
    hub: HubProcess, programs: Path, home: Path, name: str, model: ModelServer, *options: str
) -> AsyncIterator[CodingAgent]:
    work = home / "work"
    work.mkdir()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "clawbridge.connect", "--name", name, "--new-session"),
        *("--preset", name, "--directory", str(work), *options),
        cwd=ROOT,
        env={
            "CLAWBRIDGE_HUB": hub.url,
            "CLAWBRIDGE_TOKEN": hub.mint("owner", "channel"),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            **program_environment(home, work, model.url),
        },
        stderr=PIPE,
    )
    try:
        assert process.stderr is not None
        async with asyncio.timeout(WITHIN_S):
            line = (await process.stderr.readline()).decode()
        assert "connected as" in line, line
        session_id = line.rpartition("(session ")[2].rstrip(")\n")
        agent = await publish(hub, hub.mint("owner", "session"), session_id, f"{name}-{session_id[:8]}")
        caller = Caller(hub.url, agent["handle"], hub.mint("alice", "session"))
        yield CodingAgent(hub, agent["id"], session_id, caller, work, process)
    finally:
        process.terminate()
        await process.communicate()


def program_environment(home: Path, work: Path, url: str) -> dict[str, str]:
    """The environment in which each program asks this model, and keeps its files in `home`."""
    for file, text in (
        (".codex/config.toml", CODEX_CONFIG.format(url=url)),
        (".gemini/settings.json", json.dumps(GEMINI_SETTINGS)),
        (".gemini/trustedFolders.json", json.dumps({str(work): "TRUST_FOLDER"})),
    ):
        (home / file).parent.mkdir(exist_ok=True)
        (home / file).write_text(text)
    keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "key")
    places = {"ANTHROPIC_BASE_URL": url, "GOOGLE_GEMINI_BASE_URL": url}
    (home / "tmp").mkdir()
    return NOTHING_ELSE | keys | places | {"HOME": str(home), "TMPDIR": str(home / "tmp")}


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_conversation_goes_on_and_each_turn_has_its_usage(coding_agent, name: str) -> None:
    with serving_model(Say("It is a lighthouse."), Say("It is white.")) as model:
        agent = await coding_agent(name, model)
        first = await agent.caller.send("What stands on the hill?")
        assert reply_of(first) == "It is a lighthouse."
        second = await agent.caller.send("Of what colour?", contextId=first["contextId"])
        assert reply_of(second) == "It is white."
    asked = [json.dumps(request) for request in model.requests]
    assert len(asked) == 2
    assert "Of what colour?" not in asked[0]
    for said in ("What stands on the hill?", "It is a lighthouse.", "Of what colour?"):
        assert said in asked[1]
    used = second["metadata"]["usage"]
    assert (used["inputTokens"], used["outputTokens"]) == (INPUT_TOKENS, OUTPUT_TOKENS)
    assert (used.get("costUsd", 0) > 0) == (name == "claude")
    log = await inbound(agent.hub.url, agent.id, agent.hub.mint("owner", "session"))
    kept = [{key: one for key, one in row["usage"].items() if one is not None} for row in log["recent"]]
    assert kept == [used, first["metadata"]["usage"]]


@pytest.mark.parametrize("name", PROGRAMS)
async def test_a_cancel_ends_the_program(coding_agent, name: str) -> None:
    with serving_model(Hold()) as model:
        agent = await coding_agent(name, model)
        task = await agent.caller.begin("Think for a long time.")
        assert await asyncio.to_thread(model.is_held.wait, WITHIN_S)
        await cancel(agent, task)
        assert await asyncio.to_thread(model.was_closed.wait, WITHIN_S)


async def cancel(agent: CodingAgent, task: Json) -> None:
    assert children_of(agent.connector.pid)
    canceled = await agent.caller.call("CancelTask", {"id": task["id"]})
    assert canceled["status"]["state"] == "TASK_STATE_CANCELED"

    async def is_gone() -> bool:
        return not children_of(agent.connector.pid)

    await eventually(is_gone, "the program has ended", within_s=WITHIN_S)
    assert (await agent.caller.get(task["id"]))["status"]["state"] == "TASK_STATE_CANCELED"


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


BASH = UseTool("Bash", {"command": "touch made", "description": "Make a file"})
PATCH = "*** Begin Patch\n*** Add File: made\n+by the patch\n*** End Patch"
ASKED = {  # what the model wants, and what the approver reads
    "claude": (BASH, ("Bash", "touch made")),
    "codex": (
        UseTool("exec_command", {"cmd": "touch made", "sandbox_permissions": "require_escalated"}),
        ("command", "touch made"),
    ),
    "codex, a file": (
        UseTool("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
        ("file change", "by the patch"),
    ),
}


@pytest.mark.parametrize("decision", ["allow", "deny"])
@pytest.mark.parametrize("case", ASKED)
async def test_a_permission_is_decided_on_the_session_page(coding_agent, case: str, decision: str) -> None:
    (step, (tool, preview)), name = ASKED[case], case.partition(",")[0]
    with serving_model(step, Say("That was it."), Say("Yes.")) as model:
        agent = await coding_agent(name, model, "--access", "ask")
        async with Operator(agent.hub.url, agent.hub.mint("owner", "session")) as operator:
            await operator.subscribe(agent.session_id)
            task = await agent.caller.begin("Make a file.")
            asked = await operator.heard("permission_request")
            assert (asked["tool"], preview in asked["inputPreview"]) == (tool, True)
            assert (await waiting_requests(agent)) == [asked["requestId"]]
            assert not (agent.work / "made").exists()
            verdict = {"sessionId": agent.session_id, "requestId": asked["requestId"], "decision": decision}
            await operator.answer("approval", **verdict, message="not in this folder")
            done = await eventually(lambda: ended(agent, task["id"]), "the turn goes on", within_s=WITHIN_S)
        assert "That was it." in reply_of(done)
        assert (agent.work / "made").exists() == (decision == "allow")
        if name == "claude":
            assert ("not in this folder" in json.dumps(model.requests[-1])) == (decision == "deny")
        assert done["metadata"]["usage"]["inputTokens"] == 2 * INPUT_TOKENS
        again = await agent.caller.send("Is it there?", contextId=done["contextId"])
        assert (reply_of(again), again["metadata"]["usage"]["inputTokens"]) == ("Yes.", INPUT_TOKENS)
    assert "Make a file." in json.dumps(model.requests[-1])


async def test_a_cancel_ends_a_program_that_waits_for_a_decision(coding_agent) -> None:
    with serving_model(BASH) as model:
        agent = await coding_agent("claude", model, "--access", "ask")
        task = await agent.caller.begin("Make a file.")
        await eventually(lambda: waiting_requests(agent), "the program asks", within_s=WITHIN_S)
        await cancel(agent, task)
    assert not (agent.work / "made").exists()


async def waiting_requests(agent: CodingAgent) -> list[str]:
    """The ids of the requests that the owner may decide."""
    async with web(agent.hub.url, headers=bearer(agent.hub.mint("owner", "session"))) as client:
        items = (await client.get(f"/api/v1/sessions/{agent.session_id}/permissions")).json()["items"]
    return [one["requestId"] for one in items if one["status"] == "pending"]


async def ended(agent: CodingAgent, task_id: str) -> Json | None:
    task = await agent.caller.get(task_id)
    return task if task["status"]["state"] == "TASK_STATE_COMPLETED" else None
