"""A hub process while it runs: what starts with the first request, beats while it lives, and drains at the end."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from django.conf import settings

from accounts.authn import still_good
from agents import jobs
from agents.core import halting, presence
from agents.core.dispatch import HALTED
from agents.core.halting import Active
from agents.core.ledger.state import ended_parents
from agents.core.post import Evict
from agents.links.channel.link import ChannelLink, Socket
from agents.transcript import announcing, permissions
from agents.transcript.announcing import Dismiss
from agents.transcript.deleting import DELETED
from hub.job_thread import JOIN_WITHIN_S, deliverer, housekeepers
from hub.watch.endpoints import draining
from hub.wiring import House
from kit.async_db import db_call
from kit.durations import seconds
from kit.sockets import SERVICE_RESTART, TRY_AGAIN_LATER
from kit.tasks import TaskSet
from operators.attaching import find_lost
from webhooks.outbox import on_queued

logger = logging.getLogger(__name__)

BEAT_EVERY_S = seconds(5.0, at_least_s=1.25)
BEAT_TRIES = 3
TEND_EVERY_S = seconds(1.0, at_least_s=0.25)
WATCH_EVERY_S = 1.0
HALTS_EVERY_S = 0.25
CASCADE_EVERY_S = 0.25
DRAIN_STEP_S = 0.05
LAST_WORDS_S = seconds(5.0, at_least_s=1.25)
OPERATORS_WITHIN_S = 2.0
SPREAD_S = seconds(4.0, at_least_s=2.0)  # so that a quarter comes back in any second: clients wait 1 to 1.2 s
FEW_A_SECOND = 20.0
LEFT_WITHIN_S = 2.0
END_STEP_S = JOIN_WITHIN_S + 2.0


class Runtime:
    """Starts lazily, because not every server sends lifespan events."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._tasks = TaskSet()
        self._starting: asyncio.Task[None] | None = None
        self.is_started = False
        self._deliverer = deliverer()
        self._threads = [self._deliverer, house.pusher, *(housekeepers() if settings.IS_EMBEDDED else [])]

    async def ensure_started(self) -> None:
        """Ready when this returns; cheap once it was."""
        if self.is_started:
            return
        if self._starting is None or self._starting.done():  # first, or the try before failed
            self._starting = asyncio.get_running_loop().create_task(self._start(), name="start")
        # All early requests share one start: a client that leaves must not cancel it for the others.
        await asyncio.shield(self._starting)

    async def drain(self) -> None:
        """Take no new asks, let the open ones end, send agents and operators elsewhere. At most about DRAIN_S."""
        # First: from now on `/readyz` answers 503 and new agents are refused, so that other processes get them.
        draining.set()
        leaving, deadline = LeavingSockets(self.house.link), time.monotonic() + settings.DRAIN_S
        self._tasks.start(self.house.dispatcher.drain(settings.DRAIN_S), name="drain turns")
        while (turns := self.house.dispatcher.open_turns) or self.house.link.sockets:
            if time.monotonic() < deadline:
                leaving.send_some_away()
            else:
                leaving.send_all_away()
            if time.monotonic() > deadline + LAST_WORDS_S:
                logger.error("drain.unfinished", extra={"turns": turns})
                break
            await asyncio.sleep(DRAIN_STEP_S)
        await leaving.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.house.room.close(), OPERATORS_WITHIN_S)

    async def stop(self) -> None:
        """Leave nothing behind: no row of this process, no thread, no connection; as far as each step goes."""
        house = self.house
        # Each step before those that it still uses: the ledger after
        # everything that writes through it, spans last.
        await end("loops", self._tasks.cancel())
        await end("asking", house.asking.close())
        await end("requests", house.requests.close())
        for thread in self._threads:
            await end("jobs", asyncio.to_thread(thread.stop))
        for name, link in house.links.items():
            await end(name, link.close())
        await end("post", house.post.close())
        await end("tasks", house.tasks.close())
        await end("limits", house.limits.close())
        await end("presence", db_call(presence.retire)(house.process_id))
        await end("ledger", asyncio.to_thread(house.ledger.close))
        if house.spans is not None:
            await end("spans", asyncio.to_thread(house.spans.close))

    async def _start(self) -> None:
        house = self.house
        if settings.IS_EMBEDDED:
            await db_call(presence.retire_all)()
        # Listening before the first beat: from then on other processes may address messages to this one.
        await house.post.start(house.process_id, house.take)
        await db_call(presence.beat)(house.process_id, mine={}, others=[])
        if settings.IS_EMBEDDED:
            # Ends what a crash left open before the first ask is admitted:
            # its claims would refuse asks as busy.
            await db_call(jobs.reap)()
        # Nothing below waits or fails: a start that fails is tried again, and a thread starts only once.
        on_queued(self._deliverer.wake)
        for thread in self._threads:
            thread.start()
        announcing.carry_by(house.courier.carry)
        self._tasks.start(house.courier.run(), name="courier")
        self._tasks.start(every(BEAT_EVERY_S, self._beat, "beat.failed", tries=BEAT_TRIES), name="beat")
        # Not with the beat: it waits for sessions that others hold, and a process that beats late is dead.
        self._tasks.start(every(BEAT_EVERY_S, db_call(permissions.expire_due), "expire.failed"), name="expire")
        self._tasks.start(every(TEND_EVERY_S, self._tend, "tend.failed"), name="tend")
        self._tasks.start(every(WATCH_EVERY_S, self._watch, "watch.failed"), name="watch")
        self._tasks.start(every(HALTS_EVERY_S, Halts(house).look, "halts.failed"), name="halts")
        self._tasks.start(every(CASCADE_EVERY_S, self._cascade, "cascade.failed"), name="cascade")
        self.is_started = True

    async def _beat(self) -> None:
        link, dispatcher = self.house.link, self.house.dispatcher
        mine = link.sessions
        others = dispatcher.connections() - set(mine)
        beat = await db_call(presence.beat)(self.house.process_id, mine=mine, others=others)
        dispatcher.lose(beat.lost)
        for connection_id in beat.missing:
            if socket := link.socket(connection_id):
                if socket.session_id in beat.deleted:  # the word of it is still on its way
                    leaving = socket.take(Dismiss(connection_id, DELETED))
                elif socket.session_id in beat.superseded:  # or it would come back, and take it from the newer one
                    leaving = socket.take(Evict(connection_id, same_program=False))
                else:
                    leaving = socket.leave(SERVICE_RESTART, bye="reregister")
                self._tasks.start(leaving, name="missing")

    async def _watch(self) -> None:
        """Close what a revoked token, a suspended user or a share taken back left open, in 2 s (docs/adr/0020)."""
        link, callers, room = self.house.link, self.house.callers, self.house.room
        if link.sockets:
            for connection_id in await db_call(presence.find_revoked)(self.house.process_id):
                if socket := link.socket(connection_id):
                    self._tasks.start(socket.refuse("token_revoked", "this token was revoked"), name="revoked")
        if held := callers.credential_ids | room.credential_ids:
            gone = held - await db_call(still_good)(held)
            callers.dismiss(gone)
            room.dismiss(gone)
        if room.credential_ids:
            for lost in await db_call(find_lost)(self.house.process_id):
                self.house.live.take(lost)

    async def _cascade(self) -> None:
        """Cancel what agents asked on in turns that were canceled or failed; those may be of other processes."""
        if parents := self.house.dispatcher.parents:
            self.house.dispatcher.cancel_begun_in(await db_call(ended_parents)(parents))

    async def _tend(self) -> None:
        self.house.link.tend(time.monotonic())


class LeavingSockets:
    """Sends the agents of a draining process away, one after the other: they would all come back at once.

    Those whose turns are over go first.
    """

    def __init__(self, link: ChannelLink) -> None:
        self._link = link
        self._began = time.monotonic()
        self._a_second = max(FEW_A_SECOND, len(link.sockets) / SPREAD_S)
        self._sent_away = 0
        self._tasks = TaskSet()

    def send_some_away(self) -> None:
        """As many idle ones as are due by now; after SPREAD_S the others get no prompts of other processes."""
        for_s = time.monotonic() - self._began
        self._link.refuses_far_prompts = for_s >= SPREAD_S
        due = 1 + int(for_s * self._a_second) - self._sent_away
        idle = [socket for socket in self._link.sockets if socket.is_idle(time.monotonic())]
        self._send_away(idle[: max(0, due)])

    def send_all_away(self) -> None:
        """All that are left, whatever is open."""
        self._link.refuses_far_prompts = True
        self._send_away(self._link.sockets)

    async def wait(self) -> None:
        """Wait until all have left, LEFT_WITHIN_S at most."""
        await self._tasks.wait(LEFT_WITHIN_S)

    def _send_away(self, sockets: list[Socket]) -> None:
        for socket in sockets:
            self._tasks.start(socket.leave(SERVICE_RESTART, bye="restart"), name="leave")
            self._sent_away += 1


class Halts:
    """Ends what halted agents, owners and callers have open here (docs/adr/0060).

    Call `look` several times a second. Turns end first, so that their callers get an answer; what is open a look
    later is closed.
    """

    def __init__(self, house: House) -> None:
        self._house = house
        self._known: set[int] = set()

    async def look(self) -> None:
        """End turns under every halt; close sockets and streams under those that were there before.

        Where nothing is open nothing is looked for: what begins later is refused at admission.
        """
        if not self._may_end_something:
            self._known = set()
            return
        halts = await db_call(halting.active)()
        ripe = [one for one in halts if one.id in self._known]
        self._known = {one.id for one in halts}
        if halts and self._house.dispatcher.open_turns:
            for chat_id in await db_call(halting.turns_under)(halts, self._house.process_id):
                self._house.dispatcher.cancel(chat_id, HALTED)
        if ripe:
            await self._close(ripe)

    @property
    def _may_end_something(self) -> bool:
        house = self._house
        held = house.callers.credential_ids or house.room.credential_ids
        return bool(house.dispatcher.open_turns or house.link.sessions or held)

    async def _close(self, halts: list[Active]) -> None:
        link, callers, room = self._house.link, self._house.callers, self._house.room
        if link.sessions:
            for connection_id in await db_call(halting.connections_under)(halts, self._house.process_id):
                if socket := link.socket(connection_id):
                    link.start(socket.leave(TRY_AGAIN_LATER, bye="halted"), "halted")
        if held := callers.credential_ids | room.credential_ids:
            halted = await db_call(halting.credentials_under)(halts, held)
            callers.dismiss(halted)
            room.halt(halted)


async def every(seconds: float, work: Callable[[], Awaitable[object]], event: str, *, tries: int = 1) -> None:
    """Do it for good, whatever fails: that is logged as `event`, and tried again at once while there are tries."""
    while True:
        await asyncio.sleep(seconds)
        for attempt in range(tries):
            try:
                await work()
                break
            except Exception:
                logger.exception(event, extra={"attempt": attempt})


async def end(step: str, work: Awaitable[object], *, within_s: float = END_STEP_S) -> None:
    """A step of the end. Whatever becomes of it, it gives way to the next."""
    try:
        async with asyncio.timeout(within_s):
            await work
    except Exception:
        logger.exception("stop.failed", extra={"step": step})
