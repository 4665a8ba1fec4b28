"""`claw session attach`: what it fetches, what it says on `/cli`, what it hears, and how it takes an end."""

from typing import Any

from lab.agents import Echo
from lab.callers import web
from lab.hub_process import HubProcess
from tests.clients.claw import claw
from tests.clients.shapes import FILE, ROLE, USER, check, flag, iso, matching, number, one_of, text, uuid
from tests.operators.operator import Operator

EVENT = {"kind": one_of("event"), "id": number, "ts": iso, "event": {"kind": text, "type": text, "ts": iso}}
OP_MESSAGE = {"kind": one_of("op-message"), "id": number, "ts": iso, "authorLogin": text, "text": text}
A_FILE = {
    "kind": one_of("file"),
    "id": number,
    "ts": iso,
    "action": one_of("uploaded", "deleted"),
    "file": {"id": number, "filename": text, "size": number, "mime": text, "uploaderLogin": text},
}
TIMELINE = {"event": EVENT, "op-message": OP_MESSAGE, "file": A_FILE}
FRAMES: dict[str, Any] = {
    "subscribed": {"sessionId": uuid, "role": ROLE},
    "event": {"sessionId": uuid, "event": {"kind": one_of("chat", "tail"), "type": text, "ts": iso}},
    "op_message": {"sessionId": uuid, "authorLogin": text, "text": text, "mentions": [text], "ts": iso},
    "permission_request": {"sessionId": uuid, "requestId": text, "tool": text, "inputPreview": text, "ts": iso},
    "permission_resolved": {"sessionId": uuid, "requestId": text, "decision": one_of("allow", "deny", "expired")},
    "presence": {"sessionId": uuid, "attached": [matching("[^@].*")]},
    "channel_status": {"sessionId": uuid, "connected": flag, "ts": iso},
    "file_event": {"sessionId": uuid, "action": one_of("uploaded", "deleted", "referenced"), "file": FILE},
    "ack": {"ok": one_of(True)},
    "error": {"ok": one_of(False), "code": text, "message": text},
}


async def upload(hub: HubProcess, login: str, session_id: str | None) -> None:
    """A file beside the run."""
    form = {"file": ("a.txt", b"abc", "text/plain")}
    headers = {"Authorization": f"Bearer {hub.mint(login, 'session')}"}
    async with web(hub.url) as client:
        answer = await client.post(f"/api/v1/sessions/{session_id}/files", files=form, headers=headers)
    check(answer.json(), FILE)


async def test_attach_from_first_fetch_to_close(clients_hub: HubProcess) -> None:
    hub, owner = clients_hub, claw(clients_hub, "owner")
    async with (
        Echo(hub.url, hub.mint("owner", "channel"), cwd="/w/attached") as agent,
        Echo(hub.url, hub.mint("owner", "channel"), cwd="/w/other") as other,
    ):
        await agent.send(type="permission_request", requestId="r1", tool="Bash", inputPreview="ls", ts=None)
        me = check(owner.call("GET", "/me"), USER)["githubLogin"]
        assert agent.session_id in [one["id"] for one in owner.call("GET", "/sessions")["items"]]
        async with Operator(hub.url, owner.token) as cli:
            subscribed = await cli.subscribe(agent.session_id)
            assert subscribed["role"] == "owner"
            assert (await cli.heard("presence"))["attached"] == [me]
            assert (await cli.heard("permission_request"))["requestId"] == "r1"
            assert [one["type"] for one in cli.frames[:2]] == ["subscribed", "presence"]

            assert (await cli.answer("prompt", sessionId=agent.session_id, text="hi"))["type"] == "ack"
            asked = await cli.event("prompt", source="operator", authorLogin=me)
            assert asked["payload"]["text"] == "hi"
            assert (await cli.event("reply"))["payload"]["text"] == "echo: hi"

            approval = {"sessionId": agent.session_id, "requestId": "r1", "decision": "allow"}
            assert (await cli.answer("approval", **approval))["type"] == "ack"
            resolved = await cli.heard("permission_resolved")
            assert (resolved["decision"], resolved["resolverLogin"]) == ("allow", me)
            response = await agent.heard("permission_response")
            assert (response["requestId"], response["decision"]) == ("r1", "allow")
            refused = await cli.answer("approval", **approval | {"decision": "deny"})
            assert refused["code"] == "already_resolved"

            said = {"sessionId": agent.session_id, "text": "look @alice"}
            assert (await cli.answer("op_message", **said))["type"] == "ack"
            own = await cli.heard("op_message")
            assert (own["authorLogin"], own["mentions"]) == (me, ["alice"])

            redirected = {"sessionId": other.session_id, "text": "you?", "sourceSessionId": agent.session_id}
            assert (await cli.answer("prompt", **redirected))["type"] == "ack"
            await cli.event("prompt", source="operator-route", authorLogin=me)
            peer = await cli.event("reply", source="peer-reply")
            assert (peer["payload"]["text"], bool(peer["payload"]["peerLogin"])) == ("echo: you?", True)
            note = await agent.heard("route_reply")
            assert (note["origin"], note["text"]) == ("operator", "echo: you?")

            await upload(hub, "owner", agent.session_id)
            assert (await cli.heard("file_event"))["action"] == "uploaded"
            await agent.leave()
            assert (await cli.heard("channel_status"))["connected"] is False
            await agent.connect()
            assert (await cli.heard("channel_status", count=2))["connected"] is True
            assert {one["type"] for one in cli.frames} == set(FRAMES)
            for frame in cli.frames:
                check(frame, FRAMES[frame["type"]], frame["type"])
            await cli.socket.close(1000, "user quit")
        check_timeline(owner.call("GET", f"/sessions/{agent.session_id}/timeline?limit=50"), set(TIMELINE))
        without = owner.call("GET", f"/sessions/{agent.session_id}/timeline?limit=50&kinds=event,file")
        check_timeline(without, {"event", "file"})


def check_timeline(answer: Any, kinds: set[str]) -> None:
    """Each item as its kind is, oldest first."""
    for one in answer["items"]:
        check(one, TIMELINE[one["kind"]])
    assert {one["kind"] for one in answer["items"]} == kinds
    assert [one["ts"] for one in answer["items"]] == sorted(one["ts"] for one in answer["items"])
