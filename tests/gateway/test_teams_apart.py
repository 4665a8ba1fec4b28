"""Two teams at one gateway: for each, the agents of the other are as if they were not there.

Every type of frames, and every service, is sent twice: about an agent of another team, and about a name that does
not exist anywhere. The answers are the same, and nothing reaches the other team.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.surface.handlers import SERVICES
from gateway.wire.frame_types import FRAME_TYPES
from lab.frames import Json
from lab.hub_process import HubProcess
from tests.gateway.client import EchoSeat, GatewayClient, code_of, owner_of, team
from tests.gateway.test_frames import SOUND
from tests.gateway.test_tokens import mint

FOREIGN, ABSENT = "foreign-agent", "absent-agents"  # of one length, so that records are of one size
TOKENS: dict[str, Any] = {"admin": "session", "operator": [], "agent": "channel", "observer": ["read"]}
CHANNELS = ("agent:{}:inbox", "triad:{}", "letters of {}", "reply to {}", "{}", "agent:@owner-apart/{}:inbox")
NAMED = [  # where a frame names an agent
    *(("message", {"agent": name}) for name in ("{}", "@owner-apart/{}")),
    ("status", {"content": {"status": "busy", "agent": "{}"}}),
    ("event", {"event": "agent.registered", "content": {"event": "agent.registered", "agent": "{}"}}),
    ("discovery", {"content": {"action": "get", "name": "{}"}}),
    ("discovery", {"content": {"action": "get", "name": "@owner-apart/{}"}}),
    ("discovery", {"content": {"action": "list"}}),
    ("subscribe", {"content": {"channel": "agent:status", "agents": ["{}"]}}),
    *((name, {"content": {"channel": one}}) for one in CHANNELS for name in ("subscribe", "unsubscribe")),
    ("workspace", {"content": {"action": "get", "name": "{}"}}),
    ("workspace", {"content": {"action": "list"}}),
    ("proposal", {"agent": "{}"}),
    ("vote", {"content": {"vote": "approve", "proposalId": "{}"}}),
    ("broadcast", {"content": {"message": "stop", "agents": ["{}"]}}),
    ("response", {"agent": "{}"}),
    ("error", {"agent": "{}", "content": {"error": "AGENT_ERROR", "code": 3004}}),
    ("request", {"agent": "{}", "content": {"service": "nothing.there"}}),
    *(
        ("request", {"content": {"service": name, "params": {"agent": "{}", "name": "{}", "sessionId": "s-1"}}})
        for name in sorted(SERVICES)
    ),
]
MAX_FLAWS = 15  # a connection with 20 of them is closed
UNSTABLE = {"timestamp", "id", "lastActivity", "createdAt", "lastSeen", "uptime"}


def about(frame: Json, agent: str) -> str:
    return json.dumps(frame).replace("{}", agent)


def without_times(value: Any, name: str) -> Any:
    """The parts of frames that a client can tell apart: no times, no new ids, and the sent name as one word."""
    if isinstance(value, dict):
        return {key: without_times(one, name) for key, one in value.items() if key not in UNSTABLE}
    if isinstance(value, list):
        return [without_times(one, name) for one in value]
    return value.replace(name, "NAME") if isinstance(value, str) else value


async def answers(client: GatewayClient, agent: str, named: Sequence[tuple[str, Json]]) -> list[Any]:
    """All that the client gets for each frame; a ping after it says when that was all."""
    found = []
    for number, (type_name, more) in enumerate(named):
        metadata = {"correlationId": f"c-{agent}-{number}", "requiresResponse": True}
        frame = SOUND[type_name] | {"id": "m-1", "metadata": metadata} | more
        before = len(client.frames)
        await client.socket.send(about(frame, agent))
        if type_name == "message" or (type_name == "request" and "agent" in more):  # they are answered later
            await client.reply(f"c-{agent}-{number}", "response" if type_name == "request" else "message")
        await client.send("ping", metadata={"correlationId": f"p-{agent}-{number}"})
        end = {"correlationId": f"p-{agent}-{number}"}
        pong = await client.find("pong", lambda one, end=end: one.get("metadata") == end)
        got = client.frames[before : client.frames.index(pong)]
        found.append([type_name, [without_times(one, agent) for one in got]])
    return found


def test_every_type_that_the_gateway_serves_is_in_the_matrix() -> None:
    served = {name for name, one in FRAME_TYPES.items() if one.taken and not one.before_auth}
    assert {type_name for type_name, _ in NAMED} == served


@pytest.mark.parametrize("role", TOKENS)
async def test_an_agent_of_another_team_is_as_if_it_were_not_there(embedded_hub: HubProcess, role: str) -> None:
    kind, login = TOKENS[role], f"apart-{role}"
    if isinstance(kind, str):
        token = embedded_hub.mint(login, kind)
    else:
        token = (await mint(embedded_hub, login, scopes=kind or None))["token"]
    query = {"agentId": "own"} if role == "agent" else {}
    async with (
        team(embedded_hub, "owner-apart", **{FOREIGN: EchoSeat}) as (foreign,),
        owner_of(embedded_hub, "owner-apart") as owner,
    ):
        assert (await owner.propose(FOREIGN))["state"]  # a proposal with that name, too
        before = list(foreign.frames)
        for start in range(0, len(NAMED), MAX_FLAWS):
            some = NAMED[start : start + MAX_FLAWS]
            found = []
            for agent in (FOREIGN, ABSENT):
                async with GatewayClient(embedded_hub.url, token, **query) as client:
                    assert (await client.find("auth-response"))["content"]["role"] == role
                    found.append(await answers(client, agent, some))
                    assert FOREIGN not in (await client.shake_hands())["content"]["availableAgents"]
            for there, absent in zip(*found, strict=True):
                assert there == absent
        assert foreign.frames == before


async def test_a_sender_that_is_someone_else_is_refused_for_every_type(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "spoofing", "alpha") as (alpha,):
        for type_name in SOUND.keys() - {"disconnect", "error", "auth"}:
            forged = {"type_name": type_name, "type": type_name, "from": "beta"}
            error = await alpha.ask(**SOUND[type_name] | forged)
            assert (code_of(error)[0], error["content"]["field"]) == (5004, "from"), type_name
