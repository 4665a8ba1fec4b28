"""Asking leave over the socket, deciding over REST: restarts, races, absence, and time."""

import asyncio
from typing import Any

import httpx

from lab.callers import bearer, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
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


async def test_of_two_approvers_one_wins_and_the_other_is_told(hub: HubProcess) -> None:
    async with agent(hub, "owner") as mine:
        for number in range(5):
            name = f"race-{number}"
            await request_permission(mine, name)
            await kept(hub, name)
            first, second = await asyncio.gather(
                resolve(hub, "owner", mine, name, decision="allow"),
                resolve(hub, "owner", mine, name, decision="deny", at=-1),
            )
            assert sorted([first.status_code, second.status_code]) == [200, 409]
            winner = "allow" if first.status_code == 200 else "deny"
            loser = second if first.status_code == 200 else first
            assert loser.json()["error"] == "conflict"
            heard = await mine.heard("permission_response", count=number + 1)
            assert (heard["requestId"], heard["decision"]) == (name, winner)


async def test_a_pending_request_survives_the_hub(make_storage: MakeStorage, start_hub: StartHub) -> None:
    hub = start_hub(make_storage("embedded"))
    async with agent(hub, "owner") as mine:
        await request_permission(mine, "permission-1")
        await kept(hub, "permission-1")
        hub.kill9()
        await mine.closed.wait()
        hub.serve(0)
        await mine.connect()
        await request_permission(mine, "permission-1")
        assert (await resolve(hub, "owner", mine, "permission-1", decision="deny")).status_code == 200
        assert (await mine.heard("permission_response"))["decision"] == "deny"


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
        sql(
            hub,
            "UPDATE agents_permissionrequest SET expires_at = requested_at WHERE request_id = ?",
            "late",
        )
        assert (await mine.heard("permission_response"))["decision"] == "expired"
        assert (await resolve(hub, "owner", mine, "late")).status_code == 409


async def test_only_approvers_of_the_session_decide(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with agent(hub, "owner") as mine, agent(hub, "alice") as others:
        await request_permission(mine, "private")
        await kept(hub, "private")
        assert (await resolve(hub, "alice", mine, "private")).status_code == 404
        assert (await resolve(hub, "alice", others, "private")).status_code == 404
        assert (await resolve(hub, "owner", mine, "a%00b")).status_code == 404
        assert (await resolve(hub, "owner", mine, "x" * 3000)).status_code == 404
        for body in [{"decision": "maybe"}, {"decision": None}, {"message": 5 * "\0"}, {"message": "x" * 5000}]:
            assert (await resolve(hub, "owner", mine, "private", **body)).status_code == 400
        assert await kept(hub, "private") == "pending"


async def test_too_many_waiting_requests_are_refused(embedded_hub: HubProcess) -> None:
    async with agent(embedded_hub, "owner") as mine:
        for number in range(101):
            await request_permission(mine, f"flood-{number}")
        assert (await mine.heard("error"))["code"] == "too_many_requests"
