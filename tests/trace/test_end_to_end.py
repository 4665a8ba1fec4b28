"""One trace, from who asks to all who are asked or told, on running hubs."""

import asyncio
import secrets

import pytest

from kit import trace
from lab.agents import TaskPeer, online
from lab.callers import bearer, envelope, rpc_path, web
from lab.hub_process import HubProcess
from lab.receivers import receiving
from tests.channel.agents import agent, rows
from tests.pushes.client import client, heard
from tests.v1.caller import message


@pytest.fixture
def hub(sending_hub: HubProcess) -> HubProcess:
    """A hub of each kind that may send on this machine."""
    return sending_hub


def sampled() -> str:
    """A caller's span."""
    return f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"


def check_same(one: str, other: str) -> None:
    """Another span of the same trace, with its flags."""
    assert trace.read([one]) == one
    assert (one[:36], one[52:]) == (other[:36], other[52:])
    assert one != other


async def test_a_trace_goes_on_to_the_agent_and_back_and_into_the_audit(hub: HubProcess) -> None:
    mine = sampled()
    async with online(hub, TaskPeer, at=-1) as peer:
        params = {"message": message("reply done")}
        answer = await client(hub, peer).post("SendMessage", params, traceparent=mine)
        span = answer.headers["traceparent"]
        check_same(span, mine)
        assert peer.prompts[0]["traceparent"] == span
        [asked] = await rows(hub, "owner", peer.agent["id"])
        assert asked["traceId"] == trace.trace_id(mine)


async def test_without_a_sound_one_the_hub_begins_a_trace(hub: HubProcess) -> None:
    async with online(hub, TaskPeer) as peer:
        caller, params = client(hub, peer), {"message": message("reply done")}
        answers = [await caller.post("SendMessage", params)]
        answers.append(await caller.post("SendMessage", params, traceparent="00-nonsense-x-01"))
        spans = [answer.headers["traceparent"] for answer in answers]
        assert [one["traceparent"] for one in peer.prompts] == spans
        assert len({trace.trace_id(one) for one in spans}) == 2
        assert [one[-3:] for one in spans] == ["-00", "-00"]


async def test_every_binding_dialect_and_surface_takes_part(hub: HubProcess) -> None:
    async with online(hub, TaskPeer) as peer, web(hub.url) as http:
        signed_in = bearer(hub.mint("alice", "session"))
        path = rpc_path(peer.handle)
        body = {"message": message("reply done")}
        calls = [
            (f"{path}/message:send", {"A2A-Version": "1.0"}, body),
            (path, {}, envelope("SendMessage", body)),
            (path, {"A2A-Version": "1.0"}, envelope("SendStreamingMessage", body)),
            (f"/api/v1/peers/{peer.handle}/route", {}, {"prompt": "reply done", "mode": "ask"}),
        ]
        for number, (url, headers, sent) in enumerate(calls):
            mine = sampled()
            answer = await http.post(url, json=sent, headers=signed_in | headers | {"traceparent": mine})
            assert answer.status_code == 200, answer.text
            check_same(answer.headers["traceparent"], mine)
            check_same(peer.prompts[number]["traceparent"], mine)
        refused = await http.post(path, content=b"{", headers=signed_in | {"traceparent": mine})
        check_same(refused.headers["traceparent"], mine)


async def test_what_an_agent_asks_on_is_the_same_trace(hub: HubProcess) -> None:
    mine = sampled()
    async with agent(hub, "owner", fields={"isolated": False}) as first, agent(hub, "bob", at=-1) as second:
        path, headers = rpc_path(first.handle), bearer(hub.mint("alice", "session")) | {"traceparent": mine}
        body = envelope("SendMessage", {"message": message("go on")})
        async with web(hub.url) as http:
            asking = asyncio.create_task(http.post(path, json=body, headers=headers))
            prompt = await first.heard("prompt")
            await first.request("dispatch", handle=second.handle, prompt="and you?", mode="ask")
            onward = await second.heard("prompt")
            await second.reply(onward["chatId"], "fine")
            await first.heard("route_response")
            await first.reply(prompt["chatId"], "fine too")
            assert (await asking).status_code == 200
        check_same(prompt["traceparent"], mine)
        check_same(onward["traceparent"], mine)
        assert onward["traceparent"] != prompt["traceparent"]
        [asked] = await rows(hub, "bob", second.agent["id"])
        assert asked["traceId"] == trace.trace_id(mine)


async def test_pushes_and_webhooks_are_the_same_trace(hub: HubProcess) -> None:
    mine = sampled()
    with receiving() as pushed, receiving() as hooked:
        async with online(hub, TaskPeer) as peer, web(hub.url) as http:
            owner = bearer(hub.mint("owner", "session"))
            wanted = {"url": hooked.url, "events": ["agent.replied", "chat.event"]}
            filters = {"filters": {"sessionId": peer.session_id}}
            assert (await http.post("/api/v1/webhooks", json=wanted | filters, headers=owner)).status_code == 201
            configuration = {"taskPushNotificationConfig": {"url": pushed.url}}
            params = {"message": message("reply done"), "configuration": configuration}
            answer = await client(hub, peer).post("SendMessage", params, traceparent=mine)
            await heard(pushed, 3)
            await heard(hooked, 3)
    spans = [one.headers["traceparent"] for one in [*pushed.received, *hooked.received]]
    for span in spans:
        check_same(span, mine)
    assert len({*spans, answer.headers["traceparent"]}) == len(spans) + 1
