"""`/channel`, the agents' socket: who is let in, and what a session is (section 4 of the channel's wire)."""

import json
import re
import uuid

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from lab.agents import Echo, online
from lab.callers import Json, bearer, reply_text, send, web
from lab.channel_agent import ChannelAgent, dial
from lab.hub_process import HubProcess
from lab.waiting import eventually

CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
REGISTER = {"type": "register", "host": "h", "cwd": "/w", "osUser": None, "pid": 1, "channelVersion": "t"}


async def frames_until_closed(socket: ClientConnection) -> list[Json]:
    """The frames of the hub until it closes the socket."""
    frames = []
    try:
        while True:
            frames.append(json.loads(await socket.recv()))
    except ConnectionClosed:
        return frames


async def sessions_of_owner(hub: HubProcess) -> dict[str, Json]:
    async with web(hub.url) as client:
        response = await client.get("/api/v1/sessions", headers=bearer(hub.mint("owner", "session")))
    return {session["id"]: session for session in response.json()["items"]}


async def test_a_wrong_token_or_none_is_accepted_told_and_closed_with_1008(hub: HubProcess) -> None:
    for token in ("ck_live_" + "0" * 32, hub.mint("owner", "session"), hub.mint("owner", "app"), None):
        socket = await dial(hub.url.replace("http", "ws", 1) + "/channel", token)
        if token is None:
            await socket.send(json.dumps(REGISTER | {"sessionId": None}))
        frames = await frames_until_closed(socket)
        assert [(frame["type"], frame["code"]) for frame in frames] == [("error", "auth_failed")]
        assert socket.close_code == 1008


async def test_the_token_may_come_in_register_instead(hub: HubProcess) -> None:
    socket = await dial(hub.url.replace("http", "ws", 1) + "/channel", None)
    await socket.send(json.dumps(REGISTER | {"sessionId": None, "token": hub.mint("owner", "channel")}))
    assert json.loads(await socket.recv())["type"] == "welcome"
    await socket.close()


async def test_a_frame_before_register_is_an_error_and_register_still_works(hub: HubProcess) -> None:
    socket = await dial(hub.url.replace("http", "ws", 1) + "/channel", hub.mint("owner", "channel"))
    await socket.send(json.dumps({"type": "pong", "ts": "now"}))
    answer = json.loads(await socket.recv())
    assert (answer["type"], answer["code"]) == ("error", "not_registered")
    await socket.send(json.dumps(REGISTER | {"sessionId": None}))
    assert json.loads(await socket.recv())["type"] == "welcome"
    await socket.close()


async def test_who_does_not_register_in_time_is_closed(embedded_hub: HubProcess) -> None:
    socket = await dial(
        embedded_hub.url.replace("http", "ws", 1) + "/channel", embedded_hub.mint("owner", "channel")
    )
    assert all(frame["type"] in ("bye", "error") for frame in await frames_until_closed(socket))
    assert socket.close_code is not None


async def test_welcome_names_a_canonical_session_and_the_routing_name(hub: HubProcess) -> None:
    async with ChannelAgent(hub.url, hub.mint("owner", "channel"), routingName="the-name") as agent:
        welcome = await agent.heard("welcome")
        assert CANONICAL.fullmatch(welcome["sessionId"])
        assert welcome["routingName"] == "@the-name"
        assert isinstance(welcome["channelTokenName"], str)
        listed = (await sessions_of_owner(hub))[welcome["sessionId"]]
        assert (listed["connected"], listed["routingName"], listed["role"]) == (True, "@the-name", "owner")


async def test_the_routing_name_comes_from_the_folder(embedded_hub: HubProcess) -> None:
    for cwd, slug in (("/home/x/phaseD-responder", "@phased-responder"), ("C:\\work\\My Repo", "@my-repo")):
        async with ChannelAgent(embedded_hub.url, embedded_hub.mint("bob", "channel"), cwd=cwd) as agent:
            assert agent.routing_name == slug


async def test_a_name_taken_by_a_live_session_gets_a_suffix_that_lasts(hub: HubProcess) -> None:
    token = hub.mint("owner", "channel")
    async with (
        ChannelAgent(hub.url, token, routingName="twin"),
        ChannelAgent(hub.url, token, routingName="twin") as second,
    ):
        assert second.session_id is not None
        assert second.routing_name == f"@twin-{second.session_id[:8]}"
        await second.leave()
        await second.connect()
        assert second.routing_name == f"@twin-{second.session_id[:8]}"


async def test_an_agent_that_returns_finds_its_session_and_its_callers_also_by_another_token(
    hub: HubProcess, alice: str
) -> None:
    async with online(hub, Echo) as agent:
        session_id = agent.session_id
        await agent.leave()

        async def gone() -> bool:
            return not (await sessions_of_owner(hub))[str(session_id)]["connected"]

        await eventually(gone, "the session is off line")
        await agent.connect(hub.urls[-1])
        assert agent.session_id == session_id
        assert reply_text(await send(hub.url, agent.handle, "back?", alice)) == "echo: back?"
        await agent.leave()
        agent.token = hub.mint_again("owner", "channel")
        await agent.connect()
        assert agent.session_id == session_id
        assert reply_text(await send(hub.url, agent.handle, "again?", alice)) == "echo: again?"


async def test_an_unknown_session_id_gets_a_session_of_its_own(hub: HubProcess) -> None:
    for odd in (str(uuid.uuid4()), "nonsense", "", "x" * 500):
        async with ChannelAgent(hub.url, hub.mint("owner", "channel"), session_id=odd) as agent:
            assert agent.session_id != odd
            assert CANONICAL.fullmatch(agent.session_id or "")


async def test_the_newest_of_two_programs_wins_and_the_old_one_is_told_to_stay_away(
    hub: HubProcess, alice: str
) -> None:
    async with online(hub, Echo) as old:
        token = hub.mint("owner", "channel")
        async with Echo(hub.urls[-1], token, session_id=old.session_id, pid=99_999) as new:
            bye = await old.heard("bye")
            assert (bye["reason"], bye["retry"]) == ("superseded", False)
            await old.closed.wait()
            assert reply_text(await send(hub.url, old.handle, "who?", alice)) == "echo: who?"
            assert [prompt["text"] for prompt in new.prompts] == ["who?"]
            assert old.prompts == []


async def test_a_program_that_reconnects_replaces_its_own_stale_socket(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as old:
        same = {"host": old.register["host"], "pid": old.register["pid"]}
        async with Echo(hub.urls[-1], hub.mint("owner", "channel"), session_id=old.session_id, **same) as new:
            await old.closed.wait()
            assert not [frame for frame in old.frames if frame["type"] == "bye" and not frame["retry"]]
            assert reply_text(await send(hub.url, old.handle, "who?", alice)) == "echo: who?"
            assert len(new.prompts) == 1
