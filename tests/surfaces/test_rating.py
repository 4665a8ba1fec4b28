"""The extension by which callers rate answers: over A2A in each dialect, over HTTP+JSON, and as a tool of MCP."""

from typing import Any

import pytest

from lab.agents import Echo, TaskPeer, online
from lab.callers import bearer, call, send, web
from lab.hub_process import HubProcess
from tests.mcp.clients import mcp_client, task_id_of, text_of

METHODS = [("", "RateTask"), ("1.0", "RateTask"), ("0.3", "tasks/rate")]


async def rating_of(hub: HubProcess, token: str, task_id: str) -> Any:
    """The rating of a task's last question, as its caller reads it over REST."""
    async with web(hub.url, headers=bearer(token)) as client:
        asked = (await client.get("/api/v1/questions", params={"task": task_id})).json()["items"][0]["id"]
        shown = (await client.get(f"/api/v1/questions/{asked}/rating")).json()
    return shown["rating"], shown["note"]


@pytest.mark.parametrize(("version", "method"), METHODS)
async def test_a_task_is_rated_in_each_dialect(hub: HubProcess, alice: str, version: str, method: str) -> None:
    async with online(hub, Echo) as agent:
        task_id = (await send(hub.url, agent.handle, "hi", alice))["id"]
        for rating, note in (("up", "thanks"), ("down", ""), ("none", "")):
            params = {"id": task_id, "rating": rating, "note": note}
            answer = await call(hub.urls[-1], agent.handle, alice, method, params, version=version)
            assert answer.json()["result"]["id"] == task_id
            wanted = (None, "") if rating == "none" else (rating, note)
            assert await rating_of(hub, alice, task_id) == wanted


async def test_what_cannot_be_rated_is_an_error(hub: HubProcess, alice: str, bob: str) -> None:
    async with online(hub, TaskPeer) as agent:
        task_id = (await send(hub.url, agent.handle, "hi", alice))["id"]
        failed_id = (await send(hub.url, agent.handle, "fail so", alice))["id"]

        async def refusal(token: str, **params: Any) -> Any:
            answer = await call(hub.url, agent.handle, token, "RateTask", params, version="1.0")
            return answer.json()["error"]

        assert (await refusal(bob, id=task_id, rating="up"))["code"] == -32001
        assert (await refusal(alice, id=failed_id, rating="up"))["code"] == -32015
        for params in ({"id": task_id, "rating": "great"}, {"id": task_id}):
            wrong = await refusal(alice, **params)
            assert (wrong["code"], wrong["data"][1]["fieldViolations"][0]["field"]) == (-32602, "rating")
        assert (await refusal(alice, id=task_id, rating="up", note="x" * 1001))["code"] == -32602
        assert await rating_of(hub, alice, task_id) == (None, "")


async def test_a_task_is_rated_over_http_json_and_the_card_names_the_extension(
    hub: HubProcess, alice: str
) -> None:
    async with online(hub, Echo) as agent, web(hub.url, headers=bearer(alice)) as client:
        base = f"/api/a2a/v1/agents/{agent.handle}"
        versions: list[dict[str, str]] = [{}, {"A2A-Version": "1.0"}]
        cards = [(await client.get(f"{base}/.well-known/agent-card.json", headers=one)).json() for one in versions]
        uris = {one["uri"] for card in cards for one in card["capabilities"]["extensions"]}
        uri = next(one for one in uris if one.endswith("/extensions/rating/v1"))
        assert all(uri in [one["uri"] for one in card["capabilities"]["extensions"]] for card in cards)
        assert "tasks/rate" in (await client.get("/extensions/rating/v1")).text
        task_id = (await send(hub.url, agent.handle, "hi", alice))["id"]
        headers = {"A2A-Version": "1.0", "A2A-Extensions": uri}
        rated = await client.post(f"{base}/tasks/{task_id}:rate", json={"rating": "up"}, headers=headers)
        assert (rated.status_code, rated.json()["id"], rated.headers["a2a-extensions"]) == (200, task_id, uri)
    assert await rating_of(hub, alice, task_id) == ("up", "")


async def test_an_answer_is_rated_by_a_tool(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent, mcp_client(hub.url, alice) as client:
        asked = await client.call_tool("ask_agent", {"handle": agent.handle, "message": "hi"})
        task_id = task_id_of(asked)
        wanted = {"task_id": task_id, "rating": "down", "note": "too short"}
        rated = await client.call_tool("rate_answer", wanted)
        assert text_of(rated) == f"The answer of the task {task_id} is rated down."
        absent = await client.call_tool("rate_answer", wanted | {"task_id": "task-" + "0" * 32})
        assert absent.is_error
    assert await rating_of(hub, alice, task_id) == ("down", "too short")
