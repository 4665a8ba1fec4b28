"""Clients of the prototype's dialect at `/a2a`: the frames of its own client, and others beside `a2a-v1`.

The record, `prototype_frames.json`, has the frames that `agents/lib/agent-client.js` and
`gateway/openclaw-gateway.js` of
https://github.com/Heretek-AI/heretek-openclaw-core, commit 55aa319197a28c346e967f8820d9696cce6a038d, unmodified,
sent each other in the scenario of `lab/prototype/`; times, ids and measurements in it are replaced. The programs
are in no registry, so the tests have their frames alone: docs/howto/test.md says how they are recorded again.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from lab.frames import Json
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.prototype.record import (
    ACCEPTED,
    CLOSES,
    FAILURE,
    OPENS,
    Normaliser,
    RecordedFrame,
    Step,
    find_differences,
    is_failure,
    read_steps,
)
from tests.gateway.client import WITHIN_S, EchoSeat, GatewayClient

LAST = {"type": "discover"}  # sent before a client leaves: its answer comes after all earlier frames


def address_for(hub: HubProcess, login: str) -> str:
    """The address at which an agent of that login connects."""
    return f"{hub.url.replace('http', 'ws', 1)}/a2a?token={hub.mint(login, 'channel')}"


class PrototypeClient:
    """A stand-in for a client of the prototype; it keeps every frame."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.frames: list[Json] = []

    async def send(self, **frame: Any) -> None:
        await self.socket.send(json.dumps(frame))

    async def find(self, type_name: str) -> Json:
        """The next frame of a type."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                frame: Json = json.loads(await self.socket.recv())
                self.frames.append(frame)
                if frame["type"] == type_name:
                    return frame


class Replay:
    """Clients of the prototype that send the frames of a record to a hub, and keep the frames they get."""

    def __init__(self, hub: HubProcess) -> None:
        self._url = address_for(hub, "replayed")
        self._watching = GatewayClient(hub.url, hub.mint("replayed", "session"))
        self._clients: dict[str, ClientConnection] = {}

    async def run(self, steps: list[Step]) -> list[Step]:
        """The same steps with the answers of the hub, up to the first missing answer."""
        shown: list[Step] = []
        try:
            async with self._watching:
                for step in steps:
                    answers = await self._run(step)
                    answered = Step(step.client, step.does, step.query, step.text, answers)
                    shown.append(Normaliser().fix_step(answered))
                    if len(answers) < len(step.answers):
                        break  # later steps would differ, too
        finally:
            for client in self._clients.values():
                await client.close()
        return shown

    async def _run(self, step: Step) -> list[RecordedFrame]:
        if step.does == OPENS:
            address = self._url + (f"&{step.query}" if step.query else "")
            self._clients[step.client] = await connect(address, compression=None)
        elif step.does == CLOSES:
            return await self._close(step.client)
        else:
            await self._clients[step.client].send(step.text)
        answers: list[RecordedFrame] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(WITHIN_S):
                for expected in step.answers:
                    while is_failure((answer := await self._read(expected.client)).frame):
                        answers.append(answer)  # such a failure comes at any time, and no step expects it
                    answers.append(answer)
        return answers

    async def _close(self, name: str) -> list[RecordedFrame]:
        """End a connection; returns frames that no step expected. The hub then knows that the agent is gone."""
        client, surplus = self._clients.pop(name), []
        await client.send(json.dumps(LAST))
        async with asyncio.timeout(WITHIN_S):
            while (answer := await self._read(name, client)).frame["type"] != LAST["type"]:
                surplus.append(answer)
            await client.close()
            await self._watching.sees(name, "offline")
        return surplus

    async def _read(self, name: str, client: ClientConnection | None = None) -> RecordedFrame:
        frame: Json = json.loads(await (client or self._clients[name]).recv())
        return RecordedFrame(name, frame)


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
