"""Frames of `/channel` that name something, from others' agents: they reach what their owner may, and no more."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from websockets.exceptions import ConnectionClosed

from lab.agents import Held
from lab.channel_agent import ChannelAgent, dial
from lab.waiting import eventually
from tests.channel.agents import Agent
from tests.operators.operator import route
from tests.tenancy.callers import CALLERS
from tests.tenancy.world import World

OWNERS = ("stan", "gwen", "vera", "pia", "blake", "root")
REGISTER = json.dumps({"type": "register", "host": "h", "cwd": "/x", "pid": 1, "channelVersion": "1"})
OWN_AFFAIRS = {"agents_session", "agents_event"}
OF_SESSIONS = {"agents_session", "agents_share", "agents_agent", "agents_permissionrequest"}
HIDDEN = ("limited", "private", "draft")


@asynccontextmanager
async def agent_of(tenants: World, login: str) -> AsyncIterator[Agent]:
    """A new agent of an owner."""
    async with Agent(tenants.hub.url, tenants.tokens[f"{login} channel"], cwd=f"/work/{login}-agent") as agent:
        yield agent


@pytest.mark.parametrize("one", [one for one, caller in CALLERS.items() if caller.kind != "channel"])
async def test_only_channel_tokens_open_the_agents_socket(tenants: World, one: str) -> None:
    before, url = tenants.changes.mark(), tenants.hub.url.replace("http", "ws", 1) + "/channel"
    socket = await dial(url, tenants.tokens.get(CALLERS[one].token))
    with suppress(ConnectionClosed):
        await socket.send(REGISTER)
    assert '"auth_failed"' in str(await socket.recv())
    await socket.wait_closed()
    assert socket.close_code == 1008
    tenants.changes.check_none(before)


@pytest.mark.parametrize("login", OWNERS)
async def test_no_user_registers_as_another_users_session(tenants: World, login: str) -> None:
    owner = tenants.user_ids[login]
    before = tenants.changes.mark()
    for names in (tenants.main, tenants.gone, tenants.absent):
        wanted = names["public_id"]
        token = tenants.tokens[f"{login} channel"]
        async with ChannelAgent(tenants.hub.url, token, session_id=wanted, cwd="/x") as thief:
            assert thief.session_id != wanted
            assert thief.routing_name.startswith("@x")
    assert not OF_SESSIONS & tenants.changes.since(before, but_of=owner).keys()
    answered = await route(tenants.hub, tenants.tokens["olga"], tenants.main["peer"], "still there?")
    assert answered.json()["reply"] == "echo: still there?"


async def test_no_user_answers_what_another_agent_was_asked(tenants: World) -> None:
    hub, names = tenants.hub, tenants.spare("reply")
    async with Held(hub.url, tenants.tokens["olga channel"], session_id=names["public_id"]) as honest:
        asking = asyncio.create_task(route(hub, tenants.tokens["olga"], names["peer"], "who?"))
        chat_id = (await honest.heard("prompt"))["chatId"]
        for login in ("stan", "pia", "olga"):
            async with agent_of(tenants, login) as liar:
                await liar.reply(chat_id, "a lie")
                await liar.chunk(chat_id, "a lie", done=True)
                await liar.agents()  # answered, so what was sent before it has been read
        honest.release.set()
        assert (await asking).json()["reply"] == "echo: who?"


@pytest.mark.parametrize("login", OWNERS)
async def test_an_agent_lists_what_its_owner_may_ask(tenants: World, login: str) -> None:
    async with agent_of(tenants, login) as agent:
        listed = await agent.agents()
        assert listed["callerLogin"] == login
        handles = {one["handle"] for one in listed["agents"]}
        assert "gus/pub-gone" not in handles
        hidden = {kind for kind in HIDDEN if f"olga/{tenants.main[f'{kind} slug']}" in handles}
        assert hidden == ({"limited"} if login == "gwen" else set())
        peers = " ".join(await agent.peers())
        assert (tenants.main["peer"] in peers) == (login in ("pia", "blake")), peers
        assert "gone" not in peers


@pytest.mark.parametrize("login", OWNERS)
async def test_an_agent_reaches_what_its_owner_may_ask(tenants: World, login: str) -> None:
    before = tenants.changes.mark()
    async with agent_of(tenants, login) as agent:
        for name in [f"olga/{tenants.main[f'{kind} slug']}" for kind in HIDDEN] + ["gus/pub-gone"]:
            told = (await agent.dispatch(name)).replace(name, "<it>")
            absent = (await agent.dispatch("olga/unknown")).replace("olga/unknown", "<it>")
            may = login == "gwen" and "limited" in name
            assert (told == absent) != may, (name, told)
            assert told.startswith("error: ")
        peer, unknown = tenants.main["peer"], "olga/unknown"
        told, absent = (await agent.route(peer)), (await agent.route(unknown)).replace(unknown, peer)
        probed, missed = await agent.probe([peer]), await agent.probe([unknown])
        if login == "pia":
            assert told == "echo: hello?"
            assert "echo: hello?" in probed.values()
        elif login == "blake":
            assert told.startswith("error: ")
            assert told != absent
        elif login == "vera":  # who may look at the session, and not ask it
            lacking = f"error: asking @{peer.removeprefix('@')} takes the role prompter of that session"
            assert [told, *probed.values()] == [lacking, lacking]
        else:
            assert told == absent
            assert list(probed.values()) == [text.replace(unknown, peer) for text in missed.values()]
    if login != "pia":
        changes = tenants.changes.since(before, but_of=tenants.user_ids[login])
        assert changes.keys() <= OWN_AFFAIRS, changes


async def test_a_request_for_leave_is_of_the_asking_session_alone(tenants: World) -> None:
    owner, wanted = tenants.user_ids["stan"], tenants.main["request_id"]
    before = tenants.changes.mark()
    async with agent_of(tenants, "stan") as agent:
        await agent.send(type="permission_request", requestId=wanted, tool="Bash", inputPreview="ls", ts=None)
        path = f"/api/v1/sessions/{agent.session_id}/permissions"

        async def kept() -> bool:
            headers = {"Authorization": f"Bearer {tenants.tokens['stan']}"}
            items = tenants.web.get(path, headers=headers).json()["items"]
            return [one["requestId"] for one in items] == [wanted]

        await eventually(kept, "the request is kept")
    went, came = tenants.changes.since(before, but_of=owner)["agents_permissionrequest"]
    assert (len(went), len(came)) == (0, 1)
