"""Sessions over REST while their agents are connected: visits, archiving, deleting."""

import asyncio

from lab.agents import Stall, online
from lab.callers import Json, bearer, failed_text, send, web
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess


async def ask(hub: HubProcess, method: str, path: str, *, url: str | None = None) -> Json:
    """A call of the agents' owner on a session."""
    async with web(url or hub.url) as client:
        answer = await client.request(
            method, f"/api/v1/sessions/{path}", headers=bearer(hub.mint("owner", "session"))
        )
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    return body


async def test_an_archived_session_is_back_on_the_list_when_its_agent_is(hub: HubProcess) -> None:
    agent = ChannelAgent(hub.url, hub.mint("owner", "channel"))
    async with agent:
        await ask(hub, "POST", f"{agent.session_id}/archive")
        assert (await ask(hub, "GET", str(agent.session_id)))["archivedAt"] is not None
        await agent.leave()
        await agent.connect(hub.urls[-1])
        assert (await ask(hub, "GET", str(agent.session_id)))["archivedAt"] is None


async def test_the_agent_of_a_deleted_session_is_told_not_to_come_back_and_its_caller_is_let_go(
    hub: HubProcess, alice: str
) -> None:
    async with online(hub, Stall) as agent:
        asked = asyncio.create_task(send(hub.url, agent.handle, "wait for it", alice))
        await agent.heard("prompt")
        gone = await ask(hub, "DELETE", f"{agent.session_id}?hard=true", url=hub.urls[-1])
        assert (gone["deleted"], gone["agents"], gone["turns"]) == (True, 1, 1)
        bye = await agent.heard("bye")
        assert (bye["reason"], bye["retry"]) == ("session_deleted", False)
        await agent.closed.wait()
        assert failed_text(await asked)
    async with web(hub.url) as client:
        answer = await client.get(f"/api/a2a/v1/agents/{agent.handle}", headers=bearer(alice))
    assert answer.status_code == 404
