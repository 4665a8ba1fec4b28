"""`claw agents publish`, `list` and `inbound`."""

from lab.agents import Echo
from lab.callers import reply_text, send
from lab.hub_process import HubProcess
from tests.clients.claw import claw
from tests.clients.shapes import AGENT, INBOUND, SESSION, check, items


async def test_publish_list_inbound(clients_hub: HubProcess) -> None:
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
