"""A venue's program behind `connect --agnt` on a real hub: a caller sends and gets envelopes over A2A."""

import asyncio
import sys
import time
from typing import Any

import pytest

from agnt.client import Ask, CallFailed, describe_ask, read_response
from agnt.wire.errors import ErrorCode
from connect import Agent, Command, Welcome
from connect.agnt_answer import build_agnt_answer
from lab.agents import publish
from lab.hub_process import HubProcess
from tests.v1.caller import Caller

WITHIN_S = 60.0
SECRET = "la-brisa-secret"
PROGRAM = """
import json, sys
order = json.load(sys.stdin)["payload"]
free = order["party_size"] < 6
print(json.dumps({"table": 4.0} if free else {"status": "error", "error": {"code": "slot_unavailable"}}))
"""


async def test_envelopes_travel_as_data_parts(embedded_hub: HubProcess) -> None:
    hub, welcomes = embedded_hub, asyncio.Queue[Welcome]()
    agent = Agent(
        hub=hub.url,
        token=hub.mint("venue_owner", "channel"),
        answer=build_agnt_answer(Command([sys.executable, "-c", PROGRAM]), SECRET),
        name="la-brisa",
        on_welcome=welcomes.put_nowait,
    )
    running = asyncio.create_task(agent.run())
    async with asyncio.timeout(WITHIN_S):
        welcome = await welcomes.get()
    published = await publish(hub, hub.mint("venue_owner", "session"), welcome.session_id, "la-brisa")
    network = Caller(hub.url, published["handle"], hub.mint("agnt_network", "session"))

    async def ask(secret: str = SECRET, **payload: Any) -> Any:
        asked = Ask(sender="network:agnt", to="la-brisa", intent="booking.confirm", payload=payload)
        envelope = describe_ask(asked, secret=secret.encode(), at_s=int(time.time()))
        task = await network.send("", parts=[{"data": envelope}])
        assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
        [data] = [part["data"] for one in task["artifacts"] for part in one["parts"] if "data" in part]
        return read_response(data, asked).payload

    assert await ask(party_size=4, rate=7.0, big=12345678901234567890, note="café ☕ \U0001f99e") == {"table": 4.0}
    for payload, secret, code in (
        ({"party_size": 6}, SECRET, ErrorCode.SLOT_UNAVAILABLE),
        ({"party_size": 4}, "another", ErrorCode.INVALID_SIGNATURE),
        ({}, SECRET, ErrorCode.INTERNAL_ERROR),  # the program fails
    ):
        with pytest.raises(CallFailed) as failed:
            await ask(secret, **payload)
        assert failed.value.code == code
    in_words = await network.send("a table for four, please")
    assert in_words["status"]["state"] == "TASK_STATE_REJECTED"
    await agent.stop()
    await running
