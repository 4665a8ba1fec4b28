"""Behaviours 1 to 7: the card, and which addresses there are."""

from lab.agents import Echo, TaskPeer, gone, online
from lab.callers import Json, bearer, envelope, rpc_path, web
from lab.hub_process import HubProcess
from tests.openclaw.caller import Caller, message, state_of, told, words_of


async def card_of(hub: HubProcess, handle: str) -> Json:
    """As clients of 0.3 find it."""
    async with web(hub.url) as client:
        response = await client.get(f"{rpc_path(handle)}/.well-known/agent-card.json")
    assert response.status_code == 200, response.text
    card: Json = response.json()
    return card


async def test_01_the_card_prefers_jsonrpc_and_lists_one_more_interface_at_the_same_url(hub: HubProcess) -> None:
    async with online(hub, Echo, agent={"name": "only a name"}) as agent:
        card = await card_of(hub, agent.handle)
    assert card["name"] == card["description"] == "only a name"
    assert card["preferredTransport"] == "JSONRPC"
    assert card["additionalInterfaces"] == [{"transport": "JSONRPC", "url": card["url"]}]
    capabilities = card["capabilities"]
    assert (capabilities["streaming"], capabilities["pushNotifications"]) == (True, False)
    assert not capabilities.get("stateTransitionHistory")
    modes = ["text/plain", "application/json"]
    assert card["defaultInputModes"] == card["defaultOutputModes"] == modes
    assert card["skills"]
    for skill in card["skills"]:
        assert skill["inputModes"] == skill["outputModes"] == modes
        assert skill["description"]


async def test_03_the_card_is_of_0_3_0_and_names_the_address_that_answers(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        card = await card_of(hub, agent.handle)
        assert card["protocolVersion"] == "0.3.0"
        assert card["url"] == hub.url + rpc_path(agent.handle)
        async with web("", headers=bearer(alice)) as client:
            for url in (card["url"], card["url"] + "/"):
                answer = await client.post(url, json=envelope("message/send", {"message": message("hello")}, 7))
                assert answer.json()["result"]["kind"] == "message"  # one JSON document, and nothing behind it
        assert len(agent.prompts) == 2  # one for each request


async def test_04_other_http_methods_do_not_reach_the_card_or_the_endpoint(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent, web(hub.url, headers=bearer(alice)) as client:
        path = rpc_path(agent.handle)
        posted = await client.post(f"{path}/.well-known/agent-card.json", json={})
        put = await client.put(path, json={})
        for files in ("/a2a/files/x", f"{path}/a2a/files/x", f"{path}/files/x"):
            assert (await client.get(files)).status_code == 404
    assert (posted.status_code, put.status_code) == (405, 405)
    assert put.headers["allow"] == "GET, HEAD, POST, OPTIONS"
    assert put.json()["error"]["code"] == -32600
    assert agent.prompts == []


async def test_07_an_agent_that_is_not_running_is_a_failed_task(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        await agent.leave()
        await gone(hub, agent)
        caller = Caller(hub.url, agent.handle, alice)
        answer = await caller.send("hello?")
        events = await caller.stream("hello?")
    last = events[-1]
    assert (answer["kind"], state_of(answer), words_of(answer)) == ("task", "failed", "agent channel offline")
    assert told(events) == ["task submitted", "status-update submitted", "status-update failed"]
    assert (last["final"], words_of(last)) == (True, "agent channel offline")
