"""The socket of the gateway: who gets in, how it is closed, and whose seat it is."""

import json
import time
from functools import partial
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from accounts.open_requests import OpenRequests, UnsignedSockets
from agents.links.channel.arrivals import Arrivals
from gateway.service.seat import take_seats
from gateway.surface.socket import GatewaySocket
from kit.concurrency import ConcurrencyLimit
from lab.callers import Json, bearer, web
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage, run_command
from tests.gateway.client import GatewayClient
from tests.gateway.test_channels import build_gateway


@pytest.mark.parametrize("path", ["/", "/a2a", "/ws", "/gateway"])
async def test_each_path_takes_the_subprotocol_and_acknowledges(embedded_hub: HubProcess, path: str) -> None:
    token = embedded_hub.mint("team", "session")
    async with GatewayClient(embedded_hub.url, token, path=path) as client:
        assert client.socket.subprotocol == "a2a-v1"
        content = (await client.shake_hands())["content"]
        assert (content["action"], content["protocolVersion"]) == ("acknowledge", "1.0.0")
        assert content["clientId"].startswith("client-")


async def test_an_upgrade_to_another_protocol_is_400_and_without_one_there_is_no_echo(
    embedded_hub: HubProcess,
) -> None:
    url = embedded_hub.url.replace("http", "ws", 1) + "/gateway"
    with pytest.raises(InvalidStatus) as caught:
        await connect(url, subprotocols=[Subprotocol("mqtt")])
    assert caught.value.response.status_code == 400
    async with connect(url) as socket:
        assert socket.subprotocol is None


async def test_http_on_the_paths_is_the_home_page_or_told_to_upgrade(embedded_hub: HubProcess) -> None:
    async with web(embedded_hub.url) as client:
        assert (await client.get("/")).headers["content-type"].startswith("text/html")
        for path in ("/a2a", "/ws", "/gateway"):
            answer = await client.get(path)
            assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")
            assert "connect by WebSocket" in answer.json()["message"]


async def test_a_hub_without_the_gateway_names_the_setting(
    make_storage: MakeStorage, start_hub: StartHub, subtests: pytest.Subtests
) -> None:
    hub = start_hub(make_storage("embedded"), GATEWAY=0)
    for path in ("/", "/a2a", "/ws", "/gateway"):
        with subtests.test(path=path):
            with pytest.raises(InvalidStatus) as caught:
                await connect(hub.url.replace("http", "ws", 1) + path, subprotocols=[Subprotocol("a2a-v1")])
            refused = caught.value.response
            assert refused.status_code == 404
            assert refused.body is not None
            assert "GATEWAY=1" in json.loads(refused.body)["message"]
    async with web(hub.url) as client:
        assert (await client.get("/")).headers["content-type"].startswith("text/html")
        paths = ["/a2a", "/ws", "/gateway", "/agent-status", "/agent-status/alpha", "/ap/v1/agent/tasks"]
        for path in (*paths, "/api/v1/gateway/fipa", "/agent/alpha"):
            for answer in (await client.get(path), await client.post(path, json={})):
                assert (answer.status_code, answer.json()["error"]) == (404, "gateway_off"), path
                assert "GATEWAY=1" in answer.json()["message"]
        assert "gateway" not in (await client.get("/nothing")).text.lower()
        client.headers.update(bearer(hub.mint("watched", "session")))
        assert [(await client.get(path)).status_code for path in ("/health", "/desk/team")] == [404, 404]
    # The hub says so, whatever the environment of the command has.
    done = run_command({**hub.home.env, "GATEWAY": "1"}, "gateway", "status")
    assert (done.returncode, "running: no: GATEWAY is not 1" in done.stdout) == (2, True)


async def test_before_a_token_only_the_handshake_is_served(embedded_hub: HubProcess) -> None:
    async with GatewayClient(embedded_hub.url) as client:
        assert (await client.shake_hands())["content"]["availableAgents"] == []
        await client.send("discovery", {"action": "list"}, metadata={"correlationId": "c1"})
        error = await client.find("error")
        assert (error["content"]["code"], error["metadata"]["correlationId"]) == (5001, "c1")
        await client.send("auth", {"token": embedded_hub.mint("team", "session")})
        content = (await client.find("auth-response"))["content"]
        assert (content["status"], content["role"]) == ("authenticated", "admin")
        await client.send("discovery", {"action": "list"})
        await client.find("discovery")


async def test_a_header_signs_in_too_and_a_cookie_does_not(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("team", "session")
    url = embedded_hub.url.replace("http", "ws", 1) + "/gateway"
    async with connect(url, additional_headers=bearer(token)) as socket:
        assert json.loads(await socket.recv())["content"]["status"] == "authenticated"
    async with connect(url, additional_headers={"Cookie": f"cw_session={token}"}) as socket:
        await socket.send('{"type":"status"}')
        assert json.loads(await socket.recv())["content"]["code"] == 5001


async def test_the_third_wrong_token_closes_with_4001(embedded_hub: HubProcess) -> None:
    async with GatewayClient(embedded_hub.url) as client:
        for _ in range(3):
            await client.send("auth", {"token": "wrong"})
        assert await client.closed() == 4001
        assert [one["content"]["code"] for one in client.frames if one["type"] == "error"] == [5002] * 3


async def test_a_client_without_a_token_is_told_and_closed(embedded_hub: HubProcess) -> None:
    async with GatewayClient(embedded_hub.url, timeout=1000) as client:
        assert await client.closed() == 4001
        assert client.frames[-1]["content"]["code"] == 1002


async def test_pings_are_answered_with_what_they_say(embedded_hub: HubProcess) -> None:
    async with GatewayClient(embedded_hub.url) as client:
        await client.send("ping", heartbeat={"uptime": 7}, metadata={"correlationId": "p"})
        pong = await client.find("pong")
        assert pong["content"]["heartbeat"]["agentHeartbeat"] == {"uptime": 7}
        assert (pong["metadata"], isinstance(pong["timestamp"], int)) == ({"correlationId": "p"}, True)


async def test_frames_that_are_not_in_order_are_answered_and_some_close(embedded_hub: HubProcess) -> None:
    async with GatewayClient(embedded_hub.url, heartbeat="often") as client:
        assert (await client.find("error"))["content"]["field"] == "heartbeat"
        await client.socket.send("{")
        await client.find("error", lambda frame: frame["content"]["code"] == 2001)
        await client.socket.send(b"{}")
        assert await client.closed() == 1003
    async with GatewayClient(embedded_hub.url) as client:
        await client.socket.send(json.dumps("x" * 1_048_576))
        assert await client.closed() == 1009
        assert client.frames[-1]["content"]["code"] == 1004


async def test_a_disconnect_is_closed_normally_whatever_its_reason(embedded_hub: HubProcess) -> None:
    for reason, code in (("manual", None), ("bored", 2005)):
        async with GatewayClient(embedded_hub.url) as client:
            await client.send("disconnect", {"reason": reason})
            assert await client.closed() == 1000
            assert [frame["content"]["code"] for frame in client.frames] == ([code] if code else [])


async def test_the_newest_connection_has_the_seat(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("newest", "channel")
    async with GatewayClient(embedded_hub.url, token, agentId="alpha") as old:
        assert (await old.find("auth-response"))["content"]["agent"] == "alpha"
        async with GatewayClient(embedded_hub.url, token) as new:
            await new.find("auth-response")
            await new.send("status", **{"from": "alpha"})  # the first `from` takes the seat
            status = await new.find("status")
            assert status["content"]["agents"] == [{"agent": "alpha", "status": "online"}]
            assert await old.closed() == 1000
            assert old.frames[-1]["content"]["reason"] == "error"
            await new.send("status", **{"from": "beta"})
            assert (await new.find("error"))["content"]["code"] == 5004
        async with GatewayClient(embedded_hub.url, token) as other:
            await other.sees("alpha", "offline")


async def test_a_session_token_takes_no_seat_and_a_wrong_name_is_refused(embedded_hub: HubProcess) -> None:
    for kind, agent_id, code in (("session", "alpha", 5004), ("channel", "Alpha", 2005)):
        async with GatewayClient(embedded_hub.url, embedded_hub.mint("team", kind), agentId=agent_id) as client:
            assert await client.closed() == 1008
            assert client.frames[-1]["content"]["code"] == code


async def test_a_name_of_a_program_on_another_link_is_refused(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("namesake", "channel")
    async with (
        ChannelAgent(embedded_hub.url, token, routingName="alpha"),
        GatewayClient(embedded_hub.url, token, agentId="alpha") as client,
    ):
        assert await client.closed() == 1008
        assert client.frames[-1]["content"]["reason"] == "name_taken"


async def test_a_restart_is_told_to_seats() -> None:
    sent: list[Json] = []

    async def send(message: Json) -> None:
        sent.append(message)

    ledger: Any = None  # nothing is asked
    gateway = build_gateway()
    socket = GatewaySocket(
        gateway=gateway,
        ledger=ledger,
        clients=ConcurrencyLimit("sockets", per_account=1),
        callers=OpenRequests(),
        unsigned=UnsignedSockets(),
        arrivals=Arrivals(gateway.link, gateway.paces, partial(take_seats, process_id="p")),
        clock=time.monotonic,
    )
    socket.base_send = send
    await socket.close_from_hub(1012, bye="restart")
    assert json.loads(sent[0]["text"])["content"]["reason"] == "shutdown"
    assert sent[1]["code"] == 1001
