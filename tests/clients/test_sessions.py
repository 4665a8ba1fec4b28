"""Share, prompt, route, probe, archive, prune, delete: as the command line sends them."""

import asyncio
from functools import partial

import pytest

from lab.agents import Echo, Stall, publish
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from lab.waiting import until
from tests.clients.claw import Claw, Failed, claw
from tests.clients.shapes import (
    EVENT,
    OP_MESSAGE,
    PEER,
    SESSION,
    SHARE,
    check,
    flag,
    iso,
    items,
    matching,
    number,
    page,
    text,
    uuid,
)

PROMPTED = {"ok": flag, "chatId": matching("[A-Za-z0-9_-]+"), "ts": iso}
SPELLINGS = ("routed-proj", "%40routed-proj", "alice/routed-proj", "%40alice/routed-proj")
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


async def test_route_with_an_encoded_slash(clients_hub: HubProcess) -> None:
    hub, bob = clients_hub, claw(clients_hub, "bob")
    async with Echo(hub.url, hub.mint("alice", "channel"), cwd="/w/routed-proj") as agent:
        shares = f"/sessions/{agent.session_id}/shares"
        await told(claw(hub, "alice"), "POST", shares, {"login": "bob", "role": "prompter"})
        body = {"prompt": "hi", "mode": "ask"}
        answer = check(await told(bob, "POST", "/peers/%40alice%2Frouted-proj/route", body), ROUTED)
        assert (answer["ok"], answer["reply"], answer["sessionId"]) == (True, "echo: hi", agent.session_id)
        check(answer["replyTs"], iso)
        for count, spelling in enumerate(SPELLINGS, start=2):
            answer = check(
                await told(bob, "POST", f"/peers/{spelling}/route", {"prompt": "x", "mode": "tell"}), ROUTED
            )
            assert answer["ok"] is True
            await agent.heard("prompt", count=count)
        peers = check(await told(bob, "GET", "/peers"), items(PEER))["items"]
        assert "@routed-proj" in [one["routingName"] for one in peers]


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


async def test_share_list_and_take_back(clients_hub: HubProcess) -> None:
    hub, alice, bob = clients_hub, claw(clients_hub, "alice"), claw(clients_hub, "bob")
    async with ChannelAgent(hub.url, hub.mint("alice", "channel")) as agent:
        path = f"/sessions/{agent.session_id}"
        for role in ("viewer", "approver"):
            answer = alice.call("POST", f"{path}/shares", {"login": "bob", "role": role})
            expected = {"ok": True, "sessionId": agent.session_id, "login": "bob", "role": role}
            assert expected.items() <= answer.items()
        (share,) = check(alice.call("GET", f"{path}/shares"), items(SHARE))["items"]
        assert share.items() >= {"login": "bob", "userLogin": "bob", "role": "approver"}.items()
        assert share["sharedByLogin"] == "alice"
        assert check(bob.call("GET", path), SESSION)["role"] == "approver"
        for removed in (1, 0):
            answer = alice.call("DELETE", f"{path}/shares/bob")
            assert {"ok": True, "login": "bob", "removed": removed}.items() <= answer.items()
        empty = check(alice.call("GET", f"{path}/op-messages?limit=100"), page(OP_MESSAGE))
        assert empty == {"items": [], "firstId": None, "lastId": None, "hasMore": False}
        for kind in ("permissions", "files"):
            assert alice.call("GET", f"{path}/{kind}")["items"] == []
        assert alice.call("GET", f"{path}/token-usage")["snapshots"] == []


def has_left(owner: Claw, session_id: str | None) -> bool:
    """Whether no program is connected as that session."""
    return not owner.call("GET", f"/sessions/{session_id}")["connected"]


async def test_archive_prune_delete(clients_hub: HubProcess) -> None:
    hub, owner = clients_hub, claw(clients_hub, "owner")
    ids = []
    for _ in range(3):
        async with ChannelAgent(hub.url, hub.mint("owner", "channel"), cwd="/w/pruned") as agent:
            ids.append(agent.session_id)
        until(partial(has_left, owner, ids[-1]), "its name is free for the next", within_s=30)
        owner.call("POST", f"/sessions/{ids[-1]}/archive", {})
    answer = owner.call("POST", f"/sessions/{ids[0]}/archive", {})
    check(answer, {"ok": flag, "sessionId": uuid, "archivedAt": iso})
    assert answer["alreadyArchived"] is True
    listed = {one["id"] for one in owner.call("GET", "/sessions")["items"]}
    assert not listed & set(ids)
    assert {one["id"] for one in owner.call("GET", "/sessions?archived=true")["items"]} >= set(ids)
    kept = {"routingName": text, "sessionId": uuid}
    shape = {
        "ok": flag,
        "dryRun": flag,
        "kept": [kept],
        "deleted": [kept | {"lastSeenAt": iso, "wasArchived": flag}],
    }
    name = owner.call("GET", f"/sessions/{ids[0]}")["routingName"]
    for dry in (True, False):
        pruned = check(owner.call("POST", "/sessions/prune", {"dryRun": dry, "routingName": name}), shape)
        assert pruned["dryRun"] is dry
        assert len(pruned["deleted"]) == 2, pruned
    assert [one["sessionId"] for one in pruned["kept"]] == [ids[2]]
    gone = owner.call("DELETE", f"/sessions/{ids[2]}?hard=true")
    check(gone, {"ok": flag, "sessionId": uuid, "deleted": flag, "blobsSwept": number, "bytesFreed": number})
    with pytest.raises(Failed) as absent:
        owner.call("GET", f"/sessions/{ids[2]}")
    assert (absent.value.status, absent.value.code) == (404, "not_found")


async def test_what_desktops_would_do_is_a_typed_refusal(
    clients_hub: HubProcess, subtests: pytest.Subtests
) -> None:
    hub, alice = clients_hub, claw(clients_hub, "alice")
    folder = {"folder": "/w", "routingName": "x", "flags": ["--model", "opus"], "autoEnter": False}
    body = folder | {"autoStart": True, "preserveSessionId": True}
    async with ChannelAgent(hub.url, hub.mint("alice", "channel")) as agent:
        path = f"/sessions/{agent.session_id}"
        for method, address, sent in [
            ("POST", "/desktops/d1/sessions", body),
            ("POST", f"{path}/input", {"bytes": "hi\r"}),
            ("POST", f"{path}/kill", {}),
            ("POST", f"{path}/restart", {}),
            ("POST", f"{path}/soft-restart", {}),
            ("GET", f"{path}/screenshot", ...),
        ]:
            with subtests.test(method=method, address=address):
                with pytest.raises(Failed) as refused:
                    alice.call(method, address, sent)
                assert refused.value.status in (404, 501)
