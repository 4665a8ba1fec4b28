"""Clients of the prototype's dialect: one for tests, and those of a record, which send its frames again.

The record, `prototype_frames.json`, has the frames that `agents/lib/agent-client.js` and
`gateway/openclaw-gateway.js` of
https://github.com/Heretek-AI/heretek-openclaw-core, commit 55aa319197a28c346e967f8820d9696cce6a038d, unmodified,
sent each other in the scenario of `lab/prototype/`; times, ids and measurements in it are replaced. The programs
are in no registry, so the tests have their frames alone: docs/howto/test.md says how they are recorded again.
"""

import asyncio
import json
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from lab.frames import Json
from lab.hub_process import HubProcess
from lab.prototype.record import CLOSES, OPENS, Normaliser, RecordedFrame, Step, is_failure
from tests.gateway.client import WITHIN_S, GatewayClient

LAST = {"type": "discover"}  # sent before a client leaves: its answer comes after all earlier frames


def address_for(hub: HubProcess, login: str) -> str:
    """Where an agent of that login connects."""
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
                    shown.append(
                        Normaliser().fix_step(Step(step.client, step.does, step.query, step.text, answers))
                    )
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
            while (await self._watching.discover())[name] != "offline":
                await asyncio.sleep(0.05)
        return surplus

    async def _read(self, name: str, client: ClientConnection | None = None) -> RecordedFrame:
        frame: Json = json.loads(await (client or self._clients[name]).recv())
        return RecordedFrame(name, frame)
