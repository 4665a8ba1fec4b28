"""The dialect of the prototype: its frames in `a2a-v1` and back, and a client of it at `/a2a`."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from gateway.prototype import MOST_OPEN, PrototypeDialect, speaks_prototype
from lab.frames import Json
from lab.hub_process import StartHub
from lab.hub_storage import HubStorage
from tests.gateway.client import WITHIN_S, EchoSeat

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIME = "2026-01-01T00:00:00.000Z"
AGENTS = [{"name": "alpha", "status": "busy"}, {"name": "beta", "status": "offline"}]

READ: dict[str, tuple[Json, Json]] = {  # a frame of the dialect, and what it says in `a2a-v1`
    "register": (
        {"type": "register", "agentId": "alpha", "metadata": {"role": "x"}},
        {"type": "discovery", "content": {"action": "list"}, "from": "alpha", "metadata": {"role": "x"}},
    ),
    "discover": ({"type": "discover"}, {"type": "discovery", "content": {"action": "list"}, "metadata": {}}),
    "health": ({"type": "health"}, {"type": "ping", "metadata": {}}),
    "message": (
        {"type": "message", "to": "beta", "content": "hi"},
        {"type": "message", "agent": "beta", "content": {"role": "user", "content": "hi"}, "metadata": {}},
    ),
    "whole message": (
        {"type": "message", "agent": "beta", "content": {"role": "agent", "content": {"a": 1}}},
        {"type": "message", "agent": "beta", "content": {"role": "agent", "content": {"a": 1}}, "metadata": {}},
    ),
    "response": (
        {"type": "response", "correlationId": "c", "content": "done"},
        {"type": "response", "content": {"result": "done"}, "metadata": {"correlationId": "c"}},
    ),
    "whole response": (
        {"type": "response", "correlationId": "c", "content": {"error": "no"}},
        {"type": "response", "content": {"error": "no"}, "metadata": {"correlationId": "c"}},
    ),
    "broadcast": (
        {"type": "broadcast", "message": "stop"},
        {"type": "broadcast", "content": {"message": "stop"}, "metadata": {}},
    ),
    "vote": (
        {"type": "vote_submission", "proposalId": "p", "voter": "alpha", "vote": "approve"},
        {
            "type": "vote",
            "content": {"proposalId": "p", "vote": "approve"},
            "from": "alpha",
            "metadata": {},
        },
    ),
}
WRITTEN: dict[str, tuple[Json, Json, Json]] = {  # what was asked, the answer, and what it says in the dialect
    "registered": (
        {"type": "register", "agentId": "alpha"},
        {"type": "discovery", "content": {"agents": AGENTS}},
        {"type": "registered", "agentId": "alpha", "connectedAgents": ["alpha"]},
    ),
    "discover": (
        {"type": "discover"},
        {"type": "discovery", "content": {"agents": AGENTS}},
        {"type": "discover", "connectedAgents": ["alpha"], "registeredAgents": ["alpha", "beta"]},
    ),
    "health": ({"type": "health"}, {"type": "pong", "content": {}}, {"type": "health", "status": "ok"}),
    "broadcast": (
        {"type": "broadcast", "message": "stop"},
        {"type": "response", "content": {"result": {"success": True, "totalSent": 0, "results": []}}},
        {"type": "broadcast-result", "success": True, "totalSent": 0, "results": []},
    ),
    "vote": (
        {"type": "vote_submission", "proposalId": "p", "vote": "approve"},
        {"type": "response", "content": {"result": {"state": "open"}}},
        {"type": "response", "content": {"state": "open"}},
    ),
    "error": (
        {"type": "discover"},
        {"type": "error", "error": "AUTH_REQUIRED", "content": {"message": "sign in", "code": 5001}},
        {"type": "error", "error": "sign in", "code": 5001},
    ),
}


def made() -> PrototypeDialect:
    return PrototypeDialect(lambda: NOW, 8787)


def test_a_time_that_no_calendar_has_is_written_as_now() -> None:
    """Its sender may be anyone: the socket of the recipient goes on."""
    message = {"type": "message", "content": {"role": "user", "content": "hi"}, "timestamp": 2**53}
    shown = made().write(json.dumps(message))
    assert shown is not None
    assert json.loads(shown)["timestamp"] == TIME


@pytest.mark.parametrize("name", READ)
def test_a_frame_of_the_dialect_is_read(name: str) -> None:
    given, expected = READ[name]
    read = json.loads(made().read(json.dumps(given)))
    if "correlationId" not in expected["metadata"] and given["type"] != "message":
        assert read["metadata"].pop("correlationId").startswith("prototype-")
    assert read == expected


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("own_id", ["c-1", ""])
def test_an_answer_has_the_form_of_what_was_asked(name: str, own_id: str) -> None:
    asked, answer, expected = WRITTEN[name]
    dialect, own = made(), {"correlationId": own_id} if own_id else {}
    read = json.loads(dialect.read(json.dumps(asked | own)))
    correlation_id = read["metadata"]["correlationId"]
    assert not own_id or correlation_id == own_id
    shown = json.loads(
        dialect.write(json.dumps({**answer, "metadata": {"correlationId": correlation_id}})) or "{}"
    )
    shown.pop("metadata", None)
    assert shown == expected | own | {"timestamp": TIME}


def test_messages_and_their_answers_are_tied_by_the_id_at_the_top() -> None:
    dialect = made()
    asked = json.loads(dialect.read('{"type": "message", "to": "beta", "content": "hi", "correlationId": "c"}'))
    assert asked["metadata"] == {"correlationId": "c", "requiresResponse": True}
    reply: Json = {"type": "message", "from": "beta", "content": {"role": "agent", "content": "ho"}}
    shown = json.loads(dialect.write(json.dumps({**reply, "metadata": {"correlationId": "c"}})) or "{}")
    assert (shown["type"], shown["content"], shown["correlationId"]) == ("response", "ho", "c")
    # And the other way: what it is asked, it answers by a message with the same id.
    metadata = {"correlationId": "d", "requiresResponse": True}
    shown = json.loads(dialect.write(json.dumps({**reply, "timestamp": 1000, "metadata": metadata})) or "{}")
    assert (shown["type"], shown["correlationId"]) == ("message", "d")
    assert shown["timestamp"] == "1970-01-01T00:00:01.000Z"
    answer = json.loads(dialect.read('{"type": "message", "to": "beta", "content": "so", "correlationId": "d"}'))
    assert answer["metadata"] == {"correlationId": "d"}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"type": 1}', '{"type": "message", "metadata": 1}', '{"type": "ping"}', "x" * 1_048_577],
)
def test_what_the_dialect_does_not_name_passes_as_it_is(text: str) -> None:
    assert made().read(text) == text


def test_what_is_not_answered_is_forgotten() -> None:
    dialect = made()
    for number in range(MOST_OPEN + 1):
        dialect.read(json.dumps({"type": "health", "correlationId": f"c-{number}"}))
    pong: Any = {"type": "pong", "content": {}}
    oldest = json.loads(dialect.write(json.dumps(pong | {"metadata": {"correlationId": "c-0"}})) or "{}")
    newest = json.loads(dialect.write(json.dumps(pong | {"metadata": {"correlationId": "c-1"}})) or "{}")
    assert (oldest["type"], newest["type"]) == ("pong", "health")


def test_only_a_client_without_a_subprotocol_at_its_path_speaks_it() -> None:
    assert speaks_prototype({"path": "/a2a", "subprotocols": []})
    assert not speaks_prototype({"path": "/a2a", "subprotocols": ["a2a-v1"]})
    assert not speaks_prototype({"path": "/gateway", "subprotocols": []})


class PrototypeClient:
    """A stand-in for a client of the prototype; it keeps every frame."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.frames: list[Json] = []

    async def send(self, **frame: Any) -> None:
        await self.socket.send(json.dumps(frame))

    async def find(self, type_name: str) -> Json:
        """The next frame of a type."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                frame: Json = json.loads(await self.socket.recv())
                self.frames.append(frame)
                if frame["type"] == type_name:
                    return frame


async def test_a_client_of_the_prototype_registers_asks_and_answers(
    start_hub: StartHub, make_storage: Callable[[str], HubStorage]
) -> None:
    hub = start_hub(make_storage("embedded"), GATEWAY_PROTOTYPE=1)
    token = hub.mint("proto", "channel")
    address = f"{hub.url.replace('http', 'ws', 1)}/a2a?token={token}"
    beta = EchoSeat(hub.url, token, agentId="beta")
    async with beta, connect(address, compression=None) as socket:
        await beta.find("auth-response")
        client = PrototypeClient(socket)
        welcome = await client.find("welcome")
        assert welcome["gateway"]["version"] == "1.0.0"
        await client.send(type="register", agentId="alpha", metadata={})
        registered = await client.find("registered")
        assert (registered["agentId"], registered["connectedAgents"]) == ("alpha", ["alpha", "beta"])
        await client.send(type="health", correlationId="h")
        assert (await client.find("health"))["correlationId"] == "h"
        await client.send(type="message", to="beta", content="hi", correlationId="c")
        reply = await client.find("response")
        assert (reply["content"], reply["from"], reply["correlationId"]) == ("echo: hi", "beta", "c")
        await client.send(type="message", to="stranger", content="hi", correlationId="e")
        error = await client.find("error")
        assert (error["code"], error["correlationId"], "error" in error) == (3001, "e", True)
        asking = asyncio.create_task(beta.send_message("alpha", "why?"))
        asked = await client.find("message")
        assert (asked["content"], asked["from"]) == ("why?", "beta")
        await client.send(type="response", content="because", correlationId=asked["correlationId"])
        answer = await asking
        assert answer["content"] == {"role": "agent", "content": "because"}
        assert "auth-response" not in [one["type"] for one in client.frames]
    headers = {"X-Agent-Id": "gamma", "Authorization": f"Bearer {token}"}
    async with connect(address.partition("?")[0], additional_headers=headers, compression=None) as socket:
        client = PrototypeClient(socket)
        await client.send(type="discover")
        found = await client.find("discover")
        assert "gamma" in found["connectedAgents"]
        assert {"alpha", "beta"} <= set(found["registeredAgents"])
