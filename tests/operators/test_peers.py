"""`/peers`: who is one, asking and telling one of them, and telling many."""

from typing import Any

import pytest

from lab.agents import Drop, Echo, Flood, Held, gone, online
from lab.callers import Json, bearer, web
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from tests.operators.operator import post, prompt, refused, route
from tests.operators.rows import share


def name_of(agent: ChannelAgent, owner: str = "owner") -> str:
    return f"{owner}/{agent.routing_name.removeprefix('@')}"


async def peers(hub: HubProcess, token: str) -> list[Json]:
    async with web(hub.url) as client:
        response = await client.get("/api/v1/peers", headers=bearer(token))
    assert response.status_code == 200
    items: list[Json] = response.json()["items"]
    return items


async def probe(hub: HubProcess, token: str, names: list[str] | None, text: str = "all hear") -> list[Json]:
    response = await post(hub.url, "/peers/probe", token, {"prompt": text, "peers": names})
    assert response.status_code == 200, response.text
    dispatched: list[Json] = response.json()["dispatched"]
    return dispatched


async def test_an_ask_waits_for_the_reply(hub: HubProcess, subtests: pytest.Subtests) -> None:
    async with Echo(hub.url, hub.mint("owner", "channel")) as agent:
        slug = agent.routing_name.removeprefix("@")
        for peer in (slug, f"@{slug}", f"owner/{slug}", f"%40owner%2F{slug}", f"@OWNER/{slug}"):
            with subtests.test(peer=peer):
                response = await route(hub, hub.mint("owner", "session"), peer, "hi")
                assert response.status_code == 200, response.text
                body = response.json()
                assert body.keys() == {"ok", "chatId", "sessionId", "mode", "reply", "replyTs"}
                assert (body["ok"], body["mode"], body["reply"]) == (True, "ask", "echo: hi")
                assert (body["sessionId"], body["chatId"]) == (agent.session_id, agent.prompts[-1]["chatId"])


async def test_a_tell_does_not_wait(hub: HubProcess) -> None:
    async with Held(hub.url, hub.mint("owner", "channel")) as agent:
        response = await route(hub, hub.mint("owner", "session"), name_of(agent), "hi", "tell")
        assert response.json().keys() == {"ok", "chatId", "sessionId", "mode"}
        assert (await agent.heard("prompt"))["chatId"] == response.json()["chatId"]


async def test_a_failed_turn_is_a_bad_gateway(hub: HubProcess) -> None:
    owner = hub.mint("owner", "session")
    async with Drop(hub.url, hub.mint("owner", "channel")) as dropping:
        refused(await route(hub, owner, name_of(dropping), "hi"), 502, "channel_lost")
    async with Flood(hub.url, hub.mint("owner", "channel"), chunks=1, chunk_bytes=70_000) as flooding:
        refused(await route(hub, owner, name_of(flooding), "hi"), 502, "reply_too_large")


async def test_a_published_agent_is_reached_by_its_handle(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        body = (await route(hub, alice, f"@{agent.handle}", "hi")).json()
        assert (body["reply"], body["sessionId"]) == ("echo: hi", agent.session_id)
        refused(await route(hub, alice, agent.handle.partition("/")[2], "hi"), 404, "not_found")
    async with online(hub, Echo, agent={"status": "draft"}) as draft:
        refused(await route(hub, alice, draft.handle, "hi"), 404, "not_found")


async def test_an_offline_peer_is_reported_at_once(hub: HubProcess, alice: str) -> None:
    owner = hub.mint("owner", "session")
    async with Held(hub.url, hub.mint("owner", "channel")) as agent:
        share(hub, agent.session_id, alice="prompter")
        assert (await prompt(hub, owner, agent.session_id, "first")).status_code == 200
        refused(await route(hub, alice, name_of(agent), "second"), 409, "busy")
    await gone(hub, agent)
    refused(await route(hub, owner, name_of(agent), "hi"), 409, "channel_offline")


async def test_several_live_sessions_of_one_name_are_told_apart_by_owner(hub: HubProcess, alice: str) -> None:
    async with (
        Echo(hub.url, hub.mint("owner", "channel"), routingName="twin") as first,
        Echo(hub.url, hub.mint("bob", "channel"), routingName="twin") as second,
    ):
        share(hub, first.session_id, alice="prompter")
        share(hub, second.session_id, alice="prompter")
        assert "@owner/twin" in refused(await route(hub, alice, "twin", "hi"), 409, "conflict")
        assert (await route(hub, alice, "bob/twin", "hi")).json()["sessionId"] == second.session_id


async def test_a_probe_tells_the_named_and_says_what_became_of_each(hub: HubProcess, bob: str) -> None:
    async with (
        Echo(hub.url, hub.mint("bob", "channel")) as mine,
        Echo(hub.url, hub.mint("owner", "channel")) as seen,
        Held(hub.url, hub.mint("owner", "channel")) as taken,
    ):
        async with Echo(hub.url, hub.mint("bob", "channel")) as left:
            pass
        await gone(hub, left, "bob")
        share(hub, seen.session_id, bob="viewer")
        share(hub, taken.session_id, bob="prompter")
        assert (await prompt(hub, hub.mint("owner", "session"), taken.session_id, "first")).status_code == 200
        names = [mine.routing_name, name_of(seen), name_of(taken), name_of(left, "bob"), "no/one"]
        told = await probe(hub, bob, [*names, name_of(mine, "bob")])
        assert [(one["peer"], one["status"]) for one in told] == list(
            zip(names, ["sent", "forbidden", "busy", "offline", "not_found"], strict=True)
        )
        assert [one["sessionId"] for one in told[::4]] == [mine.session_id, None]
        assert (await mine.heard("prompt"))["text"] == "all hear"
        assert seen.prompts == []


async def test_a_bad_body_is_told_by_member(embedded_hub: HubProcess, subtests: pytest.Subtests) -> None:
    bodies: list[tuple[str, Any, str]] = [
        ("x/route", {"mode": "ask"}, "prompt"),
        ("x/route", {"prompt": "", "mode": "ask"}, "prompt"),
        ("x/route", {"prompt": "x", "mode": "shout"}, "mode"),
        ("x/route", {"prompt": 5, "mode": "ask"}, "prompt"),
        ("probe", {"prompt": "x", "peers": "all"}, "peers"),
        ("probe", {"prompt": "x", "peers": ["a"] * 51}, "peers"),
        ("probe", {"prompt": "x", "peers": [None]}, "peers"),
        ("probe", [], "object"),
    ]
    for call, body, named in bodies:
        with subtests.test(call=call, body=body):
            response = await post(embedded_hub.url, f"/peers/{call}", embedded_hub.mint("alice", "session"), body)
            assert named in refused(response, 400, "validation_failed")
