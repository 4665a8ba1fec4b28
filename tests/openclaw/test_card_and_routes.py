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
    async with online(hub, Echo) as agent:
        card = await card_of(hub, agent.handle)
    assert card["preferredTransport"] == "JSONRPC"
    assert card["additionalInterfaces"] == [{"transport": "JSONRPC", "url": card["url"]}]
    capabilities = card["capabilities"]
    assert (capabilities["streaming"], capabilities["pushNotifications"]) == (True, False)
    assert not capabilities.get("stateTransitionHistory")
    assert card["defaultInputModes"] == card["defaultOutputModes"] == ["text/plain", "application/json"]


async def test_02_each_skill_has_modes_and_a_description(hub: HubProcess) -> None:
    async with online(hub, Echo) as agent:
        skills = (await card_of(hub, agent.handle))["skills"]
    assert skills
    for skill in skills:
        assert skill["inputModes"] == skill["outputModes"] == ["text/plain", "application/json"]
        assert skill["description"]


async def test_03_the_card_is_of_0_3_0_and_names_the_address_that_answers(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        card = await card_of(hub, agent.handle)
        assert card["protocolVersion"] == "0.3.0"
        assert card["url"] == hub.url + rpc_path(agent.handle)
        async with web("") as client:
            for url in (card["url"], card["url"] + "/"):
                body = envelope("message/send", {"message": message("hello")}, 7)
                answer = await client.post(url, json=body, headers=bearer(alice))
                assert answer.json()["result"]["kind"] == "message"


async def test_04_other_http_methods_do_not_reach_the_card_or_the_endpoint(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent, web(hub.url, headers=bearer(alice)) as client:
        posted = await client.post(f"{rpc_path(agent.handle)}/.well-known/agent-card.json", json={})
        put = await client.put(rpc_path(agent.handle), json={})
    assert (posted.status_code, put.status_code) == (405, 405)
    assert put.headers["allow"] == "GET, HEAD, POST, OPTIONS"
    assert put.json()["error"]["code"] == -32600
    assert agent.prompts == []


async def test_05_there_are_no_files_to_fetch(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent, web(hub.url, headers=bearer(alice)) as client:
        for path in ("/a2a/files/x", f"{rpc_path(agent.handle)}/a2a/files/x", f"{rpc_path(agent.handle)}/files/x"):
            assert (await client.get(path)).status_code == 404


async def test_06_a_request_is_answered_once(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        response = await Caller(hub.url, agent.handle, alice).post("message/send", {"message": message("hello")})
        assert len(agent.prompts) == 1
    assert response.json()["result"]["kind"] == "message"  # one JSON document, and nothing behind it


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
