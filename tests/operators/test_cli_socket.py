"""`/cli` as a socket: who is let in, how it closes, what it does with hostile and slow clients."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from lab.agents import Held
from lab.callers import Json
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.channel.agents import Echoing, hook
from tests.operators.operator import Operator, dial, prompt, route
from tests.operators.rows import add_sessions, revoke, share, suspend
from tests.operators.test_peers import peers

POLICY_VIOLATION, SERVICE_RESTART, TRY_AGAIN_LATER, GIVEN_UP = 1008, 1012, 1013, 1006


def at(hub: HubProcess) -> str:
    return hub.urls[-1].replace("http", "ws", 1) + "/cli"


async def until_closed(socket: ClientConnection) -> list[Json]:
    """The frames of the hub until it closes the socket."""
    frames = []
    try:
        while True:
            frames.append(json.loads(await socket.recv()))
    except ConnectionClosed:
        return frames


async def is_let_in(socket: ClientConnection) -> bool:
    await socket.send(json.dumps({"type": "unsubscribe", "sessionId": "x"}))
    return bool(json.loads(await socket.recv())["message"] == "no such session")


async def refused(socket: ClientConnection) -> None:
    """The hub says that the token is wrong, and closes the socket."""
    frames = await until_closed(socket)
    assert [(one["type"], one["ok"], one["code"]) for one in frames] == [("error", False, "auth_failed")]
    assert socket.close_code == POLICY_VIOLATION


async def test_who_is_let_in(embedded_hub: HubProcess, subtests: pytest.Subtests) -> None:
    """Sessions and apps; a page may send its token as a subprotocol, and the hub's own pages their cookie."""
    hub, alice = embedded_hub, embedded_hub.mint("alice", "session")
    unknown, cookie = "cw_sess_" + "0" * 32, {"Cookie": f"cw_session={alice}"}
    for token in (None, unknown, hub.mint("owner", "channel")):
        await refused(await dial(at(hub), token))
    await refused(await dial(at(hub), None, subprotocols=["bearer", unknown]))
    for origin in ("https://evil.example", "null", None):
        await refused(await dial(at(hub), None, headers=cookie, origin=origin))
    page: dict[str, Any] = {"subprotocols": ["bearer", alice], "origin": "https://app.example"}
    for token, options, subprotocol in (
        (alice, {}, None),
        (hub.mint("alice", "app"), {}, None),
        (None, page, "bearer"),
        (None, {"headers": cookie, "origin": hub.url}, None),
    ):
        with subtests.test(token=token, options=options):
            socket = await dial(at(hub), token, **options)
            assert socket.subprotocol == subprotocol
            assert await is_let_in(socket)
            await socket.close()


@pytest.mark.parametrize("end", [revoke, suspend])
async def test_a_revoked_token_or_suspended_user_is_closed(
    hub: HubProcess, end: Callable[[HubProcess, str], None]
) -> None:
    login = f"{end.__name__}d-operator"
    async with (
        ChannelAgent(hub.url, hub.mint(login, "channel")) as agent,
        Operator(hub.url, hub.mint(login, "session")) as operator,
        Operator(hub.url, hub.mint("alice", "session")) as other,
    ):
        await operator.subscribe(agent.session_id)
        end(hub, login)
        await asyncio.wait_for(operator.closed.wait(), 5)
        last = (operator.socket.close_code, operator.frames[-1].get("code"))
        assert last == (POLICY_VIOLATION, "token_revoked"), operator.frames
        assert (await other.answer("unsubscribe", sessionId="x"))["type"] == "error"


async def test_a_drain_closes_with_1012_after_the_last_reply(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"))
    owner = hub.mint("owner", "session")
    async with Held(hub.url, hub.mint("owner", "channel")) as agent, Operator(hub.url, owner) as operator:
        await operator.subscribe(agent.session_id)
        assert (await prompt(hub, owner, agent.session_id, "hi")).status_code == 200
        await agent.heard("prompt")
        hub.terminate()

        async def are_refused() -> bool:
            answer = await operator.answer("prompt", sessionId=agent.session_id, text="more")
            return answer.get("code") == "unavailable"

        await eventually(are_refused, "new prompts are refused", every_s=0.05)
        asked = await route(hub, owner, agent.routing_name, "one more")
        assert asked.json()["error"] == "unavailable"
        assert (asked.status_code, asked.headers["retry-after"]) == (503, "2")
        agent.release.set()
        await operator.closed.wait()
        assert operator.socket.close_code == SERVICE_RESTART
        assert (await operator.event("reply"))["payload"]["text"] == "echo: hi"
        assert await hub.exit_code() == 0


async def test_a_killed_process_leaves_no_one_attached(make_storage: MakeStorage, start_hub: StartHub) -> None:
    hub = start_hub(make_storage("embedded"))
    async with ChannelAgent(hub.url, hub.mint("owner", "channel")) as agent:
        async with Operator(hub.url, hub.mint("owner", "session")) as operator:
            await operator.subscribe(agent.session_id)
            hub.programs[0].kill()
            await operator.closed.wait()
        hub.serve(0)
        async with Operator(hub.url, hub.mint("owner", "session")) as operator:
            await operator.subscribe(agent.session_id)
            assert (await operator.heard("presence"))["joined"] == "owner"


async def test_who_does_not_read_is_closed_before_events_fill_the_memory_and_blocks_no_others(
    embedded_hub: HubProcess,
) -> None:
    hub, owner = embedded_hub, embedded_hub.mint("owner", "session")
    async with Echoing(hub.url, hub.mint("owner", "channel")) as agent, Operator(hub.url, owner) as quick:
        slow = await dial(at(hub), owner, max_queue=1)
        await slow.send(json.dumps({"type": "subscribe", "sessionId": agent.session_id}))
        await slow.recv()
        slow.transport.pause_reading()
        await quick.subscribe(agent.session_id)
        for _ in range(24):
            sent = await hook(hub, "owner", agent, "Notification", text="x" * 1_000_000)
            assert sent.status_code == 202
        await quick.heard(lambda one: one["type"] == "event" and one["event"]["type"] == "Notification", count=24)
        assert (await prompt(hub, owner, agent.session_id, "still here")).status_code == 200
        await quick.event("reply", text="echo: still here")
        slow.transport.resume_reading()
        async with asyncio.timeout(15):
            frames = await until_closed(slow)
        assert slow.close_code in (TRY_AGAIN_LATER, GIVEN_UP), "told to come back, or cut after 10 s"
        assert len([one for one in frames if one["type"] == "event"]) < 24


async def test_who_vanished_without_a_word_is_noticed(embedded_hub: HubProcess) -> None:
    hub, owner = embedded_hub, embedded_hub.mint("owner", "session")
    async with ChannelAgent(hub.url, hub.mint("owner", "channel")) as agent:
        share(hub, agent.session_id, alice="viewer")
        async with Operator(hub.url, owner) as here:
            await here.subscribe(agent.session_id)
            gone = await dial(at(hub), hub.mint("alice", "session"))
            await gone.send(json.dumps({"type": "subscribe", "sessionId": agent.session_id}))
            await here.heard(lambda frame: frame.get("joined") == "alice")
            gone.transport.pause_reading()  # it answers no ping
            await here.heard(lambda frame: frame.get("left") == "alice", within_s=30)
            gone.transport.abort()


HOSTILE: dict[str, str | bytes] = {
    "binary": b'{"type": "subscribe"}',
    "empty": "",
    "not JSON": "hello",
    "a string": '"subscribe"',
    "an array": "[]",
    "null": "null",
    "no type": "{}",
    "type is a number": '{"type": 1}',
    "type is an object": '{"type": {}}',
    "no session": '{"type": "subscribe"}',
    "session is a number": '{"type": "subscribe", "sessionId": 7}',
    "session is long": json.dumps({"type": "subscribe", "sessionId": "x" * 65}),
    "text is an array": '{"type": "prompt", "sessionId": "x", "text": []}',
    "attachments are text": '{"type": "prompt", "sessionId": "x", "text": "a", "attachments": ["1"]}',
    "an attachment is huge": '{"type": "prompt", "sessionId": "x", "text": "a", "attachments": ['
    + "9" * 99
    + "]}",
    "a number is too long": '{"type": "prompt", "sessionId": "x", "attachments": [' + "9" * 9999 + "]}",
    "decision is maybe": '{"type": "approval", "sessionId": "x", "requestId": "r", "decision": "maybe"}',
    "request id is long": json.dumps(
        {"type": "approval", "sessionId": "x", "requestId": "r" * 129, "decision": "allow"}
    ),
    "mode is shout": '{"type": "route", "peer": "x", "prompt": "y", "mode": "shout"}',
    "nul": '{"type": "op_message", "sessionId": "x", "text": "a\\u0000"}',
    "half a character": '{"type": "op_message", "sessionId": "x", "text": "\\udc00"}',
    "named twice": '{"type": "subscribe", "type": "prompt", "sessionId": "x"}',
    "deep": '{"type": "prompt", "sessionId": "x", "text": ' + "[" * 3000 + "]" * 3000 + "}",
    "over the cap": json.dumps({"type": "prompt", "sessionId": "x", "text": "y" * 1_048_577}),
}


async def test_hostile_frames_are_errors_and_the_socket_stays(embedded_hub: HubProcess) -> None:
    async with Operator(embedded_hub.url, embedded_hub.mint("alice", "session")) as operator:
        for number, (name, message) in enumerate(HOSTILE.items(), 1):
            await operator.socket.send(message)
            answer = await operator.heard("error", count=number)
            assert (answer["code"], answer["ok"]) == ("bad_frame", False), name
        for kind in ("ping", "permission_response", "Subscribe", ""):
            assert (await operator.answer(kind))["code"] == "unknown_type"
        odd: list[dict[str, Any]] = [{"peer": "\u2028\n"}, {"peer": "@"}, {"peer": "/"}, {"peer": "x" * 200}]
        for fields in odd:
            assert (await operator.answer("route", prompt="y", mode="tell", **fields))["code"] == "not_found"


async def test_one_socket_watches_at_most_a_hundred_sessions(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    add_sessions(hub, "greta", 101)
    async with Operator(hub.url, hub.mint("greta", "session")) as operator:
        ids = [one["sessionId"] for one in await peers(hub, operator.token or "")]
        for session_id in ids[:100]:
            await operator.subscribe(session_id)
        answer = await operator.answer("subscribe", sessionId=ids[100])
        assert answer["code"] == "too_many_subscriptions"
        await operator.answer("unsubscribe", sessionId=ids[0])
        await operator.subscribe(ids[100])
