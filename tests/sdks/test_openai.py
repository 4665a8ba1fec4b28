"""Completions, responses and models, by the official JavaScript client of OpenAI and by Vercel's `ai`."""

import asyncio
import json
from asyncio.subprocess import PIPE
from typing import Any

import pytest

from lab.agents import Echo, TaskPeer, online
from lab.hub_process import HubProcess
from tests.sdks.clients import PROGRAMS
from tests.sdks.environments import ENVIRONMENTS, Missing

ENDS_WITHIN_S = 60


async def run_program(name: str, *arguments: str) -> dict[str, Any]:
    """The observations of the client; skips the test on a machine without node."""
    try:
        folder = await asyncio.to_thread(ENVIRONMENTS["js-openai"].ready)
    except Missing as missing:
        pytest.skip(str(missing))
    with (PROGRAMS / name).open() as program:  # node finds packages from where it runs
        process = await asyncio.create_subprocess_exec(
            *("node", "--input-type=module", "-", *arguments), stdin=program, stdout=PIPE, stderr=PIPE, cwd=folder
        )
    try:
        async with asyncio.timeout(ENDS_WITHIN_S):
            said, complaints = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise
    assert process.returncode == 0, complaints.decode()
    seen: dict[str, Any] = json.loads(said)
    return seen


async def test_the_npm_client_of_openai_asks_agents(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        model = f"agent/{agent.handle}"
        seen = await run_program("openai.mjs", f"{hub.urls[-1]}/v1", alice, model)
    assert seen["answer"]["choices"][0]["message"]["content"] == "echo: hello"
    choices = [chunk["choices"][0] for chunk in seen["chunks"]]
    assert "".join(one["delta"].get("content") or "" for one in choices) == "echo: hello"
    assert choices[-1]["finish_reason"] == "stop"
    assert model in seen["models"]
    assert seen["model"]["id"] == model
    assert seen["response"]["output_text"] == "echo: hello"
    assert (seen["last"]["type"], seen["last"]["response"]["status"]) == ("response.completed", "completed")
    assert seen["last"]["response"]["conversation"] == seen["response"]["conversation"]
    assert seen["error"] == {"name": "NotFoundError", "status": 404, "code": "model_not_found"}


async def test_vercels_ai_does_not_repeat_a_question_that_an_agent_failed(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, TaskPeer) as agent:
        token = embedded_hub.mint("alice", "session")
        seen = await run_program("vercel_ai.mjs", f"{embedded_hub.url}/v1", token, f"agent/{agent.handle}")
        assert seen["answer"] == "well"
        assert (seen["error"]["status"], seen["error"]["message"]) == (424, "no disk")
        assert len(agent.prompts) == 2
