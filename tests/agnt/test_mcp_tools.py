"""The four intents as tools of MCP, by the official SDKs: Python in both generations of MCP, and TypeScript."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from tests.agnt.venues import Keeper
from tests.agnt.wire import add_venue, count, mint, network_id, stamp
from tests.channel.agents import sql
from tests.mcp.clients import HANDSHAKE, MODES, mcp_client, run_typescript, text_of
from tests.sdks.clients import Run

TOOLS = {"agnt.ping", "agnt.list_venues", "agnt.search_venues", "agnt.confirm_booking"}
MESSAGE: Json = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def keeper(embedded_hub: HubProcess) -> Keeper:
    """The owner of a network with a venue."""
    keeper = Keeper(embedded_hub)
    add_venue(embedded_hub, keeper.login, "la-brisa", description="Sunset dinner by the sea")
    return keeper


Connect = Callable[[], AbstractAsyncContextManager[Client]]


@pytest.fixture(params=MODES)
def connect(request: pytest.FixtureRequest, keeper: Keeper) -> Connect:
    """Connects a client with the key of the network, of each generation of the protocol."""
    return lambda: mcp_client(keeper.hub.url, keeper.key.token, request.param)


async def call(client: Client, tool: str, **arguments: Any) -> Json:
    """The payload that a tool answers."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    payload: Json = result.structured_content
    return payload


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """The code of the error that a tool answers."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    code = str(result.structured_content["error"]["code"])
    assert text_of(result).startswith(f"Error: {code}: ")
    return code


async def call_by_typescript(hub: HubProcess, token: str, *calls: tuple[str, str, Json]) -> Run:
    """The view of the TypeScript client: the tools, and the result of each call (step, tool, arguments)."""
    return await run_typescript("calls.mjs", f"{hub.url}/mcp", token, json.dumps(calls))


async def test_the_instructions_name_the_tools_of_a_key_alone(keeper: Keeper) -> None:
    async with mcp_client(keeper.hub.url, keeper.key.token, HANDSHAKE) as client:
        told = client.instructions or ""
    assert all(name in told for name in TOOLS)
    assert not [name for name in ("list_agents", "ask_agent", "get_task") if name in told]


async def test_a_key_has_the_four_intents_as_tools(keeper: Keeper, connect: Connect) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == TOOLS
        assert tools["agnt.confirm_booking"].input_schema["required"] == ["venue_id"]
        ping = await call(client, "agnt.ping")
        assert (ping["active_venues"], ping["tier"], ping["agent_id"]) == (1, "pro", "mcp")
        listed = await call(client, "agnt.list_venues", location="canggu", limit=5)
        assert [one["slug"] for one in listed["venues"]] == ["la-brisa"]
        found = await call(client, "agnt.search_venues", query="sunset")
        assert (found["count"], found["fee_pct"]) == (1, 7)


async def test_the_typescript_client_lists_and_calls_the_four_tools(keeper: Keeper) -> None:
    charges = count(keeper.hub, keeper.login, "agnt_usageevent")
    order = {"venue_id": "la-brisa", "slot_time": "19:30", "party_size": 2, "timestamp": stamp()}
    seen = await call_by_typescript(
        keeper.hub,
        keeper.key.token,
        ("ping", "agnt.ping", {}),
        ("list", "agnt.list_venues", {"location": "canggu", "limit": 5}),
        ("search", "agnt.search_venues", {"query": "sunset"}),
        ("confirm", "agnt.confirm_booking", order),
        ("confirm again", "agnt.confirm_booking", order),
    )
    assert set(seen.one("tools").value) == TOOLS
    ping, listed, found, booked, again = (one.value["structuredContent"] for one in seen.sights[1:])
    assert (ping["tier"], listed["count"], found["count"], booked["status"]) == ("pro", 1, 1, "pending")
    assert again == booked
    assert count(keeper.hub, keeper.login, "agnt_usageevent") == charges + 1


async def test_a_booking_is_charged_once_for_each_timestamp(keeper: Keeper, connect: Connect) -> None:
    async with connect() as client:
        before = count(keeper.hub, keeper.login, "agnt_usageevent")
        order = {"venue_id": "la-brisa", "slot_time": "19:30", "party_size": 2, "timestamp": stamp()}
        booked = [await call(client, "agnt.confirm_booking", **order) for _ in range(2)]
        assert booked[0] == booked[1]
        assert (booked[0]["status"], booked[0]["slot_time"]) == ("pending", "19:30")
        assert count(keeper.hub, keeper.login, "agnt_usageevent") == before + 1
        await call(client, "agnt.confirm_booking", venue_id="la-brisa")
        assert count(keeper.hub, keeper.login, "agnt_usageevent") == before + 2


async def test_calls_are_counted_and_logged_like_envelopes(keeper: Keeper) -> None:
    other = mint(keeper.hub, keeper.login, "free", "query", senders=["alpha", "beta"])
    async with mcp_client(keeper.hub.url, other.token) as limited:
        assert (await call(limited, "agnt.ping"))["agent_id"] == "alpha"
        assert (await call(limited, "agnt.ping", sender="beta"))["agent_id"] == "beta"
        assert await refusal(limited, "agnt.ping", sender="gamma") == "scope_denied"
        assert await refusal(limited, "agnt.confirm_booking", venue_id="la-brisa") == "tier_required"
    rows = sql(
        keeper.hub,
        "SELECT i.intent, i.status, i.sender FROM agnt_interaction i JOIN agnt_apikey k ON k.id = i.key_id"
        " WHERE k.tier = 'free' AND k.network_id = ? ORDER BY i.id DESC LIMIT 4",
        network_id(keeper.hub, keeper.login),
    )
    assert [tuple(row) for row in reversed(rows)] == [
        ("network.ping", "ok", "alpha"),
        ("network.ping", "ok", "beta"),
        ("network.ping", "scope_denied", "gamma"),
        ("booking.confirm", "tier_required", "alpha"),
    ]


async def test_wrong_arguments_are_the_errors_of_envelopes(connect: Connect) -> None:
    wrong: list[tuple[str, Json, str]] = [
        ("list_venues", {"limit": "5"}, "invalid_envelope"),
        ("search_venues", {"nearby": True}, "invalid_envelope"),
        ("confirm_booking", {}, "invalid_envelope"),
        ("confirm_booking", {"venue_id": "la-brisa", "party_size": 2.5}, "invalid_envelope"),
        ("confirm_booking", {"venue_id": "nowhere"}, "venue_not_found"),
        ("ping", {"sender": "a b"}, "invalid_envelope"),
        ("ping", {"timestamp": "2020-01-01T00:00:00Z"}, "timestamp_expired"),
    ]
    async with connect() as client:
        for tool, arguments, code in wrong:
            assert await refusal(client, f"agnt.{tool}", **arguments) == code, arguments
        for arguments in ({"sender": 5}, {"timestamp": ["x"]}):
            assert (await client.call_tool("agnt.ping", arguments)).is_error
        deep = await client.call_tool("agnt.search_venues", {"query": {"a": {"b": {"c": {}}}}})
        assert deep.is_error
        for name in ("ask_agent", "list_agents", "agnt.pay"):
            with pytest.raises(MCPError):
                await client.call_tool(name, {})


async def test_who_has_no_key_has_no_such_tool(keeper: Keeper) -> None:
    async with mcp_client(keeper.hub.url, keeper.hub.mint(keeper.login, "app")) as other:
        assert not {tool.name for tool in (await other.list_tools()).tools} & TOOLS
        with pytest.raises(MCPError):
            await other.call_tool("agnt.ping", {})


async def test_a_revoked_key_is_refused(keeper: Keeper) -> None:
    other = Keeper(keeper.hub)
    async with web(keeper.hub.url, headers=bearer(other.key.token) | ACCEPT) as client:
        assert (await client.post("/mcp", json=MESSAGE)).status_code == 200
        other.revoke_first_key()
        for token in (other.key.token, "agnt_live_" + "0" * 32):
            answer = await client.post("/mcp", json=MESSAGE, headers=bearer(token))
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer ")
