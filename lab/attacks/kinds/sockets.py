"""Sockets that do nothing, and those that send to many others."""

import asyncio
import itertools
import json

from lab.attacks.attacker import AttackedHub, Attacker, together
from lab.bench.agents import RawEchoAgent, dial

IDLE = 300
AGENTS = 1_100  # more than one owner may have connected
SEATS = 200
AT_ONCE = 16
TEXT = "x" * 2_000
PATHS = ("/channel", "/gateway", "/cli")


async def idle_sockets_without_a_token(hub: AttackedHub, attacker: Attacker) -> None:
    """sockets of `/channel`, `/cli` and the gateway without a token, idle"""

    async def hold(number: int) -> None:
        while True:
            socket = await attacker.open_socket(hub, PATHS[number % len(PATHS)], token="")
            if socket is not None:
                await socket.wait_closed()
                attacker.ends[f"closed {socket.close_code}"] += 1
            await asyncio.sleep(0.5)

    await together(IDLE, hold)


async def idle_sockets_with_a_token(hub: AttackedHub, attacker: Attacker) -> None:
    """agents that are connected, and never asked"""
    numbers = itertools.count()

    async def connect(_: int) -> None:
        while next(numbers) < AGENTS:
            try:
                await dial(lambda: RawEchoAgent(attacker.channel_token, None), hub.port)
            except OSError as refused:
                attacker.ends[str(refused)[:60]] += 1
            else:
                attacker.ends["socket"] += 1

    await together(AT_ONCE, connect)


async def gateway_broadcasts(hub: AttackedHub, attacker: Attacker) -> None:
    """broadcasts at the gateway to 200 agents of the account that read nothing"""
    names = [f"seat{number}" for number in range(SEATS)]
    opened = []
    for name in names:
        path = f"/gateway?agentId={name}"
        opened.append(await attacker.open_socket(hub, path, token=attacker.channel_token, subprotocols=["a2a-v1"]))
    sockets = [one for one in opened if one is not None]

    async def send(number: int) -> None:
        for count in itertools.count():
            frame = {"type": "broadcast", "id": f"b-{number}-{count}", "content": {"message": TEXT}}
            await sockets[number].send(json.dumps(frame))
            attacker.ends["frame"] += 1
            await asyncio.sleep(0.001)

    await together(4, send)
