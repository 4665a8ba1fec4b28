"""Prompt, route, probe: as the command line sends them."""

import asyncio

import pytest

from lab.agents import Echo, Stall, publish
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from tests.clients.claw import Claw, Failed, claw
from tests.clients.shapes import EVENT, PEER, SESSION, check, flag, iso, items, matching, page, text, uuid

PROMPTED = {"ok": flag, "chatId": matching("[A-Za-z0-9_-]+"), "ts": iso}
ROUTED = {"ok": flag, "chatId": text, "sessionId": uuid, "mode": text}


async def told(one: Claw, method: str, path: str, body: object = ...) -> object:
    """A call that leaves the agents of this test their turn."""
    return await asyncio.to_thread(one.call, method, path, body)


async def test_a_prompt_to_a_handle_is_sent_there_and_its_reply_is_an_event(clients_hub: HubProcess) -> None:
    hub, alice = clients_hub, claw(clients_hub, "alice")
    async with (
        ChannelAgent(hub.url, hub.mint("alice", "channel")) as mine,
        Echo(hub.url, hub.mint("owner", "channel")) as far,
    ):
        await publish(hub, hub.mint("owner", "session"), far.session_id, "far-one")
        listed = check(await told(alice, "GET", "/sessions"), items(SESSION))["items"]
        assert mine.routing_name in [one["routingName"] for one in listed]
        path = f"/sessions/{mine.session_id}"
        answer = check(
            await told(alice, "POST", f"{path}/prompt", {"text": "@owner/far-one how are you?"}), PROMPTED
        )
        assert answer["routedToAgent"] == "owner/far-one"
        note = await mine.heard("route_reply")
        assert {"routeId", "fromName", "text", "ts"} <= note.keys()
        replies = check(await told(alice, "GET", f"{path}/events?limit=200&kind=chat&type=reply"), page(EVENT))
        assert [one["payload"]["text"] for one in replies["items"]] == ["echo: how are you?"]
        assert replies["items"][0]["payload"]["peerLogin"] == "owner/far-one"
        with pytest.raises(Failed) as unknown:
            await told(alice, "POST", f"{path}/prompt", {"text": "@owner/unknown hi"})
        assert unknown.value.status == 404


async def test_a_route_without_a_reply_in_time_is_a_200_that_says_so(clients_hub: HubProcess) -> None:
    hub, owner = clients_hub, claw(clients_hub, "owner")
    async with Stall(hub.url, hub.mint("owner", "channel"), cwd="/w/stalled-proj"):
        answer = check(
            await told(owner, "POST", "/peers/stalled-proj/route", {"prompt": "hi", "mode": "ask"}), ROUTED
        )
    assert (answer["ok"], answer["timedOut"]) == (False, True)
    check(answer["error"], text)
    with pytest.raises(Failed) as offline:
        await told(owner, "POST", "/peers/stalled-proj/route", {"prompt": "hi", "mode": "ask"})
    assert (offline.value.status, offline.value.code) == (409, "channel_offline")


async def test_probe(clients_hub: HubProcess) -> None:
    hub, owner = clients_hub, claw(clients_hub, "owner")
    async with Echo(hub.url, hub.mint("owner", "channel"), cwd="/w/probed-proj") as agent:
        answer = await told(owner, "POST", "/peers/probe", {"prompt": "hi", "peers": None})
        check(answer, {"dispatched": [{"peer": text, "sessionId": uuid, "status": text}]})
        mine = [one for one in answer["dispatched"] if one["sessionId"] == agent.session_id]
        assert [one["status"] for one in mine] == ["sent"]
        await agent.heard("prompt")
        check(await told(owner, "GET", "/peers"), items(PEER))
