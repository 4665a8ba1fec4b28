"""Every frame of every socket is described."""

import re
from typing import Any

import jsonschema_rs
import msgspec
import pytest
import yaml
from django.test import Client

from agents.links.channel import frames
from hub.descriptions.asyncapi import SOCKETS, asyncapi, name_of
from kit.describe import DescribedSocket
from tests.repository.tracked import ROOT

Json = dict[str, Any]


def found(reference: Json, document: Json) -> Any:
    place: Any = document
    for part in reference["$ref"].removeprefix("#/").split("/"):
        place = place[part]
    return place


def payload(socket: str, tag: str) -> Json:
    """The schema of one frame, with everything it refers to."""
    message = asyncapi()["components"]["messages"][f"{socket}.{tag}"]
    return {**message["payload"], "components": asyncapi()["components"]}


def tags(socket: DescribedSocket, action: str) -> set[str]:
    messages = asyncapi()["operations"][f"{socket.name}.{action}"]["messages"]
    return {found(found(one, asyncapi()), asyncapi())["name"] for one in messages}


def test_every_frame_of_the_channel_is_described() -> None:
    [channel] = [socket for socket in SOCKETS if socket.path == "/channel"]
    assert tags(channel, "receive") == set(frames.FROM_AGENT)
    assert tags(channel, "send") == {str(frame.__struct_config__.tag) for frame in frames.TO_AGENT}
    every = {str(frame.__struct_config__.tag) for frame in frames.AgentChannelFrame.__subclasses__()}
    assert every == tags(channel, "receive") | tags(channel, "send")


def test_every_socket_the_hub_opens_is_described() -> None:
    opened = set(re.findall(r'"(/[\w/-]*\w)"', (ROOT / "hub" / "asgi.py").read_text()))
    assert "/channel" in opened
    assert opened == {socket.path for socket in SOCKETS}


def test_every_frame_has_a_summary_and_its_fields() -> None:
    for socket in SOCKETS:
        for frame in {*socket.from_client, *socket.to_client}:
            tag = str(frame.__struct_config__.tag)
            message = asyncapi()["components"]["messages"][f"{socket.name}.{name_of(socket, frame)}"]
            assert message["name"] == tag, socket
            assert message["summary"], tag
            schema = found(message["payload"], asyncapi())
            assert schema["properties"].keys() == {
                frame.__struct_config__.tag_field,
                *frame.__struct_encode_fields__,
            }, socket


def test_the_document_is_asyncapi_3() -> None:
    document = asyncapi()
    assert document["asyncapi"] == "3.0.0"
    assert document["info"]["version"] == "0.4.0"
    assert {operation["action"] for operation in document["operations"].values()} == {"receive", "send"}
    for operation in document["operations"].values():
        assert found(operation["channel"], document)["address"].startswith("/")
        assert all(found(one, document)["type"] for one in operation["security"])
    for channel in document["channels"].values():
        assert all(found(one, document)["payload"] for one in channel["messages"].values())


SENT = [
    frames.Welcome(session_id="s", routing_name="@s", channel_token_name="lap"),
    frames.Prompt(chat_id="c", text="hello", asker_user="alice"),
    frames.Bye(reason="restart", retry=True),
]


def test_what_the_hub_sends_fits_its_description() -> None:
    for frame in SENT:
        written = msgspec.to_builtins(frame)
        jsonschema_rs.validate(payload("channel", written["type"]), written)
        with pytest.raises(jsonschema_rs.ValidationError):
            jsonschema_rs.validate(payload("channel", written["type"]), {**written, "type": "other"})


def test_a_summary_names_fields_as_the_wire_does() -> None:
    message = asyncapi()["components"]["messages"]["channel.register"]
    assert "`sessionId`" in message["summary"]


def test_both_forms_are_the_same_document() -> None:
    as_json, as_yaml = Client().get("/api/ws-docs/json"), Client().get("/api/ws-docs/yaml")
    assert as_json["Content-Type"] == "application/json"
    assert as_yaml["Content-Type"] == "application/yaml"
    assert as_json.json() == yaml.safe_load(as_yaml.content) == asyncapi()
