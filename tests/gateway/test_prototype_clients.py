"""Clients of the prototype's dialect at `/a2a`: the frames of its own client, and others beside `a2a-v1`."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from websockets.asyncio.client import connect

from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.prototype.record import ACCEPTED, FAILURE, find_differences, read_steps
from tests.gateway.client import EchoSeat
from tests.gateway.prototype import PrototypeClient, Replay, address_for


@pytest.fixture(scope="module")
def prototype_hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub that speaks the dialect."""
    hub = HubProcess.start(make_storage("embedded"), GATEWAY_PROTOTYPE=1)
    yield hub
    hub.stop()


async def test_the_hub_answers_the_prototypes_client_as_its_own_gateway(prototype_hub: HubProcess) -> None:
    steps = read_steps()
    differences = find_differences(steps, await Replay(prototype_hub).run(steps))
    assert [one.text for one in differences if one.accepted is None] == []
    unseen = set(ACCEPTED) - {one.accepted for one in differences}
    assert {one.path for one in unseen} <= {FAILURE}  # that frame may come after the last step


def test_the_record_has_every_frame_of_the_prototype() -> None:
    steps = read_steps()
    sent = {json.loads(step.text)["type"] for step in steps if step.text.startswith('{"type"')}
    assert sent >= {"register", "message", "response", "broadcast", "ping", "pong", "discover", "health"}
    shown = {answer.frame["type"] for step in steps for answer in step.answers}
    answers = {"welcome", "registered", "broadcast-result", "pong", "discover", "health", "error"}
    assert shown == answers | {"message", "broadcast"}


async def test_clients_of_both_dialects_ask_each_other(prototype_hub: HubProcess) -> None:
    token = prototype_hub.mint("proto", "channel")
    address = address_for(prototype_hub, "proto")
    beta = EchoSeat(prototype_hub.url, token, agentId="beta")
    async with beta, connect(address, compression=None) as socket:
        await beta.find("auth-response")
        client = PrototypeClient(socket)
        await client.send(type="register", agentId="alpha", metadata={})
        assert (await client.find("registered"))["connectedAgents"] == ["alpha", "beta"]
        await client.send(type="message", to="beta", content="hi", correlationId="c")
        reply = await client.find("message")
        assert (reply["content"], reply["from"], reply["correlationId"]) == ("echo: hi", "beta", "c")
        await client.send(type="message", to="stranger", content="hi", correlationId="e")
        error = await client.find("error")
        assert (error["code"], error["correlationId"], "error" in error) == (3001, "e", True)
        asking = asyncio.create_task(beta.send_message("alpha", "why?"))
        asked = await client.find("message")
        assert (asked["content"], asked["from"]) == ({"role": "user", "content": "why?"}, "beta")
        await client.send(type="response", content="because", correlationId=asked["correlationId"])
        answer = await asking
        assert answer["content"] == {"role": "agent", "content": "because"}
        assert "auth-response" not in [one["type"] for one in client.frames]
    headers = {"X-Agent-Id": "gamma", "Authorization": f"Bearer {token}"}
    async with connect(address.partition("?")[0], additional_headers=headers, compression=None) as socket:
        client = PrototypeClient(socket)
        await client.send(type="discover")
        found = await client.find("discover")
        assert "gamma" in found["connectedAgents"]
        assert {"alpha", "beta"} <= set(found["registeredAgents"])
