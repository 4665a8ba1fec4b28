"""Questions to the users of clients of MCP 2025, which answer by a request of their own, to any process."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from accounts import sealing
from accounts.authn import Identity, Presented
from accounts.open_requests import OpenRequests
from agents.core.post import LocalPost
from kit.jsonrpc import RpcError
from lab.agents import TaskPeer, gone, online
from lab.callers import ANSWER_WITHIN_S, Json, bearer, web
from lab.hub_process import HubProcess
from mcp_server.service.calls import ToolCaller
from mcp_server.service.elicitation import (
    MAX_WAITING,
    PLAIN_SESSION_PREFIX,
    PURPOSE,
    SESSION_PREFIX,
    ElicitationAnswer,
    Elicitations,
    NotAsked,
    find_session_id,
)

HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


async def events_of(response: httpx.Response) -> AsyncIterator[Json]:
    """The messages of a stream."""
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


class Client:
    """A client of MCP 2025 that shows forms. `one`, `other`: two processes of the hub, if it has two."""

    def __init__(self, one: httpx.AsyncClient, other: httpx.AsyncClient, token: str) -> None:
        self.one, self.other, self.token = one, other, token
        self.session: dict[str, str] = {}

    async def begin(self) -> None:
        params = {
            "capabilities": {"elicitation": {}},
            "protocolVersion": "2025-11-25",
            "clientInfo": {"name": "t", "version": "1"},
        }
        begun = await self.post({"id": 1, "method": "initialize", "params": params}, to=self.one)
        self.session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}

    async def post(
        self, message: Json, *, to: httpx.AsyncClient | None = None, token: str | None = None
    ) -> httpx.Response:
        headers = HEADERS | self.session | bearer(token or self.token)
        return await (to or self.other).post("/mcp", json={"jsonrpc": "2.0", **message}, headers=headers)

    @asynccontextmanager
    async def call(self, tool: str, **arguments: str) -> AsyncIterator[AsyncIterator[Json]]:
        """Call a tool; the messages on its stream."""
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        headers = HEADERS | self.session | bearer(self.token)
        async with self.one.stream("POST", "/mcp", json=body, headers=headers, timeout=ANSWER_WITHIN_S) as stream:
            yield events_of(stream)

    async def answer(self, asked: Json, text: str, *, token: str | None = None) -> None:
        """Answer a question to the user, by another process."""
        assert asked["method"] == "elicitation/create"
        result = {"action": "accept", "content": {"answer": text}}
        taken = await self.post({"id": asked["id"], "result": result}, token=token)
        assert taken.status_code == 202


@asynccontextmanager
async def client_of(hub: HubProcess, token: str) -> AsyncIterator[Client]:
    async with web(hub.urls[0]) as one, web(hub.urls[-1]) as other:
        client = Client(one, other, token)
        await client.begin()
        yield client


def texts_of(ended: Json) -> list[str]:
    return [block["text"] for block in ended["result"]["content"]]


async def test_any_process_takes_the_answer_of_the_caller_alone(hub: HubProcess, alice: str, bob: str) -> None:
    async with (
        online(hub, TaskPeer) as agent,
        client_of(hub, alice) as client,
        client.call("ask_agent", handle=agent.handle, message="ask which one?") as events,
    ):
        asked = await anext(events)
        await client.answer(asked, "the first", token=bob)
        await client.answer(asked, "the second")
        ended = await anext(events)
    assert ended["id"] == 2
    assert texts_of(ended)[0] == "you said: the second"


async def test_a_task_that_ends_meanwhile_ends_the_wait(hub: HubProcess, alice: str) -> None:
    async with (
        online(hub, TaskPeer) as agent,
        client_of(hub, alice) as client,
        client.call("ask_agent", handle=agent.handle, message="ask which one?") as events,
    ):
        await anext(events)
        params = {"name": "cancel_task", "arguments": {"task_id": agent.prompts[0]["taskId"]}}
        await client.post({"id": 3, "method": "tools/call", "params": params})
        ended = await anext(events)
    assert texts_of(ended)[0].startswith("Canceled")
    assert "still waits" not in str(ended)


async def test_an_answer_that_the_agent_does_not_get_names_the_task(hub: HubProcess, alice: str) -> None:
    async with (
        online(hub, TaskPeer) as agent,
        client_of(hub, alice) as client,
        client.call("ask_agent", handle=agent.handle, message="ask which one?") as events,
    ):
        asked = await anext(events)
        await agent.leave()
        await gone(hub, agent)
        await client.answer(asked, "too late")
        ended = await anext(events)
    assert f"task_id: {agent.prompts[0]['taskId']}" in texts_of(ended)[-1]
    assert "offline" in texts_of(ended)[0]


def make_caller(user_id: int = 1) -> ToolCaller:
    identity = Identity(user_id, "session", "", user_id, "alice", is_staff=False, is_stale=False)
    return ToolCaller(token=Presented("0" * 64, False), identity=identity, body_bytes=1, traceparent="")


class Waiting:
    """A question that waits for the user of a client."""

    def __init__(self) -> None:
        self.callers = OpenRequests()
        self.elicitations = Elicitations("here", LocalPost(), self.callers)
        self.asked: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self.answer = asyncio.ensure_future(self.elicitations.ask(make_caller(), self._send, "which one?"))

    async def _send(self, message: Mapping[str, Any]) -> bool:
        self.asked.set_result(message)
        return True

    async def respond(self, user_id: int = 1, **message: Any) -> None:
        name = (await self.asked)["id"]
        await self.elicitations.take_response(make_caller(user_id), {"id": name, **message})


async def test_all_but_an_answer_is_none() -> None:
    results: list[Any] = [
        {"action": "decline"},
        {"action": "cancel", "content": None},
        {"action": "accept"},
        "yes",
    ]
    results += [{"action": "accept", "content": {"answer": one}} for one in (" \n", 7, "x" * 262_145)]
    for message in (*({"result": one} for one in results), {"error": {"code": -32601, "message": "no"}}):
        waiting = Waiting()
        await waiting.respond(**message)
        assert await waiting.answer is None, message


async def test_responses_to_nothing_are_dropped() -> None:
    waiting = Waiting()
    await waiting.respond(user_id=2, result={"action": "decline"})
    elsewhere = sealing.seal("elsewhere 0", PURPOSE)
    foreign = sealing.seal("here 0", b"another purpose")
    for name in (None, 7, "", "task-1", "\u2603", "x" * 501, elsewhere, foreign):
        await waiting.elicitations.take_response(make_caller(), {"id": name, "result": {"action": "decline"}})
    waiting.elicitations.take(msgspec.Raw(msgspec.json.encode(ElicitationAnswer("unknown", 1, "x"))))
    await waiting.respond(result={"action": "accept", "content": {"answer": "this"}})
    await waiting.respond(result={"action": "accept", "content": {"answer": "late"}})
    assert await waiting.answer == "this"


async def test_a_drain_and_a_revoked_token_end_the_wait() -> None:
    drained, revoked = Waiting(), Waiting()
    await asyncio.gather(drained.asked, revoked.asked)
    drained.elicitations.end_all()
    assert await drained.answer is None
    with pytest.raises(NotAsked):
        await drained.elicitations.ask(make_caller(), drained._send, "and?")
    revoked.callers.dismiss(revoked.callers.credential_ids)
    with pytest.raises(RpcError, match="sign in"):
        await revoked.answer
    assert not revoked.callers.credential_ids


async def test_not_too_many_wait_in_one_process() -> None:
    waiting = Waiting()
    await waiting.asked

    async def send(message: Mapping[str, Any]) -> bool:
        return True

    more = [
        asyncio.ensure_future(waiting.elicitations.ask(make_caller(), send, "and?")) for _ in range(MAX_WAITING)
    ]
    with pytest.raises(NotAsked):
        await more[-1]
    waiting.elicitations.end_all()
    assert set(await asyncio.gather(*more[:-1])) == {None}


def test_the_session_id_of_a_client_says_whether_it_shows_forms(subtests: pytest.Subtests) -> None:
    for capabilities, elicits in (
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}, "url": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
        ({"elicitation": True}, False),
        ({}, False),
        (None, False),
        ([], False),
    ):
        with subtests.test(capabilities=capabilities):
            begin = {"method": "initialize", "params": {"capabilities": capabilities}}
            assert (find_session_id(begin) or "").startswith(SESSION_PREFIX if elicits else PLAIN_SESSION_PREFIX)
            assert find_session_id(begin | {"method": "ping"}) is None
    assert find_session_id({"method": "initialize", "params": 7}) is None
