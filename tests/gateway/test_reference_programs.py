"""The client and the gateway of the protocol's specification, unmodified, and `wscat`."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.callers import Json
from lab.hub_process import HubProcess
from tests.gateway.client import EchoSeat, GatewayClient, team
from tests.sdks.environments import ENVIRONMENTS, Missing

PROGRAMS = Path(__file__).parent / "programs"
ENDS_WITHIN_S = 60
COMPARED: list[Json] = [
    {"type": "handshake", "content": {"action": "advertise", "capabilities": {"version": "1.0.0"}}},
    {"type": "discovery", "content": {"action": "list"}},
    {"type": "subscribe", "content": {"channel": "agent:status"}},
    {"type": "message", "agent": "absent", "content": {"role": "user", "content": "hi"}},
    {"type": "nope", "content": {}},
]


async def packages() -> Path:
    try:
        return await asyncio.to_thread(ENVIRONMENTS["js-gateway"].ready) / "node_modules"
    except Missing as missing:
        pytest.skip(str(missing))


@asynccontextmanager
async def running(*command: str, **environ: str) -> AsyncIterator[Process]:
    """A running program of Node."""
    process = await asyncio.create_subprocess_exec(
        *("node", *command),
        env={"PATH": os.environ["PATH"], "NODE_PATH": str(await packages()), **environ},
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def program_of_specification(name: str) -> tuple[str, ...]:
    """The command of a program of the specification, with `ports.cjs` before it."""
    return "--require", str(PROGRAMS / "ports.cjs"), str(PROGRAMS / name)


def socket_url(hub: HubProcess, token: str) -> str:
    return f"{hub.url.replace('http', 'ws', 1)}/?token={token}"


async def test_the_reference_client_is_answered(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "reference", steward=EchoSeat):
        url = socket_url(embedded_hub, embedded_hub.mint("reference", "session"))
        async with running(*program_of_specification("reference_client.js"), GATEWAY_URL=url) as client:
            async with asyncio.timeout(ENDS_WITHIN_S):
                said, complaints = await client.communicate()
    assert client.returncode == 0, complaints.decode()
    assert "Connected to Gateway" in said.decode()
    assert "echo: What is the current status of the collective?" in said.decode()


@asynccontextmanager
async def reference_gateway() -> AsyncIterator[str]:
    """The gateway of the specification; its address."""
    async with running(*program_of_specification("reference_gateway.js")) as gateway:
        assert gateway.stdout is not None
        async with asyncio.timeout(ENDS_WITHIN_S):
            while not (line := (await gateway.stdout.readline()).decode()).startswith("port "):
                assert line, (await gateway.communicate())[1].decode()
        yield f"http://127.0.0.1:{line.split()[1]}"


async def answers(client: GatewayClient) -> list[Json]:
    """The frames that come for each of the frames that are compared."""
    found: list[Json] = []
    for frame in COMPARED:
        before = len(client.frames)
        await client.socket.send(json.dumps(frame))

        def is_new(found: Json, before: int = before) -> bool:
            return any(one is found for one in client.frames[before:])

        wanted = frame["type"] if frame["type"] in {"handshake", "discovery", "subscribe"} else "error"
        found.append(await client.find(wanted, is_new))
    return found


def missing_in(shown: Any, reference: Any, path: str = "") -> list[str]:
    """The members of the reference that `shown` lacks, or has of another kind, or with another value."""
    if isinstance(reference, dict):
        lacks = [f"{path}.{key}" for key in reference if key not in shown]
        return lacks + [
            one
            for key in reference
            if key in shown
            for one in missing_in(shown[key], reference[key], f"{path}.{key}")
        ]
    free = (".content.clientId", ".content.message")
    return [] if path in free and isinstance(shown, str) else [path] * (shown != reference)


async def test_the_hub_answers_as_the_reference_gateway_and_says_more(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("compared", "session")
    async with (
        reference_gateway() as url,
        GatewayClient(url, path="/") as theirs,
        GatewayClient(embedded_hub.url, token, path="/") as ours,
    ):
        shown, reference = await answers(ours), await answers(theirs)
    for ours_, theirs_ in zip(shown, reference, strict=True):
        assert missing_in(ours_, theirs_) == [], (ours_, theirs_)
    codes = [one["content"]["code"] for one in shown if one["type"] == "error"]
    assert codes == [3001, 2004]


async def test_wscat_talks_to_the_gateway(embedded_hub: HubProcess) -> None:
    wscat = await packages() / "wscat" / "bin" / "wscat"
    url = socket_url(embedded_hub, embedded_hub.mint("wscat", "session"))
    options = ("--subprotocol", "a2a-v1", "--no-color", "--execute", '{"type":"ping"}', "--wait", "5")
    seen = ""
    async with (
        running(str(wscat), "--connect", url, *options) as process,
        asyncio.timeout(ENDS_WITHIN_S),
    ):
        assert process.stdout is not None
        while '"pong"' not in seen:
            seen += (line := await process.stdout.readline()).decode()
            assert line, seen
    assert '"authenticated"' in seen
