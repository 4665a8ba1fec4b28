"""The channels of teams: clients subscribe to them, and frames are pushed to the subscribers in every process.

A frame for subscribers may be lost with a process; what counts is in rows.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec
from django.db.models import QuerySet

from agents.core.post import Post
from agents.transcript.announcements import SurfaceMessage, send_after_commit
from gateway.models import ChannelWatch
from gateway.wire.frames import Json
from kit.async_db import db_call

SURFACE = "gateway"


class Subscriber(Protocol):
    """A client that takes pushes."""

    def push(self, type_name: str, frame: bytes) -> bool:
        """Queue a frame; False when the client takes no frames of that type. One that does not read is closed."""


class AgentFilter(NamedTuple):
    """About which agents a subscriber takes frames: the named ones, or with `but` all others."""

    names: frozenset[str] = frozenset()
    but: bool = True

    def takes(self, agent: str) -> bool:
        """Whether it takes a frame about that agent. Empty: the frame is about none."""
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
        """How many subscriptions there are in this process, those of the gateway itself included."""
        return self._watched.total()

    async def subscribe(
        self, owner_id: int, channel: str, subscriber: Subscriber, agents: Collection[str] = ()
    ) -> None:
        """Push the frames of a channel to a client from now on; `agents` narrows them. Again replaces `agents`."""
        await self.filter(owner_id, channel, subscriber, AgentFilter(frozenset(agents), but=not agents))

    async def filter(self, owner_id: int, channel: str, subscriber: Subscriber, agents: AgentFilter) -> None:
        """As `subscribe`, with a filter."""
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
        """The client is gone, and its subscriptions with it, also when the database is away."""
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
        """How many subscribe to a channel in this process."""
        return len(self._subscribers.get((owner_id, channel), ()))

    def may_reach(self, owner_id: int) -> bool:
        """Whether a frame for a team may have subscribers, as far as it is known without the database."""
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
        bodies = [SurfaceMessage(SURFACE, msgspec.Raw(msgspec.json.encode(message))) for message in messages]
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
        """Write again which teams have subscribers here: others may have taken this process for dead meanwhile."""
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
    body = SurfaceMessage(SURFACE, msgspec.Raw(msgspec.json.encode(message)))
    send_after_commit([(process_id, body) for process_id in find_watching(owner_id)])


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
