"""Two teams at one gateway: for each, the agents of the other are as if they were not there.

Every type of frames, and every service, is sent twice: about an agent, a message, a session or a proposal of
another team, and about a name that does not exist anywhere. The answers are the same, and nothing reaches the
other team.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.surface.handlers import SERVICES
from gateway.wire.frame_types import FRAME_TYPES
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import sql
from tests.gateway.client import EchoSeat, GatewayClient, code_of, owner_of, team
from tests.gateway.test_frames import SOUND
from tests.gateway.test_stored_messages import event, know
from tests.gateway.test_tokens import mint
from tests.tenancy.world import fill

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
]
MAX_FLAWS = 15  # a connection with 20 of them is closed
UNSTABLE = {"timestamp", "id", "lastActivity", "createdAt", "lastSeen", "uptime"}
TWIN = "twin-agent"  # the name of an agent in both teams
THEIRS = {"agent": FOREIGN, "letter": "m-foreign", "session": "s-foreign", "proposal": "p-foreign"}
NOWHERE = {"agent": ABSENT, "letter": "m-nowhere", "session": "s-nowhere", "proposal": "p-nowhere"}
SECRET = "only the other team reads this"


def of_agents(**fields: Any) -> list[Json]:
    """Parameters about an agent of the other team, and about the one whose name both teams have."""
    return [{"agent": name, **fields} for name in ("{agent}", TWIN)]


IN_SESSION, ABOUT_LETTER = {"sessionId": "{session}"}, {"messageId": "{letter}"}
LINE = {"timestamp": 1, "role": "user", "content": SECRET, **IN_SESSION, "id": "{letter}"}
IMPORTED = of_agents(jsonl=json.dumps(LINE) + "\n")
# All parameters of each service. In this order each serves the owner of the other team, and none is asked while a
# message is on its way.
PARAMETERS: dict[str, list[Json]] = {
    "agents.get": [{"name": "{agent}"}, {"name": "@{owner}/{agent}"}],
    "agents.list": [{}],
    "gateway.status": [{}],
    "inbox.count": of_agents(),
    "inbox.get": of_agents(unread=False, limit=100),
    "inbox.list": [{}],
    "inbox.receipt": [ABOUT_LETTER, *of_agents(**ABOUT_LETTER)],
    "inbox.unread": of_agents(limit=100),
    "inbox.mark_read": of_agents(ids=["{letter}"]),
    "inbox.clear": of_agents(),
    "sessions.get": of_agents(**IN_SESSION),
    "sessions.list": [*of_agents(archived=True), {}],
    "sessions.export": of_agents(**IN_SESSION),
    "sessions.commit": of_agents(**IN_SESSION, lockMs=0),
    "sessions.archive": [*of_agents(**IN_SESSION), *of_agents(olderThan="1w")],
    "sessions.delete": of_agents(**IN_SESSION),
    "sessions.create": of_agents(**IN_SESSION),
    "sessions.import": IMPORTED,
    "triad.get": [{"proposalId": "{proposal}"}],
    "triad.list": [{}, {"state": "pending", "limit": 100}],
    "inbox.send": of_agents(message="hi", id="{letter}", parentId="{letter}", threadId="{letter}"),
}
OF_TEAM = "SELECT id FROM {} WHERE owner_id = ?"
ROWS_OF_TEAM = [
    *(f"SELECT * FROM gateway_{table} WHERE owner_id = ?" for table in ("letter", "sessionlog", "proposal")),
    f"SELECT * FROM gateway_sessionentry WHERE log_id IN ({OF_TEAM.format('gateway_sessionlog')})",
    f"SELECT * FROM gateway_vote WHERE proposal_id IN ({OF_TEAM.format('gateway_proposal')})",
    f"SELECT * FROM agents_turn WHERE session_id IN ({OF_TEAM.format('agents_session')})",
    f"SELECT * FROM agents_event WHERE session_id IN ({OF_TEAM.format('agents_session')})",
]
EVENTS = -1  # of these statements


def about(frame: Json, agent: str) -> str:
    return json.dumps(frame).replace("{}", agent)


def without_times(value: Any, names: Mapping[str, str]) -> Any:
    """The parts of frames that a client can tell apart: no times, no new ids, and each sent name as its key."""
    if isinstance(value, dict):
        return {key: without_times(one, names) for key, one in value.items() if key not in UNSTABLE}
    if isinstance(value, list):
        return [without_times(one, names) for one in value]
    if isinstance(value, str):
        for key, name in names.items():
            value = value.replace(name, f"<{key}>")
    return value


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
        found.append([type_name, [without_times(one, {"agent": agent}) for one in got]])
    return found


async def token_of(hub: HubProcess, role: str, login: str) -> str:
    """A token of a role in the team of a user."""
    kind = TOKENS[role]
    if isinstance(kind, str):
        return hub.mint(login, kind)
    return str((await mint(hub, login, scopes=kind or None))["token"])


def test_every_type_that_the_gateway_serves_is_in_the_matrix() -> None:
    served = {name for name, one in FRAME_TYPES.items() if one.taken and not one.before_auth}
    assert {type_name for type_name, _ in NAMED} == served


@pytest.mark.parametrize("role", TOKENS)
async def test_an_agent_of_another_team_is_as_if_it_were_not_there(embedded_hub: HubProcess, role: str) -> None:
    token = await token_of(embedded_hub, role, f"apart-{role}")
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


@asynccontextmanager
async def other_team(hub: HubProcess, login: str) -> AsyncIterator[tuple[GatewayClient, GatewayClient]]:
    """The owner of a team, and the seat of its agent TWIN; its other agent is away.

    Each agent has a stored message and a session with an entry, and the team has a proposal.
    """
    await know(hub, login, FOREIGN)
    async with team(hub, login, TWIN) as (twin,), owner_of(hub, login) as owner:
        for sender, agent, imported in zip((twin, owner), (FOREIGN, TWIN), IMPORTED, strict=True):
            sent = await sender.request("inbox.send", agent=agent, message=SECRET, id=THEIRS["letter"])
            assert sent["state"] == "queued"
            assert "sessions" in await owner.request("sessions.import", **fill(imported, THEIRS))
        await event(owner, "message.delivered", THEIRS["letter"])

        async def is_recorded() -> bool:
            return SECRET in str(rows_of(hub, login)[EVENTS])

        await eventually(is_recorded, "the delivery is an event of the session")
        assert (await owner.propose(THEIRS["proposal"], SECRET))["state"] == "pending"
        yield owner, twin


def rows_of(hub: HubProcess, login: str) -> list[list[Any]]:
    """What a team has stored, by statement."""
    [(user_id,)] = sql(hub, "SELECT id FROM accounts_user WHERE login = ?", login)
    return [sorted(sql(hub, statement, user_id)) for statement in ROWS_OF_TEAM]


def test_every_service_has_its_parameters() -> None:
    assert PARAMETERS.keys() == SERVICES.keys()


@pytest.mark.parametrize("role", TOKENS)
async def test_a_service_finds_nothing_of_another_team(embedded_hub: HubProcess, role: str) -> None:
    hub, login, others = embedded_hub, f"apart-services-{role}", f"owner-services-{role}"
    token = await token_of(hub, role, login)
    query = {"agentId": TWIN} if role == "agent" else {}
    theirs, nowhere = ({**names, "owner": others} for names in (THEIRS, NOWHERE))
    await know(hub, login, TWIN)
    async with other_team(hub, others) as (owner, twin):
        before, frames = rows_of(hub, others), list(twin.frames)
        for service, parameters in PARAMETERS.items():
            async with GatewayClient(hub.url, token, **query) as client:
                assert (await client.find("auth-response"))["content"]["role"] == role
                for some in parameters:
                    there, absent = [
                        without_times(await client.request(service, **fill(some, names)), names)
                        for names in (theirs, nowhere)
                    ]
                    assert there == absent, (service, some)
                assert SECRET not in json.dumps(client.frames)
        assert rows_of(hub, others) == before
        assert twin.frames == frames
        for service, parameters in PARAMETERS.items():  # what was asked for is there
            found = [
                await (twin if some.get("agent") == TWIN else owner).request(service, **fill(some, theirs))
                for some in parameters
            ]
            assert not all("error" in one for one in found), (service, found)


async def test_a_sender_that_is_someone_else_is_refused_for_every_type(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "spoofing", "alpha") as (alpha,):
        for type_name in SOUND.keys() - {"disconnect", "error", "auth"}:
            forged = {"type_name": type_name, "type": type_name, "from": "beta"}
            error = await alpha.ask(**SOUND[type_name] | forged)
            assert (code_of(error)[0], error["content"]["field"]) == (5004, "from"), type_name
