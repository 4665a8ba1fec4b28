"""Pushes frames to clients of any process: to the subscribers of a team's channels, and to seats by name.

A pushed frame may be lost with a process: the rows in the database have everything that must last.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec
from django.db.models import QuerySet

from agents.core.post import Post
from agents.models import Connection
from agents.transcript.announcements import SurfaceMessage, send_after_commit
from gateway.models import ChannelWatch
from gateway.service.seat import GATEWAY_LINK, Seat
from gateway.wire.frames import Json
from kit.async_db import db_call

CHANNELS_SURFACE = "gateway"


class Subscriber(Protocol):
    """A client that takes pushes."""

    def push(self, type_name: str, frame: bytes) -> bool:
        """Queue a frame; False when the client takes no frames of that type.

        A subscriber that does not read is closed.
        """


class AgentFilter(NamedTuple):
    """The agents about which a subscriber gets frames: the named agents, or with `but` all others."""

    names: frozenset[str] = frozenset()
    but: bool = True

    def takes(self, agent: str) -> bool:
        """True if it takes a frame about that agent. Empty: the frame is about none."""
        return not agent or (agent in self.names) is not self.but

    def without(self, names: Collection[str]) -> "AgentFilter | None":
        """The filter without some agents; None when it takes no others."""
        if self.but:
            return AgentFilter(self.names | frozenset(names))
        left = self.names - frozenset(names)
        return AgentFilter(left, but=False) if left else None


class ChannelFrame(msgspec.Struct, frozen=True):
    """A frame for the subscribers of a team's channel. `agent`: whom it is about; empty: no filter applies."""

    owner_id: int
    channel: str
    type_name: str
    frame: msgspec.Raw
    agent: str = ""


class Channels:
    """The subscribers of one process, by team and channel. `is_alone`: there are no other processes."""

    def __init__(self, process_id: str, post: Post, *, is_alone: bool) -> None:
        self._process_id = process_id
        self._post = post
        self._is_alone = is_alone
        self._subscribers: dict[tuple[int, str], dict[Subscriber, AgentFilter]] = {}
        self._subscribed: dict[Subscriber, set[tuple[int, str]]] = {}
        self._watched: Counter[int] = Counter()  # subscriptions of each team
        self._in_order = asyncio.Lock()  # of the rows of this process

    @property
    def total(self) -> int:
        """The number of subscriptions in this process, with those of the gateway itself."""
        return self._watched.total()

    async def subscribe(
        self, owner_id: int, channel: str, subscriber: Subscriber, agents: Collection[str] = ()
    ) -> None:
        """Push the frames of a channel to a client from now on; `agents` narrows them. Again replaces `agents`."""
        await self.filter(owner_id, channel, subscriber, AgentFilter(frozenset(agents), but=not agents))

    async def filter(self, owner_id: int, channel: str, subscriber: Subscriber, agents: AgentFilter) -> None:
        """Subscribe with a filter; see `subscribe`."""
        key = (owner_id, channel)
        subscribers = self._subscribers.setdefault(key, {})
        is_new = subscriber not in subscribers
        subscribers[subscriber] = agents
        self._subscribed.setdefault(subscriber, set()).add(key)
        self._watched[owner_id] += is_new
        if is_new and self._watched[owner_id] == 1:
            await self._keep_watch(owner_id)

    async def unsubscribe(self, owner_id: int, channel: str, subscriber: Subscriber) -> None:
        """Push no more of it to this client."""
        if self._remove((owner_id, channel), subscriber) and owner_id not in self._watched:
            await self._keep_watch(owner_id)

    async def leave(self, subscriber: Subscriber) -> None:
        """Remove the subscriptions of a client that has gone, also while the database is away."""
        keys = list(self._subscribed.get(subscriber, ()))
        for key in keys:
            self._remove(key, subscriber)
        for owner_id in {owner_id for owner_id, _ in keys} - self._watched.keys():
            await self._keep_watch(owner_id)

    async def restrict(self, subscriber: Subscriber, may_have: Callable[[str], bool]) -> None:
        """End the subscriptions of a client to channels that it may not have any more."""
        for owner_id, channel in list(self._subscribed.get(subscriber, ())):
            if not may_have(channel):
                await self.unsubscribe(owner_id, channel, subscriber)

    def subscriptions(self, subscriber: Subscriber) -> Mapping[tuple[int, str], AgentFilter]:
        """The teams and channels that a client subscribed to, each with its filter."""
        return {key: self._subscribers[key][subscriber] for key in self._subscribed.get(subscriber, ())}

    def count(self, owner_id: int, channel: str) -> int:
        """The number of subscribers of a channel in this process."""
        return len(self._subscribers.get((owner_id, channel), ()))

    def may_reach(self, owner_id: int) -> bool:
        """True if a frame for a team may have subscribers, as far as it is known without the database."""
        return not self._is_alone or owner_id in self._watched

    async def publish(self, owner_id: int, channel: str, frame: Json, *, agent: str = "") -> None:
        """Push a frame to all subscribers of a channel, in every process. `agent`: see `ChannelFrame`."""
        await self.publish_all(owner_id, [make_channel_frame(owner_id, channel, frame, agent)])

    async def publish_all(self, owner_id: int, messages: Sequence[ChannelFrame]) -> None:
        """Push frames for channels of one team, in order."""
        for message in messages:
            self.push_here(message)
        if self._is_alone:
            return
        bodies = [_address_process(message) for message in messages]
        for process_id in await db_call(find_watching)(owner_id):
            if process_id != self._process_id:
                for body in bodies:
                    await self._post.send(process_id, body)

    def take(self, body: msgspec.Raw) -> None:
        """A frame that another process, or a thread of this one, published."""
        self.push_here(msgspec.json.decode(body, type=ChannelFrame))

    def push_here(self, message: ChannelFrame) -> None:
        """Push a frame to the subscribers in this process alone."""
        frame = bytes(message.frame)
        for subscriber in self.find_subscribers(message.owner_id, message.channel, message.agent):
            subscriber.push(message.type_name, frame)

    def find_subscribers(self, owner_id: int, channel: str, agent: str = "") -> list[Subscriber]:
        """The subscribers of a channel in this process. `agent`: see `ChannelFrame`."""
        subscribers = self._subscribers.get((owner_id, channel), {})
        return [one for one, agents in subscribers.items() if agents.takes(agent)]

    async def restore(self) -> None:
        """Write again which teams have subscribers here: another process may have deleted these rows as a dead
        process's.
        """
        if self._watched:
            async with self._in_order:
                await db_call(_restore_watches)(list(self._watched), self._process_id)

    def _remove(self, key: tuple[int, str], subscriber: Subscriber) -> bool:
        """Forget a subscription; False when there is none."""
        subscribers = self._subscribers.get(key, {})
        if subscriber not in subscribers:
            return False
        del subscribers[subscriber]
        if not subscribers:
            del self._subscribers[key]
        self._subscribed[subscriber].discard(key)
        if not self._subscribed[subscriber]:
            del self._subscribed[subscriber]
        self._watched[key[0]] -= 1
        if not self._watched[key[0]]:
            del self._watched[key[0]]
        return True

    async def _keep_watch(self, owner_id: int) -> None:
        """Write whether this process has subscribers of a team, as it is when its turn comes."""
        async with self._in_order:
            await db_call(_set_watch)(owner_id, self._process_id, owner_id in self._watched)


def make_channel_frame(owner_id: int, channel: str, frame: Json, agent: str = "") -> ChannelFrame:
    """A frame as it travels to the subscribers of a channel."""
    return ChannelFrame(owner_id, channel, frame["type"], msgspec.Raw(msgspec.json.encode(frame)), agent)


def publish_after_commit(owner_id: int, channel: str, frame: Json, *, agent: str = "") -> None:
    """Push a frame to the subscribers of a channel after the commit; for synchronous code in any thread."""
    message = make_channel_frame(owner_id, channel, frame, agent)
    body = _address_process(message)
    send_after_commit([(process_id, body) for process_id in find_watching(owner_id)])


def _address_process(message: ChannelFrame) -> SurfaceMessage:
    return SurfaceMessage(CHANNELS_SURFACE, msgspec.Raw(msgspec.json.encode(message)))


def find_watching(owner_id: int) -> list[str]:
    """The processes with subscribers of a team."""
    found: QuerySet[ChannelWatch, str] = ChannelWatch.objects.filter(owner_id=owner_id).values_list(
        "process_id", flat=True
    )
    return list(found)


def _set_watch(owner_id: int, process_id: str, has_subscribers: bool) -> None:
    if has_subscribers:
        ChannelWatch.objects.get_or_create(owner_id=owner_id, process_id=process_id)
    else:
        ChannelWatch.objects.filter(owner_id=owner_id, process_id=process_id).delete()


def _restore_watches(owner_ids: Sequence[int], process_id: str) -> None:
    there = ChannelWatch.objects.filter(process_id=process_id).values_list("owner_id", flat=True)
    missing = set(owner_ids).difference(there)
    watches = [ChannelWatch(owner_id=owner_id, process_id=process_id) for owner_id in missing]
    ChannelWatch.objects.bulk_create(watches, ignore_conflicts=True)


SEATS_SURFACE = "gateway.seats"
PUSHED_AT_ONCE = 100  # yields to the other work of the process


class SeatFrames(msgspec.Struct, frozen=True):
    """One frame for several seats of the receiving process, by their connections.

    `frames`: by type; a client gets the first whose type it takes.
    """

    connections: tuple[int, ...]
    frames: dict[str, msgspec.Raw]


class SeatConnection(NamedTuple):
    """The process and the connection of a seat."""

    name: str
    process_id: str
    connection_id: int


class SeatClient(Subscriber, Protocol):
    """A client that has a seat."""

    @property
    def has_room(self) -> bool:
        """True if more may be pushed to it: not as many frames wait for it that it may soon be closed."""

    async def wait_for_room(self, within_s: float) -> None:
        """Wait until it has room, or the time is up. Waiting senders go on one by one."""


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
        """Remove a connection that has ended. The entry of a newer connection stays."""
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
            was_sent = await self._post.send(process_id, SurfaceMessage(SEATS_SURFACE, msgspec.Raw(body)))
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
