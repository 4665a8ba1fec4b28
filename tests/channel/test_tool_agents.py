"""A tool of an MCP server as an agent of a real hub: its card, and what its callers get."""

import asyncio
import json
import shlex
import sys

from agents.pages.card_fields import read_skills
from clawbridge.connect import Agent, Welcome
from clawbridge.connect.mcp_answer import build_mcp_answer
from clawbridge.connect.mcp_calls import describe_skill
from lab import ROOT
from lab.agents import publish
from lab.callers import bearer, rpc_path, web
from lab.hub_process import HubProcess
from tests.v1.caller import Caller

SERVER = ROOT / "tests" / "connect" / "tool_server.py"
WITHIN_S = 60.0


async def test_a_tool_is_asked_by_text_and_by_data_and_its_card_has_the_schema(embedded_hub: HubProcess) -> None:
    hub, welcomes = embedded_hub, asyncio.Queue[Welcome]()
    command = shlex.join([sys.executable, str(SERVER)])
    async with build_mcp_answer(command, "shout", timeout_s=WITHIN_S) as answer:
        tool = await answer.find_tool()
        agent = Agent(
            hub=hub.url,
            token=hub.mint("owner", "channel"),
            answer=answer,
            name="shout",
            on_welcome=welcomes.put_nowait,
        )
        running = asyncio.create_task(agent.run())
        async with asyncio.timeout(WITHIN_S):
            welcome = await welcomes.get()
        owner, caller = hub.mint("owner", "session"), hub.mint("alice", "session")
        skills = read_skills(describe_skill(tool))
        published = await publish(hub, owner, welcome.session_id, "shout", skills=skills)

        async with web(hub.url, headers=bearer(caller)) as client:
            card = (await client.get(f"{rpc_path(published['handle'])}/agent-card.json")).json()
        [skill] = card["skills"]
        schema = skill["description"].partition("Arguments, as a JSON Schema: ")[2]
        assert (skill["name"], json.loads(schema)) == ("Shout it", tool.input_schema)

        alice = Caller(hub.url, published["handle"], caller)
        by_text = await alice.send("hello")
        assert by_text["status"]["state"] == "TASK_STATE_COMPLETED"
        assert "HELLO" in json.dumps(by_text)
        by_data = await alice.send("", parts=[{"data": {"text": "hey", "times": 2}}])
        assert "HEY HEY" in json.dumps(by_data)
        refused = await alice.send("", parts=[{"data": {"times": 2}}])
        assert refused["status"]["state"] == "TASK_STATE_REJECTED"
        assert "'text' is a required property" in json.dumps(refused)
        await agent.stop()
        await running
