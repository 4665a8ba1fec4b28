"""Generated frames on each socket: of agents, of operators, and of teams."""

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from lab.frames import Json
from tests.attempts import Attempts
from tests.fuzz.agent import FuzzedAgent
from tests.fuzz.frames import FRAMES, OPEN_CHAT, FrameSender, SocketWire, cases_of
from tests.fuzz.live import Broke, Live, number_of, try_each
from tests.fuzz.values import Schemas
from tests.operators.operator import dial as dial_cli

pytestmark = [pytest.mark.attack, pytest.mark.deep, pytest.mark.timeout(3600)]
MARK = "of-the-test"


@pytest.fixture(scope="module")
def sockets(live: Live) -> Json:
    """The AsyncAPI document of the hub."""
    document: Json = live.seeded.http.get(f"{live.hub.url}/api/ws-docs/json").json()
    return document


def attack(live: Live, wire: SocketWire, attempts: Attempts, *, parts: int = 1) -> None:
    """Send the wire's frames, and check the hub afterwards."""
    sender = FrameSender(live, wire)
    before = live.usage()
    broke = 1
    try:
        try_each(live, wire.cases, number_of(attempts, live) // FRAMES // parts, sender.attack)
        broke = 0
    finally:
        attempts.count(f"generated {wire.name}", sender.sent, broke)
        sender.close()
    live.check_usage(before)


def test_no_frames_of_an_agent_break_the_hub(live: Live, sockets: Json, attempts: Attempts) -> None:
    agent = live.run(FuzzedAgent.published(live))
    names = {"chatId": [OPEN_CHAT], "taskId": [OPEN_CHAT], "handle": [agent.handle, "demo/echo"],
             "sessionId": [agent.session_id], "peer": ["demo/echo", "@echo"]}  # fmt: skip
    cases, sound = (
        cases_of(Schemas(sockets, names), "channel"),
        {"type": "list_peers_request", "correlationId": MARK},
    )
    wire = SocketWire(
        "frames on /channel", cases, agent.dial, agent.open, sound, "list_peers_response", MARK, ask=agent.ask
    )
    try:
        attack(live, wire, attempts)
    finally:
        live.run(agent.close())


def test_no_frames_of_an_operator_break_the_hub(live: Live, sockets: Json, attempts: Attempts) -> None:
    seeded = live.seeded
    own, watched = seeded.names["public_id"], seeded.free_session
    names = {"sessionId": [own, watched], "sourceSessionId": [own], "peer": ["demo/echo", "@echo"],
             "requestId": ["leave-1"], "mentions": [["alice"]]}  # fmt: skip

    async def dial() -> ClientConnection:
        return await dial_cli(live.socket_url + "/cli", seeded.tokens["bearer"])

    sound = {"type": "subscribe", "sessionId": seeded.ended}
    cases = cases_of(Schemas(sockets, names), "cli")
    wire = SocketWire("frames on /cli", cases, dial, dial, sound, "subscribed", seeded.ended)
    attack(live, wire, attempts)


SIGNED_IN_BY = ["an operator", "a seat", "nothing"]


@pytest.mark.parametrize("by", SIGNED_IN_BY)
def test_no_frames_of_a_team_break_the_hub(live: Live, sockets: Json, attempts: Attempts, by: str) -> None:
    seeded = live.seeded
    query = {
        "an operator": f"?token={seeded.tokens['bearer']}",
        "a seat": f"?token={seeded.tokens['channelToken']}&agentId=fuzzed",
        "nothing": "",
    }[by]
    url = live.socket_url + "/gateway" + query
    names = {"agent": ["alpha", "fuzzed", "@demo/echo"], "name": ["alpha"], "proposalId": ["p-1"],
             "service": ["agents.list", "sessions.list"], "correlationId": ["p-1", "c-1"],
             "token": [seeded.tokens["bearer"]], "channel": ["agents", "proposals"]}  # fmt: skip

    async def dial() -> ClientConnection:
        return await connect(url, subprotocols=[Subprotocol("a2a-v1")], compression=None, proxy=None)

    sound = {"type": "ping", "metadata": {"correlationId": MARK}}
    cases = cases_of(Schemas(sockets, names), "gateway")
    wire = SocketWire(f"frames of a2a-v1, signed in by {by}", cases, dial, dial, sound, "pong", MARK)
    attack(live, wire, attempts, parts=len(SIGNED_IN_BY))


def test_an_error_that_any_process_logs_is_noticed(live: Live) -> None:
    for program in live.hub.all_programs:
        with program.log.open("a") as log:
            log.write("2026-11-29 10:00:00,000 ERROR of.the.test an error\n")
        with pytest.raises(Broke, match=f"(?s)^{program.name} logged:.* an error$"):
            live.check()
    live.check()
