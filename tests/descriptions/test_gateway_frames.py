"""The frames of the gateway are described as the gateway checks them."""

from typing import Any

import jsonschema_rs
import pytest

from gateway.wire.errors import GatewayErrorCode
from gateway.wire.frame_types import FRAME_TYPES, KINDS
from hub.descriptions.asyncapi import SCHEMAS, name_of_type
from lab.hub_process import HubProcess
from tests.descriptions.test_asyncapi import payload
from tests.gateway.client import EchoSeat, GatewayClient

Json = dict[str, Any]


def test_every_frame_type_and_error_code_of_the_gateway_is_described() -> None:
    assert all(one.taken or one.sent for one in FRAME_TYPES.values())
    assert all(code.meaning for code in GatewayErrorCode)
    assert set(KINDS) == set(SCHEMAS)


def test_every_field_that_the_gateway_checks_is_described() -> None:
    for type_ in [one for one in FRAME_TYPES.values() if one.taken]:
        schema = payload("gateway", name_of_type(type_))["allOf"][1]
        for field in type_.fields:
            inner = schema
            for place in field.path.split("."):
                inner = inner["properties"][place]
            assert SCHEMAS.get(field.kind, {}).items() <= inner.items(), field.path


FROM_CLIENT = [
    ({"type": "message", "agent": "alpha", "content": {"role": "user", "content": "hi"}}, "agent"),
    ({"type": "vote", "content": {"vote": "approve", "proposalId": "p"}}, "content"),
    ({"type": "handshake", "content": {"action": "advertise"}}, "content"),
    ({"type": "auth", "content": {"token": "ck"}}, "content"),
]


def test_a_frame_that_the_gateway_takes_fits_its_description() -> None:
    for frame, needed in FROM_CLIENT:
        described = payload("gateway", name_of_type(FRAME_TYPES[frame["type"]]))
        jsonschema_rs.validate(described, {**frame, "kept": True, "metadata": {"own": 1}})
        for flaw in ({"type": "other"}, {"id": "x" * 129}, {"metadata": {"priority": "soon"}}, {"content": 1}):
            with pytest.raises(jsonschema_rs.ValidationError):
                jsonschema_rs.validate(described, frame | flaw)
        with pytest.raises(jsonschema_rs.ValidationError):
            jsonschema_rs.validate(described, {name: value for name, value in frame.items() if name != needed})


async def test_what_the_gateway_sends_fits_its_description(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("described", "channel")
    async with EchoSeat(embedded_hub.url, token, agentId="alpha"), GatewayClient(embedded_hub.url) as client:
        await client.send("status")
        await client.send("auth", {"token": embedded_hub.mint("described", "session")})
        await client.find("auth-response")
        await client.shake_hands(supportedMessageTypes=["message", "status", "error"])
        await client.discover()
        await client.send("ping", {"heartbeat": 1})
        await client.send("request", {"service": "agents.list"})
        await client.send("status")
        await client.send_message("alpha", "hello")
        await client.send_message("nothing", "hello")
        for name in ("pong", "response", "status", "message", "error"):
            await client.find(name)
    assert {one["type"] for one in client.frames} >= {
        "error",
        "auth-response",
        "handshake",
        "discovery",
        "message",
    }
    for frame in client.frames:
        jsonschema_rs.validate(payload("gateway", frame["type"]), frame)
