"""Behaviours 8, 10, 13 and 14, where this hub has their like: an account is a published agent."""

from typing import Any

from lab.agents import Echo, online
from lab.callers import Json, bearer, rpc_path, web
from lab.hub_process import HubProcess
from tests.openclaw.caller import Caller, text
from tests.openclaw.test_card_and_routes import card_of


async def on_rest(hub: HubProcess, method: str, path: str, body: Any = None) -> tuple[int, Json]:
    """The owner's answer from the REST interface."""
    async with web(hub.url, headers=bearer(hub.mint("owner", "session"))) as client:
        response = await client.request(method, path, json=body)
    return response.status_code, response.json()


async def test_08_without_a_published_agent_there_is_no_endpoint(hub: HubProcess, alice: str) -> None:
    caller = Caller(hub.url, "unknown/nothing", alice)
    async with web(hub.url) as client:
        assert (await client.get(f"{rpc_path('unknown/nothing')}/.well-known/agent-card.json")).status_code == 404
    response = await caller.post("message/send", {"message": {}})
    assert (response.status_code, response.json()["error"]["code"]) == (404, -32012)


async def test_10_two_agents_cannot_have_one_address(hub: HubProcess) -> None:
    async with online(hub, Echo) as agent, online(hub, Echo) as other:
        taken = {"slug": agent.handle.partition("/")[2]}
        status, refusal = await on_rest(hub, "PATCH", f"/api/v1/agents/{other.agent['id']}", taken)
    assert status in (400, 409), refusal


async def test_13_an_agent_takes_text_and_data_and_no_other_mode(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        card = await card_of(hub, agent.handle)
        assert "application/octet-stream" not in card["defaultInputModes"]
        for media_type in ("application/octet-stream", "text/plain"):  # a file of text is none either
            file = {"kind": "file", "file": {"bytes": "AAAA", "mimeType": media_type}}
            sent = {"message": {"messageId": "m", "role": "user", "parts": [text("look"), file]}}
            assert (await Caller(hub.url, agent.handle, alice).refusal("message/send", sent))["code"] == -32602


async def test_14_retired_keys_are_refused_by_name(hub: HubProcess) -> None:
    async with online(hub, Echo, agent={"agentStyle": "hybrid"}) as agent:
        assert agent.agent["agentStyle"] == "hybrid"
        for key in ("restPath", "capabilities", "auth", "agentStyle"):
            status, refusal = await on_rest(hub, "PATCH", f"/api/v1/agents/{agent.agent['id']}", {key: "/rest"})
            assert (status, key in str(refusal)) == (400, True), refusal
