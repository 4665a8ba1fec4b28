"""Channel start, prompt and reply, hooks, stop and the next start: frame by frame."""

import asyncio
import json
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection

from lab.callers import bearer, web
from lab.channel_agent import dial
from lab.hub_process import HubProcess
from tests.clients.claw import claw
from tests.clients.shapes import EVENT, SESSION, check, items, matching, page, text
from tests.clients.shapes import uuid as a_uuid

WITHIN_S = 40
REGISTER = {"host": "box", "cwd": "/home/u/proj", "osUser": "u", "pid": 4242, "channelVersion": "0.0.43"}
WELCOME = {"sessionId": a_uuid, "routingName": matching("@[a-z0-9-]+"), "channelTokenName": text}
CHAT_ID = matching("[A-Za-z0-9_-]+")


async def start(hub: HubProcess, token: str, **fields: Any) -> tuple[ClientConnection, Any]:
    """Upgrade and register; the socket, and what it is welcomed with."""
    socket = await dial(hub.url.replace("http", "ws", 1) + "/channel", token)
    await say(socket, type="register", **REGISTER, **fields)
    welcome = await heard(socket, "welcome")
    check(welcome, WELCOME)
    return socket, welcome


async def say(socket: ClientConnection, **frame: Any) -> None:
    await socket.send(json.dumps(frame, separators=(",", ":")))


async def heard(socket: ClientConnection, kind: str) -> Any:
    """The next frame of a kind; pings are answered on the way."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            frame = json.loads(await socket.recv())
            if frame["type"] == "ping":
                await say(socket, type="pong", ts=frame["ts"])
            if frame["type"] == kind:
                return frame


async def hook(client: httpx.AsyncClient, token: str, session_id: str, kind: str, type_: str, payload: Any) -> int:
    """Post as a hook of the program does."""
    event = {
        "sessionId": session_id,
        "kind": kind,
        "type": type_,
        "payload": payload,
        "ts": "2026-01-01T00:00:00Z",
    }
    return (await client.post("/api/channel/event", json=event, headers=bearer(token))).status_code


def stored(hub: HubProcess, login: str, session_id: str, query: str = "") -> list[Any]:
    """The events that `claw session events` shows."""
    path = f"/sessions/{session_id}/events?limit=200{query}"
    return check(claw(hub, login).call("GET", path), page(EVENT))["items"]


async def test_a_channel_starts_answers_stops_and_comes_back(clients_hub: HubProcess) -> None:
    hub, token = clients_hub, clients_hub.mint("owner", "channel")
    socket, welcome = await start(hub, token, sessionId=None)
    session_id = welcome["sessionId"]
    assert welcome["routingName"].startswith("@proj")
    owner = claw(hub, "owner")
    sessions, desktops = [await asyncio.to_thread(owner.call, "GET", path) for path in ("/sessions", "/desktops")]
    assert desktops == {"items": []}
    (own,) = [one for one in check(sessions, items(SESSION))["items"] if one["id"] == session_id]
    assert (own["startedByLogin"], own["role"], own["connected"]) == ("owner", "owner", True)
    assert (own["host"], own["cwd"], own["channelVersion"]) == ("box", "/home/u/proj", "0.0.43")
    sent = await asyncio.to_thread(owner.call, "POST", f"/sessions/{session_id}/prompt", {"text": "hello"})
    prompt = await heard(socket, "prompt")
    assert (prompt["text"], prompt["chatId"], prompt["askerUser"]) == ("hello", sent["chatId"], "owner")
    check(prompt["chatId"], CHAT_ID)
    payload = {"chatId": prompt["chatId"], "text": "hi there"}
    await say(socket, type="chat_event", eventType="reply", payload=payload, ts="2026-01-01T00:00:00Z")
    async with web(hub.url) as client:
        hooks = [
            ("chat", "prompt", {"prompt": "<channel>hello</channel>", "hook_event_name": "UserPromptSubmit"}),
            ("chat", "assistant_text", {"text": "thinking", "toolUseId": "t1"}),
            ("tail", "PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "ls"}}),
            ("tail", "PostToolUse", {"tool_name": "Bash", "tool_response": {"ok": True}}),
            ("chat", "reply", {"text": "hi there"}),
            ("tail", "Stop", {"assistant_text": "hi there", "token_usage": {"grain": "turn"}}),
        ]
        statuses = await asyncio.gather(*(hook(client, token, session_id, *one) for one in hooks))
    assert all(200 <= status < 300 for status in statuses), statuses
    seen = [(one["kind"], one["type"]) for one in stored(hub, "owner", session_id)]
    assert {(kind, type_) for kind, type_, _ in hooks} <= set(seen)
    assert seen[0] == ("tail", "SessionStart")
    (reply,) = [
        one for one in stored(hub, "owner", session_id, "&kind=chat&type=reply") if "chatId" in one["payload"]
    ]
    assert reply["payload"]["text"] == "hi there"
    await socket.close(1000, "stop")

    again, welcome = await start(hub, token, sessionId=session_id)
    assert welcome["sessionId"] == session_id
    await again.close(1000, "stop")


async def test_an_ephemeral_container_leaves_nothing(clients_hub: HubProcess) -> None:
    socket, welcome = await start(
        clients_hub, clients_hub.mint("alice", "channel"), sessionId=None, deleteOnDisconnect=True
    )
    await socket.close(1000, "stop")
    alice = claw(clients_hub, "alice")
    async with asyncio.timeout(WITHIN_S):
        while alice.send("GET", f"/sessions/{welcome['sessionId']}").status != 404:
            await asyncio.sleep(0.05)


async def test_the_hub_pings_in_json_before_the_client_gives_up(clients_hub: HubProcess) -> None:
    socket, _ = await start(clients_hub, clients_hub.mint("bob", "channel"), sessionId=None)
    assert (await heard(socket, "ping")).keys() >= {"ts"}
    await say(socket, type="no_such_frame")
    assert (await heard(socket, "error"))["code"] not in ("auth_failed", "token_revoked")
    await socket.close(1000, "stop")
