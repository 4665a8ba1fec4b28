"""The AgentCard, as section 2 of the bridge page prints it."""

import json

import httpx

from lab.agents import Echo, online
from lab.callers import bearer, envelope, question, rpc_path, send, web
from lab.hub_process import HubProcess
from lab.waiting import eventually


async def card_of(hub: HubProcess, handle: str, **headers: str) -> httpx.Response:
    async with web(hub.url) as client:
        return await client.get(f"{rpc_path(handle)}/agent-card.json", headers=headers)


async def patch(hub: HubProcess, agent_id: int, **fields: object) -> None:
    async with web(hub.url) as client:
        headers = bearer(hub.mint("owner", "session"))
        response = await client.patch(f"/api/v1/agents/{agent_id}", json=fields, headers=headers)
    assert response.status_code == 200, response.text


async def rpc_status(hub: HubProcess, handle: str, token: str) -> int:
    body = {"jsonrpc": "2.0", "method": "GetTask", "params": {"id": "task-x"}, "id": 1}
    async with web(hub.url) as client:
        return (await client.post(rpc_path(handle), json=body, headers=bearer(token))).status_code


async def test_the_card_is_public_and_says_what_clients_of_every_dialect_read(hub: HubProcess) -> None:
    fields = {"name": "rust expert", "description": "answers Rust questions", "dailyBudgetQueries": 17}
    async with online(hub, Echo, agent=fields) as agent:
        response = await card_of(hub, agent.handle)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("application/json")
    card = response.json()
    assert (card["name"], card["description"], card["version"]) == ("rust expert", "answers Rust questions", "1")
    url = f"{hub.url}{rpc_path(agent.handle)}"
    assert [one["url"] for one in card["supportedInterfaces"]] == [f"{url}/core", f"{url}/core", url]
    assert (card["url"], card["protocolVersion"], card["preferredTransport"]) == (url, "0.3.0", "JSONRPC")
    assert card["additionalInterfaces"] == [{"url": url, "transport": "JSONRPC"}]
    assert card["provider"]["url"] == hub.url
    (rating,) = card["capabilities"].pop("extensions")
    assert rating["uri"] == f"{hub.url}/extensions/rating/v1"
    assert card["capabilities"] == {"streaming": True, "pushNotifications": False, "extendedAgentCard": False}
    assert card["skills"][0].items() >= {"id": "ask", "name": "ask"}.items()
    assert card["defaultInputModes"] == card["defaultOutputModes"] == ["text/plain", "application/json"]
    scheme = card["securitySchemes"]["bearerSession"]
    assert scheme.items() >= {"type": "http", "scheme": "Bearer"}.items()
    assert scheme["httpAuthSecurityScheme"]["scheme"] == "Bearer"
    assert card["security"] == [{"bearerSession": []}]
    assert card["securityRequirements"] == [{"schemes": {"bearerSession": {"list": []}}}]
    assert "supportsAuthenticatedExtendedCard" not in card
    private = card["_clawborrator"]
    assert (private["handle"], private["ownerLogin"]) == (agent.handle, "owner")
    assert (private["dailyBudget"], private["queriesToday"]) == (17, 0)
    assert (private["online"], private["isolated"]) == (True, True)
    assert "isolationNote" in private


async def test_the_card_counts_todays_questions_and_sees_the_agent_leave(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        await send(hub.url, agent.handle, "one", alice)
        await send(hub.url, agent.handle, "two", alice)
        assert (await card_of(hub, agent.handle)).json()["_clawborrator"]["queriesToday"] == 2
        await agent.leave()

        async def offline() -> bool:
            return not (await card_of(hub, agent.handle)).json()["_clawborrator"]["online"]

        await eventually(offline, "the card says offline")


async def test_the_card_is_built_from_public_url_and_never_from_the_host_header(hub: HubProcess) -> None:
    async with online(hub, Echo) as agent:
        honest = await card_of(hub, agent.handle)
        forged = await card_of(hub, agent.handle, **{"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil"})
        hostile = await card_of(hub, agent.handle, Host="evil.example")
    assert honest.json() == forged.json()
    assert "evil" not in hostile.text


async def test_an_agent_is_asked_no_more_on_the_very_next_request_after_it_was_hidden(
    hub: HubProcess, alice: str
) -> None:
    """A draft, and an agent that was deleted. `test_card_renderings.py` shows the same of its card."""
    async with online(hub, Echo) as agent:
        for status, answered in (("draft", 404), ("published", 200)):
            await patch(hub, agent.agent["id"], status=status)
            assert await rpc_status(hub, agent.handle, alice) == answered
        async with web(hub.url) as client:
            headers = bearer(hub.mint("owner", "session"))
            gone = await client.delete(f"/api/v1/agents/{agent.agent['id']}", headers=headers)
        assert gone.status_code in (200, 204)
        assert (await card_of(hub, agent.handle)).status_code == 404
        assert await rpc_status(hub, agent.handle, alice) == 404


async def test_an_agent_may_take_shorter_requests_than_the_hub(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo, agent={"maxBodyBytes": 1024}) as agent, web(hub.url) as client:
        body = json.dumps(envelope("SendMessage", question("hello"))).encode()
        headers = bearer(alice) | {"Content-Type": "application/json"}
        fitting, over = body.ljust(1024), body.ljust(1025)
        assert (await client.post(rpc_path(agent.handle), content=fitting, headers=headers)).status_code == 200
        refused = await client.post(rpc_path(agent.handle), content=over, headers=headers)
        assert (refused.status_code, refused.json()["error"]["message"]) == (413, "the body is over 1024 bytes")
        assert len(agent.prompts) == 1
