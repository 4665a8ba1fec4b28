"""Questions to the users of clients of MCP 2025, which answer by a request of their own, to any process."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest

from accounts import sealing
from accounts.authn import Identity, Presented
from accounts.open_requests import OpenRequests
from agents.core.post import ElicitationAnswered, LocalPost
from kit.jsonrpc import RpcError
from lab.agents import TaskPeer, online
from lab.callers import ANSWER_WITHIN_S, Json, bearer, web
from lab.hub_process import HubProcess
from mcp_server.calls import ToolCaller
from mcp_server.elicitation import MAX_WAITING, PURPOSE, Elicitations, find_session_id

HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


async def events_of(response: httpx.Response) -> AsyncIterator[Json]:
    """The messages of a stream."""
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def test_any_process_takes_the_answer_of_the_caller_alone(hub: HubProcess, alice: str, bob: str) -> None:
    params = {
        "capabilities": {"elicitation": {}},
        "protocolVersion": "2025-11-25",
        "clientInfo": {"name": "t", "version": "1"},
    }
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    async with online(hub, TaskPeer) as agent, web(hub.urls[0]) as one, web(hub.urls[-1]) as other:
        begun = await one.post("/mcp", json=begin, headers=HEADERS | bearer(alice))
        session = HEADERS | {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        params = {"name": "ask_agent", "arguments": {"handle": agent.handle, "message": "ask which one?"}}
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        async with one.stream(
            "POST", "/mcp", json=body, headers=session | bearer(alice), timeout=ANSWER_WITHIN_S
        ) as stream:
            events = events_of(stream)
            asked = await anext(events)
            assert asked["method"] == "elicitation/create"
            for token, text in ((bob, "the first"), (alice, "the second")):
                result = {"action": "accept", "content": {"answer": text}}
                answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
                taken = await other.post("/mcp", json=answer, headers=session | bearer(token))
                assert taken.status_code == 202
            ended = await anext(events)
    assert ended["id"] == 2
    assert ended["result"]["content"][0]["text"] == "you said: the second"


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


@pytest.mark.parametrize(
    "message",
    [
        {"result": {"action": "decline"}},
        {"result": {"action": "cancel", "content": None}},
        {"result": {"action": "accept"}},
        {"result": {"action": "accept", "content": {"answer": ""}}},
        {"result": {"action": "accept", "content": {"answer": 7}}},
        {"result": {"action": "accept", "content": {"answer": "x" * 262_145}}},
        {"result": "yes"},
        {"error": {"code": -32601, "message": "no"}},
    ],
)
async def test_all_but_an_answer_is_none(message: Json) -> None:
    waiting = Waiting()
    await waiting.respond(**message)
    assert await waiting.answer is None


async def test_responses_to_nothing_are_dropped() -> None:
    waiting = Waiting()
    await waiting.respond(user_id=2, result={"action": "decline"})
    elsewhere = sealing.seal("elsewhere 0", PURPOSE)
    foreign = sealing.seal("here 0", b"another purpose")
    for name in (None, 7, "", "task-1", "\u2603", "x" * 501, elsewhere, foreign):
        await waiting.elicitations.take_response(make_caller(), {"id": name, "result": {"action": "decline"}})
    waiting.elicitations.take(ElicitationAnswered("unknown", 1, "x"))
    await waiting.respond(result={"action": "accept", "content": {"answer": "this"}})
    await waiting.respond(result={"action": "accept", "content": {"answer": "late"}})
    assert await waiting.answer == "this"


async def test_a_drain_and_a_revoked_token_end_the_wait() -> None:
    drained, revoked = Waiting(), Waiting()
    await asyncio.gather(drained.asked, revoked.asked)
    drained.elicitations.end_all()
    assert await drained.answer is None
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
    assert await more[-1] is None
    waiting.elicitations.end_all()
    assert set(await asyncio.gather(*more)) == {None}


@pytest.mark.parametrize(
    ("capabilities", "elicits"),
    [
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}, "url": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
        ({"elicitation": True}, False),
        ({}, False),
        (None, False),
        ([], False),
    ],
)
def test_clients_that_show_forms_get_a_session_id(capabilities: object, elicits: bool) -> None:
    begin = {"method": "initialize", "params": {"capabilities": capabilities}}
    assert (find_session_id(begin) is not None) is elicits
    assert find_session_id(begin | {"method": "ping"}) is None
    assert find_session_id({"method": "initialize", "params": 7}) is None
