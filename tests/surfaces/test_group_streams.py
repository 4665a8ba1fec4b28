"""A member who is removed from a group: open streams, and views of sessions, end; others go on."""

import asyncio
import time
from typing import Any
from uuid import uuid4

from lab.agents import Echo, Stall, online
from lab.callers import bearer, call, open_stream, question, web
from lab.hub_process import HubProcess
from tests.operators.operator import Operator

WITHIN_S = 20.0  # documented as 2 s; without it they would stay open


async def change(hub: HubProcess, who: str, method: str, path: str, body: Any = None) -> Any:
    """A call of REST; the JSON of its answer."""
    async with web(hub.urls[-1]) as client:
        answer = await client.request(
            method, f"/api/v1{path}", json=body, headers=bearer(hub.mint(who, "session"))
        )
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


async def make_team(hub: HubProcess, *members: str) -> str:
    """A group of `head` with these members; its slug."""
    slug = f"team-{uuid4().hex[:8]}"
    await change(hub, "head", "POST", "/groups", {"slug": slug, "name": "Team"})
    for login in members:
        hub.mint(login, "session")
        await change(hub, "head", "PUT", f"/groups/{slug}/members/{login}", {})
    return slug


async def make_maintainer(hub: HubProcess, team: str, login: str) -> None:
    """The staff makes a member a maintainer; by another maintainer it takes a link."""
    headers = bearer(hub.mint("root", "session", admin=True))
    async with web(hub.urls[-1]) as client:
        path = f"/api/v1/admin/accounts/{login}/groups/{team}"
        answer = await client.put(path, json={"role": "maintainer"}, headers=headers)
    assert answer.is_success, answer.text


async def read_to_the_end(stream: Any) -> str:
    """The text of a stream until it ends."""
    lines = []
    try:
        while True:
            lines.append(await stream.next_line())
    except EOFError:
        return "\n".join(lines)


async def test_a_removed_member_loses_the_open_stream_and_another_member_keeps_it(hub: HubProcess) -> None:
    """On the grown hub at another process than that where the member is removed."""
    team = await make_team(hub, "goes", "stays")
    agent: dict[str, Any] = {"access": "limited", "allowedLogins": [team], "concurrencyCap": 5}
    goes, stays = hub.mint("goes", "session"), hub.mint("stays", "session")
    async with (
        online(hub, Stall, agent=agent) as theirs,
        online(hub, Stall, agent=agent) as others,
        open_stream(hub.urls[0], theirs.handle, "wait", goes) as ends,
        open_stream(hub.urls[0], others.handle, "wait", stays) as goes_on,
    ):
        await ends.next_line()
        await goes_on.next_line()
        await change(hub, "head", "DELETE", f"/groups/{team}/members/goes")
        since = time.monotonic()
        said = await asyncio.wait_for(read_to_the_end(ends), WITHIN_S)
        assert time.monotonic() - since < WITHIN_S
        assert "you may not ask" in said
        again = await call(hub.urls[0], theirs.handle, goes, "SendMessage", question("once more"))
        assert "error" in again.json()
        reading = asyncio.create_task(read_to_the_end(goes_on))
        done, _ = await asyncio.wait({reading}, timeout=3)
        assert not done, reading.result()
        reading.cancel()


async def test_a_maintainer_who_gets_a_lesser_role_sees_nothing_more_of_a_session(hub: HubProcess) -> None:
    team = await make_team(hub, "second")
    await make_maintainer(hub, team, "second")
    made = await change(hub, "head", "POST", f"/groups/{team}/tokens", {"name": "agent", "kind": "channel"})
    async with (
        Echo(hub.url, made["token"]) as agent,
        Operator(hub.url, hub.mint("head", "session")) as stays,
        Operator(hub.urls[-1], hub.mint("second", "session")) as goes,
    ):
        await stays.subscribe(agent.session_id)
        await goes.subscribe(agent.session_id)
        await change(hub, "head", "PUT", f"/groups/{team}/members/second", {"role": "member"})
        assert (await goes.heard("error", within_s=WITHIN_S))["code"] == "forbidden"
        await stays.answer("prompt", sessionId=agent.session_id, text="alone?")
        await stays.event("reply", text="echo: alone?")
        assert goes.of("event") == []


async def test_the_agent_of_a_group_is_cut_off_when_the_maker_of_its_token_leaves(hub: HubProcess) -> None:
    team = await make_team(hub, "second")
    await make_maintainer(hub, team, "second")
    made = await change(hub, "second", "POST", f"/groups/{team}/tokens", {"name": "agent", "kind": "channel"})
    async with Echo(hub.urls[-1], made["token"]) as agent:
        await change(hub, "second", "DELETE", f"/groups/{team}/members/second")
        assert (await agent.heard("error"))["code"] == "token_revoked"
        await asyncio.wait_for(agent.closed.wait(), WITHIN_S)


async def test_the_catalogs_list_a_limited_agent_for_members_of_its_group(embedded_hub: HubProcess) -> None:
    team = await make_team(embedded_hub, "member")
    hub, agent = embedded_hub, {"access": "limited", "allowedLogins": [team]}
    async with online(hub, Echo, agent=agent) as theirs, web(hub.url) as client:
        for login, is_listed in (("member", True), ("stranger", False)):
            headers = bearer(hub.mint(login, "session"))
            models = await client.get("/v1/models", headers=headers)
            assert (f"agent/{theirs.handle}" in models.text) is is_listed, login
            directory = await client.get("/api/v1/agents", params={"q": theirs.handle}, headers=headers)
            assert (f'"{theirs.handle}"' in directory.text) is is_listed, login
            tool: Any = {"name": "list_agents", "arguments": {"query": theirs.handle}}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
            accept = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
            listed = await client.post("/mcp", json=body, headers=headers | accept)
            assert (theirs.handle in listed.text) is is_listed, listed.text
