"""kill -9 of a hub during a chat: delivered messages are in the session afterwards, stored ones are delivered."""

import asyncio
import itertools
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from lab.frames import Json
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.gateway.client import EchoSeat, GatewayClient, team

pytestmark = pytest.mark.slow

KILLED_AFTER = 40  # replies
AT_ONCE = 8
SESSION = "s-1"


class Chat:
    """Asks and tells without a pause, until the hub is gone."""

    def __init__(self, alpha: GatewayClient) -> None:
        self._alpha = alpha
        self._numbers = itertools.count()
        self.replies: list[Json] = []
        self.has_enough = asyncio.Event()

    async def ask(self) -> None:
        with suppress(ConnectionClosed, AssertionError):  # the hub is killed
            while True:
                key = f"ask-{next(self._numbers)}"
                about = {"requiresResponse": True, "correlationId": key}
                await self._send(key, about)
                self.replies.append(await self._alpha.reply(key))
                if len(self.replies) >= KILLED_AFTER:
                    self.has_enough.set()
                await self._send(f"tell-{key}", {})

    async def _send(self, key: str, metadata: Json) -> None:
        await self._alpha.tell("beta", f"text of {key}", id=key, sessionId=SESSION, metadata=metadata)


async def read_ids(client: GatewayClient, agent: str) -> list[str]:
    """The ids of the entries of the session at an agent, in order."""
    ids: list[str] = []
    after = 0
    while True:
        got = await client.request("sessions.get", agent=agent, sessionId=SESSION, limit=100, after=after)
        ids += [one["id"] for one in got["entries"]]
        if not (after := got.get("next", 0)):
            return ids


@pytest.mark.parametrize(
    ("kind", "processes"), [("embedded", 1), pytest.param("grown", 2, marks=pytest.mark.deep)]
)
async def test_what_was_delivered_when_the_hub_was_killed_is_in_the_session(
    make_storage: MakeStorage, start_hub: StartHub, kind: str, processes: int
) -> None:
    """Kills the only process; `deep`: the sender's process, and then the recipient's process.

    `test_session_rows.py::test_what_a_killed_process_held_is_written_once` shows what another process writes.
    """
    hub = start_hub(make_storage(kind), processes=processes)
    for killed in range(processes):
        await chat_until_killed(hub, killed, f"chatty-{killed}")


async def chat_until_killed(hub: HubProcess, killed: int, login: str) -> None:
    """Kill a process while the agents of a team talk, one at each process, and start it again."""
    async with team(hub, login, "gamma"):
        pass
    owner = hub.mint(login, "session")
    watcher = GatewayClient(hub.urls[1 - killed if len(hub.urls) > 1 else 0], owner)
    async with team(hub, login, "alpha", beta=EchoSeat) as (alpha, beta), watcher:
        await watcher.ask("subscribe", {"channel": "agent:message"})
        for number in range(3):  # stored messages for an agent that is away
            await alpha.tell("gamma", f"note {number}", id=f"note-{number}", metadata={"ttl": 600})
        await alpha.find("event", lambda frame: frame["content"]["messageId"] == "note-2")
        chat = Chat(alpha)
        asking = [asyncio.create_task(chat.ask()) for _ in range(AT_ONCE)]
        await asyncio.wait_for(chat.has_enough.wait(), 60)
        hub.kill9(killed)
        await (beta if killed else alpha).closed()
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    reached = {one["id"] for one in beta.of("message")}
    reported = {one["content"]["id"] for one in watcher.frames if one.get("event") == "message.delivered"}
    replied = [one for one in chat.replies if one["type"] == "message"]
    assert len(replied) >= KILLED_AFTER
    assert len(reached) >= KILLED_AFTER
    wanted = reached | reported | {one["metadata"]["correlationId"] for one in replied}
    wanted |= {one["id"] for one in replied}
    await check_kept(hub, killed, owner, wanted)
    async with GatewayClient(hub.urls[killed], hub.mint(login, "channel"), agentId="gamma") as gamma:
        await gamma.find("message", lambda frame: frame["id"] == "note-2")
        assert [one["id"] for one in gamma.of("message")] == [f"note-{number}" for number in range(3)]


async def check_kept(hub: HubProcess, killed: int, owner: str, wanted: set[str]) -> None:
    """Start the killed process again; the sessions of both agents have all wanted entries, and none twice."""
    await asyncio.to_thread(hub.serve, killed)
    async with GatewayClient(hub.urls[killed], owner) as client:

        async def is_whole() -> bool:
            return wanted <= set(await read_ids(client, "alpha"))

        if len(hub.urls) > 1:  # another process writes them once the hub takes the killed process for dead
            await eventually(is_whole, "the session is whole", every_s=0.5)  # each look reads all of it
        for agent in ("alpha", "beta"):
            ids = await read_ids(client, agent)
            assert wanted - set(ids) == set()
            assert len(ids) == len(set(ids))
