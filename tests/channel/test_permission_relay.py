"""Asking for permission over the socket, deciding over REST: absence, and time.

The users who may decide: `tests/native/test_permission_decisions.py`. Of several decisions one stands, and a
session has so many requests at most: `tests/contracts/test_permissions.py`.
"""

from typing import Any

import httpx

from lab.callers import bearer, web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import Agent, agent, sql


async def request_permission(mine: Agent, request_id: str, tool: str = "Bash", preview: str = "ls") -> None:
    await mine.send(type="permission_request", requestId=request_id, tool=tool, inputPreview=preview, ts=None)


async def resolve(
    hub: HubProcess, login: str, mine: Agent, request_id: str, *, at: int = 0, **body: Any
) -> httpx.Response:
    path = f"/api/v1/sessions/{mine.session_id}/permissions/{request_id}/resolve"
    async with web(hub.urls[at]) as client:
        return await client.post(
            path, json={"decision": "allow"} | body, headers=bearer(hub.mint(login, "session"))
        )


async def kept(hub: HubProcess, request_id: str) -> str:
    """The status of a request once it is there."""

    async def status() -> str | None:
        found = sql(hub, "SELECT status FROM agents_permissionrequest WHERE request_id = ?", request_id)
        return found[0][0] if found else None

    return await eventually(status, "the request is kept")


async def test_leave_is_asked_and_given(hub: HubProcess) -> None:
    async with agent(hub, "owner", at=-1) as mine:
        await request_permission(mine, "given")
        assert await kept(hub, "given") == "pending"
        answer = await resolve(hub, "owner", mine, "given", message="go on")
        assert answer.status_code == 200, answer.text
        decided = answer.json()
        wanted = {"ok": True, "sessionId": mine.session_id, "requestId": "given", "decision": "allow"}
        assert decided == wanted | {"resolverLogin": "owner", "resolvedAt": decided["resolvedAt"]}
        heard = await mine.heard("permission_response")
        assert heard | {"type": ""} == {"type": "", "requestId": "given", "decision": "allow", "message": "go on"}


async def test_a_decision_while_the_agent_is_away_reaches_it_when_it_is_back(hub: HubProcess) -> None:
    async with agent(hub, "owner") as mine:
        await request_permission(mine, "away")
        await kept(hub, "away")
        await mine.socket.close()
        await mine.closed.wait()
        assert (await resolve(hub, "owner", mine, "away")).status_code == 200
        await mine.connect(hub.urls[-1])
        assert (await mine.heard("permission_response"))["decision"] == "allow"
        await request_permission(mine, "away")
        assert (await mine.heard("permission_response", count=2))["decision"] == "allow"


async def test_an_undecided_request_runs_out_and_its_agent_hears_it(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with agent(hub, "owner") as mine:
        await request_permission(mine, "late")
        await kept(hub, "late")
        for body in ({"decision": "maybe"}, {"decision": None}, {"message": 5 * "\0"}, {"message": "x" * 5000}):
            assert (await resolve(hub, "owner", mine, "late", **body)).status_code == 400
        for absent in ("a%00b", "x" * 3000):
            assert (await resolve(hub, "owner", mine, absent)).status_code == 404
        sql(hub, "UPDATE agents_permissionrequest SET expires_at = requested_at WHERE request_id = ?", "late")
        assert (await mine.heard("permission_response"))["decision"] == "expired"
        assert (await resolve(hub, "owner", mine, "late")).status_code == 409


async def test_the_101st_request_that_waits_is_refused(embedded_hub: HubProcess) -> None:
    async with agent(embedded_hub, "owner") as mine:
        for number in range(101):
            await request_permission(mine, f"flood-{number}")
        await mine.errors("too_many_requests")
