"""`claw agents publish`, `list`, `update`, `inbound`, `unpublish`."""

import asyncio

import pytest

from lab.agents import Echo
from lab.callers import reply_text, send
from lab.hub_process import HubProcess
from tests.clients.claw import Failed, claw
from tests.clients.shapes import AGENT, INBOUND, SESSION, check, items


async def test_publish_list_update_inbound_unpublish(clients_hub: HubProcess) -> None:
    hub, owner = clients_hub, claw(clients_hub, "owner")
    async with Echo(hub.url, hub.mint("owner", "channel"), cwd="/w/agents-run") as agent:
        body = {"sessionId": agent.session_id, "name": "proj", "status": "published", "tagline": "t"}
        made = check(owner.call("POST", "/agents", body), AGENT)
        handle = made["handle"]
        assert (handle, made["status"], made["isolated"]) == (f"owner/{agent.routing_name[1:]}", "published", True)
        assert (made["dailyBudgetQueries"], made["concurrencyCap"], made["online"]) == (1000, 5, True)
        for query in ("", "?owner=owner", "?q=agents-run"):
            listed = check(claw(hub, "alice").call("GET", f"/agents{query}"), items(AGENT))["items"]
            assert handle in [one["handle"] for one in listed], query
        assert check(owner.call("GET", f"/sessions/{agent.session_id}"), SESSION)["agentHandle"] == handle
        assert reply_text(await send(hub.url, handle, "hi", hub.mint("alice", "session"))) == "echo: hi"

        found = check(owner.call("GET", f"/agents/by-handle/{handle}"), AGENT)
        audit = check(owner.call("GET", f"/agents/{found['id']}/inbound?days=7"), INBOUND)
        assert (audit["summary"]["total"], audit["window"]["days"]) == (1, 7)
        (row,) = audit["recent"]
        assert (row["askerLogin"], row["ok"], row["question"]) == ("alice", True, "hi")

        change = {"status": "draft", "dailyBudgetQueries": 5, "isolated": False}
        changed = check(owner.call("PATCH", f"/agents/{found['id']}", change), AGENT)
        assert {name: changed[name] for name in change} == change
        await refused(hub, "alice", f"/agents/by-handle/{handle}")
        check(owner.call("GET", f"/agents/by-handle/{handle}"), AGENT)
        assert owner.send("DELETE", f"/agents/{found['id']}").status in (200, 204)
        await refused(hub, "owner", f"/agents/by-handle/{handle}")
        again = check(owner.call("POST", "/agents", body), AGENT)
        assert again["restored"] is True


async def refused(hub: HubProcess, login: str, path: str) -> None:
    """It is a 404 in JSON."""
    with pytest.raises(Failed) as absent:
        await asyncio.to_thread(claw(hub, login).call, "GET", path)
    assert absent.value.status == 404
