"""The kill switch: within a second in every process, and back again."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lab.agents import Echo, Held, Stall, online
from lab.callers import Json, bearer, failed_text, inbound, reply_text, send, web
from lab.channel_agent import dial
from lab.hub_process import HubProcess
from lab.hub_storage import manage
from tests.operators.operator import Operator
from tests.processes.conftest import rest
from tests.v1.caller import Caller, message

WITHIN_S = 20.0  # documented as 1 s; without it they would stay open for a minute


@asynccontextmanager
async def halted(hub: HubProcess, kind: str, name: str) -> AsyncIterator[None]:
    """A halt by an administrator, for as long as the block lasts: other tests use the same hub."""
    staff = hub.mint("root", "session", admin=True)
    made: Json = await rest(hub, "POST", "/admin/halts", staff, kind=kind, name=name, reason="a test")
    try:
        assert made["liftedAt"] is None
        yield
    finally:
        await rest(hub, "DELETE", f"/admin/halts/{made['id']}", staff)


@asynccontextmanager
async def halted_by_owner(hub: HubProcess, agent: Json) -> AsyncIterator[None]:
    """A halt by the owner of an agent, for as long as the block lasts."""
    owner, path = hub.mint("owner", "session"), f"/agents/{agent['id']}/halt"
    await rest(hub, "POST", path, owner, reason="enough")
    try:
        yield
    finally:
        await rest(hub, "DELETE", path, owner)


async def end_of(asking: "asyncio.Task[Json]", since: float) -> str:
    """The reason why a waiting question failed, in time."""
    text = failed_text(await asking)
    assert time.monotonic() - since < WITHIN_S
    return text


async def check_closed(agent: Echo, since: float) -> None:
    bye = await agent.heard("bye")
    assert (bye["reason"], bye["retry"]) == ("halted", True)
    await agent.closed.wait()
    assert time.monotonic() - since < WITHIN_S
    assert agent.socket.close_code == 1013


async def refusal_of(agent: Echo) -> str:
    """The code a connection of this agent is refused with."""
    async with await dial(agent.url, agent.token) as socket:
        await socket.send(
            json.dumps({"type": "register", "osUser": None, "sessionId": agent.session_id, **agent.register})
        )
        code: str = json.loads(await socket.recv())["code"]
        await socket.wait_closed()
        assert socket.close_code == 1013
    return code


async def test_a_halted_agent_stands_still_and_comes_back(hub: HubProcess, alice: str) -> None:
    """Halted by its owner, by the staff, and by the staff together with all of its owner."""
    async with online(hub, Held, agent={"concurrencyCap": 2}) as agent:
        for number, halting in enumerate(
            (
                halted_by_owner(hub, agent.agent),
                halted(hub, "agent", agent.handle),
                halted(hub, "owner", "owner"),
            )
        ):
            agent.release.clear()
            asking = [
                asyncio.create_task(send(url, agent.handle, f"{number} {text}", alice))
                for url, text in ((hub.urls[0], "one"), (hub.urls[-1], "another"))
            ]
            await agent.heard("prompt", count=3 * number + 2)
            async with halting:
                since = time.monotonic()
                for url in {*hub.urls}:
                    refused = await send(url, agent.handle, "two", alice)
                    assert failed_text(refused) == f"agent @{agent.handle} is halted"
                assert [await end_of(one, since) for one in asking] == ["halted before the agent answered"] * 2
                await check_closed(agent, since)
                assert await refusal_of(agent) == "halted"
            agent.release.set()
            agent.frames = [frame for frame in agent.frames if frame["type"] != "bye"]
            await agent.connect()
            assert reply_text(await send(hub.url, agent.handle, "three", alice)) == "echo: three"


async def test_a_halted_callers_streams_sockets_and_asks_end(hub: HubProcess, bob: str) -> None:
    alice = hub.mint("halted-asker", "session")
    async with online(hub, Stall, agent={"concurrencyCap": 5}) as agent, online(hub, Echo) as other:
        asker = Caller(hub.urls[-1], agent.handle, alice)
        async with (
            asker.open("SendStreamingMessage", {"message": message("wait")}) as events,
            Operator(hub.urls[-1], alice) as operator,
        ):
            assert (await anext(events)).kind == "task"
            async with halted(hub, "caller", "halted-asker"):
                since = time.monotonic()
                seen = [event async for event in events]
                await operator.closed.wait()
                assert time.monotonic() - since < WITHIN_S
                assert seen[-1].state == "FAILED"
                refused = [failed_text(await send(url, other.handle, "now?", alice)) for url in {*hub.urls}]
                assert {*refused} == {"your questions are halted"}
                assert reply_text(await send(hub.url, other.handle, "I may", bob)) == "echo: I may"
        assert reply_text(await send(hub.url, other.handle, "back", alice)) == "echo: back"


async def test_the_command_line_halts_and_resumes(hub: HubProcess, alice: str) -> None:
    async with online(hub, Stall) as agent:
        asking = asyncio.create_task(send(hub.urls[0], agent.handle, "one", alice))
        await agent.heard("prompt")
        halting = asyncio.to_thread(manage, hub.home.env, "halt", "--agent", f"@{agent.handle}", "--reason", "bad")
        assert await halting == f"@{agent.handle}: halted\n"
        since = time.monotonic()
        await end_of(asking, since)
        await check_closed(agent, since)
        assert await asyncio.to_thread(manage, hub.home.env, "resume", "--agent", agent.handle) == "lifted\n"
        await agent.connect()
    log = await inbound(hub.url, agent.agent["id"], hub.mint("owner", "session"))
    assert [row["deniedReason"] for row in log["recent"]] == ["halted_meanwhile"]


async def test_an_owner_does_not_lift_what_staff_halted(hub: HubProcess, alice: str, bob: str) -> None:
    async with online(hub, Echo) as agent, web(hub.url) as client:
        async with halted(hub, "agent", agent.handle):
            async with halted_by_owner(hub, agent.agent):
                pass
            assert failed_text(await send(hub.url, agent.handle, "?", alice)).endswith("is halted")
            for token in (alice, bob):  # and no other user halts it, or learns that it is there
                path = f"/api/v1/agents/{agent.agent['id']}/halt"
                assert (await client.post(path, json={}, headers=bearer(token))).status_code == 404
                assert (
                    await client.post("/api/v1/admin/halts", json={}, headers=bearer(token))
                ).status_code == 403
        listed = await rest(hub, "GET", "/admin/halts", hub.mint("root", "session", admin=True))
        assert [(one["byStaff"], one["liftedBy"]) for one in listed["items"][:2]] == [
            (False, "owner"),
            (True, "root"),
        ]


OF_NOTHING: list[Json] = [
    {},
    {"kind": "all-users", "name": "alice"},
    {"kind": "caller", "name": "no\0body"},
    {"kind": "agent", "name": ["a"]},
    {"kind": "caller", "name": "\ud800"},
    {"kind": "caller", "name": "alice", "reason": "x" * 201},
    {"kind": "caller", "name": "alice", "reason": "\0"},
]


async def test_a_halt_of_nothing_is_refused(embedded_hub: HubProcess) -> None:
    staff = embedded_hub.mint("root", "session", admin=True)
    headers = bearer(staff) | {"Content-Type": "application/json"}
    async with web(embedded_hub.url) as client:
        for body in OF_NOTHING:
            answer = await client.post("/api/v1/admin/halts", content=json.dumps(body), headers=headers)
            assert answer.status_code in (400, 404), (body, answer.text)


async def test_a_halt_is_told_on_every_way_to_ask(embedded_hub: HubProcess) -> None:
    hub, alice = embedded_hub, embedded_hub.mint("alice", "session")
    async with online(hub, Echo) as agent:
        async with halted_by_owner(hub, agent.agent), web(hub.url) as client:
            task = await Caller(hub.url, agent.handle, alice).send("?")
            assert task["status"]["state"] == "TASK_STATE_FAILED"
            body = {"prompt": "?", "mode": "ask"}
            path = f"/api/v1/peers/{agent.handle.replace('/', '%2F')}/route"
            routed = await client.post(path, json=body, headers=bearer(alice))
        assert (routed.status_code, routed.json()["error"]) == (403, "halted")
