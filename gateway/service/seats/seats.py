"""The seats of one process, by team and name; pushes frames to seats of any process, without a turn."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from agents.core.post import Post
from agents.models import Connection
from agents.transcript.announcements import SurfaceMessage
from gateway.service.channels import Subscriber
from gateway.service.seats.seat import GATEWAY_LINK, Seat

SURFACE = "gateway.seats"
PUSHED_AT_ONCE = 100  # then other work of the process goes on


class SeatFrames(msgspec.Struct, frozen=True):
    """One frame for several seats of the receiving process, by their connections.

    `frames`: by type; a client gets the first whose type it takes.
    """

    connections: tuple[int, ...]
    frames: dict[str, msgspec.Raw]


class SeatConnection(NamedTuple):
    """Where a seat is connected."""

    name: str
    process_id: str
    connection_id: int


class SeatClient(Subscriber, Protocol):
    """A client that has a seat."""

    @property
    def has_room(self) -> bool:
        """Whether more may be pushed to it: not as many frames wait for it that it may soon be closed."""

    async def wait_for_room(self, within_s: float) -> None:
        """Wait until it has room, or the time is up. Those who wait go on one by one."""


@dataclass(frozen=True, slots=True)
class HeldSeat:
    """A seat of this process, and the client that has it."""

    seat: Seat
    client: SeatClient


class Seats:
    """The seats whose connections this process holds; a newer connection replaces an older one."""

    def __init__(self, process_id: str, post: Post) -> None:
        self._process_id = process_id
        self._post = post
        self._by_name: dict[tuple[int, str], HeldSeat] = {}
        self._by_connection: dict[int, HeldSeat] = {}

    def enter(self, owner_id: int, seat: Seat, client: SeatClient) -> None:
        """A connection has taken its seat."""
        self._by_name[owner_id, seat.name] = self._by_connection[seat.connection_id] = HeldSeat(seat, client)

    def leave(self, owner_id: int, seat: Seat) -> None:
        """A connection is over. That of a newer one stays."""
        self._by_connection.pop(seat.connection_id, None)
        held = self._by_name.get((owner_id, seat.name))
        if held is not None and held.seat is seat:
            del self._by_name[owner_id, seat.name]

    def find(self, owner_id: int, name: str) -> HeldSeat | None:
        """The seat of an agent of a team; None when this process does not hold it."""
        return self._by_name.get((owner_id, name))

    async def push(self, seats: Collection[SeatConnection], frames: Mapping[str, bytes]) -> dict[str, bool]:
        """Push a frame to these seats; of each, by name, whether it was sent. See `SeatFrames` for `frames`."""
        sent: dict[str, bool] = {}
        elsewhere: dict[str, list[SeatConnection]] = {}
        for number, one in enumerate(seats, start=1):
            if one.process_id == self._process_id:
                sent[one.name] = self._push_here(one.connection_id, frames)
            else:
                elsewhere.setdefault(one.process_id, []).append(one)
            if not number % PUSHED_AT_ONCE:
                await asyncio.sleep(0)
        raw = {type_name: msgspec.Raw(frame) for type_name, frame in frames.items()}
        for process_id, those in elsewhere.items():
            body = msgspec.json.encode(SeatFrames(tuple(one.connection_id for one in those), raw))
            was_sent = await self._post.send(process_id, SurfaceMessage(SURFACE, msgspec.Raw(body)))
            sent |= {one.name: was_sent for one in those}
        return sent

    def take(self, body: msgspec.Raw) -> None:
        """Frames that another process sends to seats of this one."""
        message = msgspec.json.decode(body, type=SeatFrames)
        frames = {type_name: bytes(frame) for type_name, frame in message.frames.items()}
        for connection_id in message.connections:
            self._push_here(connection_id, frames)

    def _push_here(self, connection_id: int, frames: Mapping[str, bytes]) -> bool:
        held = self._by_connection.get(connection_id)
        if held is None:
            return False
        return any(held.client.push(type_name, frame) for type_name, frame in frames.items())


def load_connected(owner_id: int, names: Collection[str] | None = None) -> list[SeatConnection]:
    """The connected seats of a team, in the order of their names. `names`: only these."""
    found = Connection.objects.filter(session__owner_id=owner_id, session__link=GATEWAY_LINK)
    if names is not None:
        found = found.filter(session__routing_name__in=names)
    rows = found.order_by("session__routing_name").values_list("session__routing_name", "process_id", "pk")
    return [SeatConnection(*row) for row in rows]
