"""The addresses of an agent's card; the addresses that a card lists do what the card says."""

from typing import Any

import httpx
import pytest

from lab.agents import Echo, online
from lab.callers import Json, bearer, envelope, question, rpc_path, web
from lab.hub_process import HubProcess
from tests.http_json import V1
from tests.surfaces.test_cards import patch

WELL_KNOWN = "/.well-known/agent-card.json"
HOOK = {"url": "https://8.8.8.8/hook"}  # public, and never called: these tasks have ended
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
BASES = ("", "/", "/core", "/core/", "/v1", "/v1/")
GIVEN = (*BASES, "/agent-card.json", "/.well-known", WELL_KNOWN, f"/v1{WELL_KNOWN}")
ADDRESSES = (*BASES, *(given.rstrip("/") + WELL_KNOWN for given in GIVEN))


async def post(client: httpx.AsyncClient, url: str, method: str, params: Any, version: str) -> Json:
    answer = await client.post(url, json=envelope(method, params), headers={"A2A-Version": version})
    assert answer.status_code == 200, answer.text
    result: Json = answer.json()
    return result


async def does_over_rpc(client: httpx.AsyncClient, url: str) -> tuple[bool, bool]:
    """True if an interface of 1.0 over JSON-RPC has push notifications, and the extended card."""
    asked = await post(client, url, "SendMessage", question("hello"), "1.0")
    task_id = asked["result"]["task"]["id"]
    named = {"taskId": task_id}
    one = {**named, "id": "c1"}
    told = [
        await post(client, url, "CreateTaskPushNotificationConfig", {**one, **HOOK}, "1.0"),
        await post(client, url, "GetTaskPushNotificationConfig", one, "1.0"),
        await post(client, url, "ListTaskPushNotificationConfigs", named, "1.0"),
        await post(client, url, "DeleteTaskPushNotificationConfig", one, "1.0"),
        await post(
            client,
            url,
            "SendMessage",
            {**question("again"), "configuration": {"taskPushNotificationConfig": HOOK}},
            "1.0",
        ),
    ]
    codes = {answer.get("error", {}).get("code") for answer in told}
    assert codes in ({None}, {-32003}), told
    shown = await post(client, url, "GetExtendedAgentCard", {}, "1.0")
    assert "result" in shown or shown["error"]["code"] == -32004
    return codes == {None}, "result" in shown


async def does_over_http(client: httpx.AsyncClient, url: str) -> tuple[bool, bool]:
    """The same over HTTP+JSON."""
    asked = await client.post(f"{url}/message:send", json=question("hello"), headers=V1)
    configs = f"{url}/tasks/{asked.json()['task']['id']}/pushNotificationConfigs"
    kept = await client.post(configs, json=HOOK, headers=V1)
    listed = await client.get(configs, headers=V1)
    shown = await client.get(f"{url}/extendedAgentCard", headers=V1)
    for answer, reason in (
        (kept, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        (listed, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        (shown, "UNSUPPORTED_OPERATION"),
    ):
        assert answer.is_success or answer.json()["error"]["details"][0]["reason"] == reason
    assert kept.is_success == listed.is_success
    return kept.is_success, shown.is_success


async def does_over_03(client: httpx.AsyncClient, url: str) -> tuple[bool, bool]:
    """The same in 0.3."""
    listed = await post(client, url, "tasks/pushNotificationConfig/list", {"id": "task-x"}, "0.3")
    shown = await post(client, url, "agent/getAuthenticatedExtendedCard", {}, "0.3")
    return "result" in listed, "result" in shown


DOES = {
    ("JSONRPC", "1.0"): does_over_rpc,
    ("HTTP+JSON", "1.0"): does_over_http,
    ("JSONRPC", "0.3"): does_over_03,
}


@pytest.mark.parametrize("headers", [{}, V1], ids=["merged", "strict"])
async def test_each_interface_of_a_card_does_what_the_card_promises(
    hub: HubProcess, alice: str, headers: dict[str, str]
) -> None:
    async with online(hub, Echo) as agent, web(hub.url, headers=bearer(alice)) as client:
        card = (await client.get(rpc_path(agent.handle) + WELL_KNOWN, headers=headers)).json()
        says = (card["capabilities"]["pushNotifications"], card["capabilities"]["extendedAgentCard"])
        for one in card["supportedInterfaces"]:
            does = DOES[one["protocolBinding"], one["protocolVersion"]]
            assert await does(client, one["url"]) == says, one
    assert says == (bool(headers), bool(headers))


async def test_each_address_that_clients_are_given_leads_to_the_card(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent, web(embedded_hub.url) as client:
        for headers in ({}, V1, {"Accept": "application/json"}):
            usual = await client.get(rpc_path(agent.handle) + WELL_KNOWN, headers=headers)
            of_1_0 = await client.get(f"{rpc_path(agent.handle)}/v1{WELL_KNOWN}", headers=headers)
            for below in ADDRESSES:
                wanted = (of_1_0 if below.startswith("/v1") else usual).headers["etag"]
                answer = await client.get(rpc_path(agent.handle) + below, headers=headers)
                head = await client.head(rpc_path(f"@{agent.handle}") + below, headers=headers)
                assert (answer.status_code, head.status_code, head.content) == (200, 200, b""), below
                assert answer.headers["etag"] == head.headers["etag"] == wanted, below


async def test_a_browser_is_shown_the_agents_page_at_its_base(
    embedded_hub: HubProcess, subtests: pytest.Subtests
) -> None:
    async with online(embedded_hub, Echo) as agent, web(embedded_hub.url) as client:
        for below in BASES:
            answer = await client.get(rpc_path(f"@{agent.handle}") + below, headers={"Accept": BROWSER})
            with subtests.test(below=below):
                assert (answer.status_code, answer.headers["location"]) == (302, f"/agents/{agent.handle}")
                assert "Accept" in answer.headers["vary"]
        page = await client.get(answer.headers["location"])
        card = await client.get(rpc_path(agent.handle) + WELL_KNOWN, headers={"Accept": BROWSER})
    assert (page.status_code, card.status_code) == (200, 200)


async def test_an_agent_that_is_not_for_the_reader_is_absent_at_every_address(embedded_hub: HubProcess) -> None:
    alice, bob = embedded_hub.mint("alice", "session"), embedded_hub.mint("bob", "session")
    async with online(embedded_hub, Echo) as agent, web(embedded_hub.url) as client:
        await patch(embedded_hub, agent.agent["id"], access="limited", allowedLogins=["alice"])
        for below in ADDRESSES:
            may = await client.get(rpc_path(agent.handle) + below, headers=bearer(alice))
            assert (may.status_code, may.headers["cache-control"]) == (200, "private, no-store")
            for headers in (bearer(bob), {}):
                closed = await client.get(rpc_path(agent.handle) + below, headers=headers)
                absent = await client.get(rpc_path("owner/never-was") + below, headers=headers)
                assert (closed.status_code, closed.content) == (absent.status_code, absent.content)
                assert closed.status_code == 404
        asked = envelope("SendMessage", question("hello"))
        for handle in (agent.handle, "owner/never-was"):
            refused = await client.post(f"{rpc_path(handle)}/core", json=asked, headers={**bearer(bob), **V1})
            assert refused.status_code == 404


async def test_the_base_takes_reads_and_calls_alone(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent, web(embedded_hub.url) as client:
        for below in ("", "/", "/core"):
            for verb in ("PUT", "DELETE", "PATCH"):
                answer = await client.request(verb, rpc_path(agent.handle) + below)
                assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST, OPTIONS")
        for given in ("nowhere", "a%0Ab"):
            absent = await client.get(f"{rpc_path(agent.handle)}/{given}{WELL_KNOWN}")
            assert (absent.status_code, absent.json().keys()) == (404, {"error", "message"}), given
    assert agent.prompts == []
