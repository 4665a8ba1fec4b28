"""Pushes statuses and deliveries of agents to the subscribers of their channels, also unpublished changes.

A status is published where it changes. An agent whose process died changes without that, so each process with
subscribers reads their teams again every few seconds, and pushes what is not as it was told.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping

from agents.core.ports import Clock
from agents.models.session import is_online
from gateway.service.message_router import MessageRouter
from gateway.service.pushes import Channels, Subscriber, make_channel_frame
from gateway.service.registry import OFFLINE, PushedStatus, ReportedStatus, load_reported_status, load_statuses
from gateway.wire.channels import ACTIVITY, MESSAGES, STATUS, inbox_channel
from gateway.wire.frames import Json, event_frame, make_frame, now_ms

FRESH_S = 1.0  # clients that subscribe within it share one look at the database
DELIVERED = "message.delivered"


class TeamView:
    """The statuses of a team that the hub sent to the subscribers of this process.

    The view is a subscriber itself.

    `read_at`: when the database was read last; None before that.
    """

    def __init__(self) -> None:
        self.told: dict[str, PushedStatus] = {}
        self.read_at: float | None = None
        self._since_read: dict[str, PushedStatus] = {}

    def push(self, type_name: str, frame: bytes) -> bool:
        """See `gateway.service.pushes.Subscriber`."""
        if type_name != "status":
            return False
        content = json.loads(frame)["content"]
        self._since_read[content["agent"]] = PushedStatus(content["status"], content["lastSeen"])
        self.told |= self._since_read
        return True

    async def read(self, load: Callable[[], Awaitable[dict[str, PushedStatus]]]) -> dict[str, PushedStatus]:
        """Read the current statuses. A status that is pushed meanwhile is newer than the one that is read."""
        self._since_read = {}
        return await load() | self._since_read


class StatusFeed:
    """Publishes statuses for the sockets of one process, and pushes the missing ones to its subscribers."""

    def __init__(self, channels: Channels, router: MessageRouter, clock: Clock) -> None:
        self._channels = channels
        self._router = router
        self._clock = clock
        self._views: dict[int, TeamView] = {}
        self._comparing = asyncio.Lock()

    async def subscribe(
        self, owner_id: int, subscriber: Subscriber, agents: Collection[str]
    ) -> Mapping[str, PushedStatus]:
        """Push the statuses of a team to a client from now on; the statuses as they are now."""
        async with self._comparing:
            view = self._views.get(owner_id)
            if view is None:
                view = self._views[owner_id] = TeamView()
                await self._channels.subscribe(owner_id, STATUS, view)
            if view.read_at is None or self._clock() - view.read_at > FRESH_S:
                await self._compare(owner_id, view)
            await self._channels.subscribe(owner_id, STATUS, subscriber, agents)
            return view.told

    async def publish(self, owner_id: int, agent: str, status: str, previous: str) -> None:
        """Push a status that an agent has from now on."""
        frame = status_frame(agent, PushedStatus(status, now_ms()), previous)
        await self._channels.publish(owner_id, STATUS, frame, agent=agent)

    async def seat_taken(self, owner_id: int, agent: str, *, was_connected: bool) -> None:
        """An agent has taken its seat."""
        if self._channels.may_reach(owner_id):
            await self.publish(owner_id, agent, "online", "online" if was_connected else OFFLINE)
            await self._publish_activity(owner_id, "agent.registered", agent)

    async def seat_left(self, owner_id: int, agent: str, session_id: int) -> None:
        """A connection of an agent has ended; a newer one may have its seat."""
        if not self._channels.may_reach(owner_id):
            return
        said, is_gone = await self._router.read(_load_end, session_id)
        if is_gone:
            await self.publish(owner_id, agent, OFFLINE, said.status)
            await self._publish_activity(owner_id, "agent.left", agent)

    async def look(self) -> None:
        """Push unpublished changes, and forget the teams without subscribers."""
        await self._channels.restore()
        for owner_id, view in list(self._views.items()):
            async with self._comparing:
                if self._channels.count(owner_id, STATUS) > 1:
                    await self._compare(owner_id, view)
                else:
                    del self._views[owner_id]
                    await self._channels.unsubscribe(owner_id, STATUS, view)

    async def _compare(self, owner_id: int, view: TeamView) -> None:
        now = await view.read(lambda: self._router.read(load_statuses, owner_id))
        missing = view.told.keys() - now.keys()
        changes = {name: PushedStatus(OFFLINE, view.told[name].last_seen_ms) for name in missing} | now
        for name, status in changes.items() if view.read_at is not None else ():
            told = view.told[name].status if name in view.told else OFFLINE
            if told != status.status:
                frame = status_frame(name, status, told)
                self._channels.push_here(make_channel_frame(owner_id, STATUS, frame, name))
        view.told, view.read_at = now, self._clock()

    async def _publish_activity(self, owner_id: int, event: str, agent: str) -> None:
        frame = event_frame(event, {"agent": agent})
        await self._channels.publish(owner_id, ACTIVITY, frame, agent=agent)


def _load_end(session_id: int) -> tuple[ReportedStatus, bool]:
    return load_reported_status(session_id), not is_online(session_id)


def status_frame(agent: str, status: PushedStatus, previous: str = "") -> Json:
    """A status as subscribers get it. `previous` empty: it is the first that they are told."""
    content: Json = {"agent": agent, "status": status.status, "lastSeen": status.last_seen_ms}
    return make_frame("status", content | ({"previous": previous} if previous else {}))


async def publish_delivered(channels: Channels, owner_id: int, agent: str, frame: Json) -> None:
    """Push that a message was sent to a seat. Only subscribers of the inbox get its text."""
    content = {
        "agent": agent,
        "from": frame["from"],
        "id": frame["id"],
        "requiresResponse": frame["metadata"].get("requiresResponse") is True,
    }
    if "sessionId" in frame:
        content["sessionId"] = frame["sessionId"]
    about = event_frame(DELIVERED, content)
    whole = event_frame(DELIVERED, content | {"message": frame["content"]})
    messages = [make_channel_frame(owner_id, channel, about, agent) for channel in (MESSAGES, ACTIVITY)]
    await channels.publish_all(
        owner_id, [*messages, make_channel_frame(owner_id, inbox_channel(agent), whole, agent)]
    )
