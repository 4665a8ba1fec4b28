"""The AsyncAPI document turned into what the page shows."""

from dataclasses import dataclass

from hub.descriptions.readable import Field, fields_of, plain
from hub.descriptions.shapes import Json

TITLES = {"receive": "From the client", "send": "From the hub"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRow:
    """One frame."""

    type: str
    summary: str
    fields: list[Field]


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """The frames of one direction."""

    title: str
    name: str
    is_inward: bool
    frames: list[FrameRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketRow:
    """One socket."""

    name: str
    path: str
    summary: str
    credentials: str
    directions: list[Direction]


def sockets(document: Json) -> list[SocketRow]:
    """The sockets of an AsyncAPI document."""
    return [_socket(document, name, channel) for name, channel in document["channels"].items()]


def _socket(document: Json, name: str, channel: Json) -> SocketRow:
    told = {action: document["operations"][f"{name}.{action}"] for action in TITLES}
    credentials = [one["$ref"].rpartition("/")[2] for one in told["receive"]["security"]]
    directions = [
        Direction(
            title=title,
            name=f"{name}-{action}",
            is_inward=action == "receive",
            frames=_frames(document, name, told[action]),
        )
        for action, title in TITLES.items()
    ]
    return SocketRow(
        name=name,
        path=channel["address"],
        summary=channel["summary"],
        credentials=" or ".join(credentials),
        directions=directions,
    )


def _frames(document: Json, socket: str, operation: Json) -> list[FrameRow]:
    tags = [message["$ref"].rpartition("/")[2] for message in operation["messages"]]
    messages = {tag: document["components"]["messages"][f"{socket}.{tag}"] for tag in tags}
    return [
        FrameRow(type=tag, summary=plain(message["summary"]), fields=list(fields_of(document, message["payload"])))
        for tag, message in messages.items()
    ]
