"""The background work of a hub process: started by the first request, with heartbeats, drained at the end."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from math import ceil
from pathlib import Path

from django.conf import settings

from agents import jobs
from agents.core import presence
from agents.core.ledger.state import ended_parents
from agents.core.ports import Clock
from agents.core.post import Evict
from agents.links.sockets import ServedSocket, SocketLink
from agents.transcript import announcements, permissions
from agents.transcript.announcements import CloseAgent
from agents.transcript.session_deletion import DELETED
from evaluations.service.runs import on_started
from gateway.service.client import Gateway
from gateway.service.proposals import are_open, close_due
from gateway.service.queue_claims import are_queued
from gateway.service.session_recording import write_orphaned_records
from hub.job_thread import JOIN_WITHIN_S, JobThread, make_job_threads, make_sender_thread
from hub.monitoring.endpoints import draining
from hub.polling import Changes, Halts, Revocations, SqliteChanges, WaitingRows
from hub.wiring import HubServices
from kit import sql
from kit.async_db import DbCall, DbCalls, DbThread, db_call
from kit.durations import seconds
from kit.sockets import SERVICE_RESTART
from kit.tasks import TaskSet
from webhooks.service.outbox import on_queued

logger = logging.getLogger(__name__)

PHASE_S = random.uniform(0, 5)  # noqa: S311  of all timers: processes of one machine do not ask the database at once
BEAT_EVERY_S = seconds(5.0, at_least_s=1.25)
BEAT_TRIES = 3
TEND_EVERY_S = seconds(1.0, at_least_s=0.25)
WATCH_EVERY_S = 1.0
LETTERS_EVERY_S = 1.0
HALTS_EVERY_S = 0.25
CASCADE_EVERY_S = 0.25
STATUSES_EVERY_S = seconds(5.0, at_least_s=1.0)
DECIDE_EVERY_S = 1.0
COPY_LOG_EVERY_S = 0.25
COPY_LOG_AFTER = 64  # pieces of work of the ledger, each of which changes about ten pages
TIMERS_AT_ONCE = 8  # more threads than timers: a timer that waits for a lock must not delay a heartbeat
DRAIN_STEP_S = 0.05
END_STEPS_S = seconds(5.0, at_least_s=1.25)
OPERATORS_WITHIN_S = 2.0
SPREAD_S = seconds(4.0, at_least_s=2.0)  # so that a quarter comes back in any second: clients wait 1 to 1.2 s
FEW_A_SECOND = 20.0
LEFT_WITHIN_S = 2.0
SESSIONS_FAILED = "sessions.failed"
END_STEP_S = JOIN_WITHIN_S + 2.0


class Runtime:
    """Starts lazily, because not every server sends lifespan events."""

    def __init__(self, hub_services: HubServices) -> None:
        self.hub_services = hub_services
        self._tasks = TaskSet()
        self._starting: asyncio.Task[None] | None = None
        self.is_started = False
        self._changes = (
            SqliteChanges(Path(str(settings.DATABASES["default"]["NAME"]))) if settings.IS_EMBEDDED else Changes()
        )
        # Opening a SQLite connection takes several times as long as a query of a timer.
        self._timer_thread = DbThread("timers") if settings.IS_EMBEDDED else None
        self._call: DbCall = self._timer_thread.call if self._timer_thread else DbCalls(TIMERS_AT_ONCE)
        self._deliverer = make_sender_thread("deliveries", "webhooks.deliver_due")
        self._examiner = JobThread("evaluations", hub_services.examiner)
        self._log_copier = JobThread("checkpoints", lambda stopping: sql.copy_sqlite_log(), is_regular=False)
        self._copied_work = 0.0
        self._threads = [
            self._deliverer,
            hub_services.pusher,
            self._examiner,
            *([JobThread("cancellations", hub_services.canceller)] if settings.AGNT else []),
            *([self._log_copier, *make_job_threads()] if settings.IS_EMBEDDED else []),
        ]

    async def ensure_started(self) -> None:
        """Start the process's services unless they run. The process is ready when this returns."""
        if self.is_started:
            return
        if self._starting is None or self._starting.done():  # the first request, or the earlier start failed
            self._starting = asyncio.get_running_loop().create_task(self._start(), name="start")
        # All early requests share one start: a client that leaves must not cancel it for the others.
        await asyncio.shield(self._starting)

    async def drain(self) -> None:
        """Refuse new asks, wait for open turns, close the sockets of agents and operators.

        Takes at most about DRAIN_S.
        """
        # First: from now on `/readyz` answers 503 and new agents are refused, so that other processes get them.
        draining.set()
        self.hub_services.mcp.elicitations.end_all()
        leaving, deadline = SocketDrain(self.hub_services.link), time.monotonic() + settings.DRAIN_S
        self._tasks.start(self.hub_services.dispatcher.drain(settings.DRAIN_S), name="drain turns")
        while (turns := self._open_work) or self.hub_services.link.sockets:
            if time.monotonic() < deadline:
                leaving.send_some_away()
            else:
                leaving.send_all_away()
            if time.monotonic() > deadline + END_STEPS_S:
                logger.error("drain.unfinished", extra={"turns": turns})
                break
            await asyncio.sleep(DRAIN_STEP_S)
        await leaving.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.hub_services.operator_sockets.close(), OPERATORS_WITHIN_S)

    @property
    def _open_work(self) -> int:
        """Turns, and envelopes that wait for a venue."""
        return self.hub_services.dispatcher.open_turns + self.hub_services.agnt.runner.open_asks

    async def stop(self) -> None:
        """Remove the rows, threads and connections of this process; a failing step does not stop the others."""
        hub_services = self.hub_services
        # A step comes before the steps that end what it uses: the ledger ends after
        # everything that writes through it, the spans last.
        await end("loops", self._tasks.cancel())
        self._changes.close()
        if self._timer_thread is not None:
            await end("timers", self._timer_thread.close())
        await end("letters", hub_services.gateway.router.queue.close())
        await end("mcp", hub_services.mcp.close())
        await end("asking", hub_services.asking.close())
        await end("requests", hub_services.requests.close())
        for thread in self._threads:
            await end("jobs", asyncio.to_thread(thread.stop))
        for name, link in hub_services.links.items():
            await end(name, link.close())
        await end("late replies", hub_services.waiting.close())
        await end("gateway", hub_services.gateway.close())
        await end("venues", hub_services.venue_asker.close())
        await end("agnt", hub_services.agnt.runner.close())
        await end("post", hub_services.post.close())
        await end("tasks", hub_services.tasks.close())
        if hub_services.exchange_log is not None:
            await end("exchanges", hub_services.exchange_log.close())
        await end("limits", hub_services.limits.close())
        await end("presence", db_call(presence.remove_process)(hub_services.process_id))
        await end("ledger", hub_services.ledger.end())
        if hub_services.spans is not None:
            await end("spans", asyncio.to_thread(hub_services.spans.close))

    async def _start(self) -> None:
        hub_services = self.hub_services
        if settings.IS_EMBEDDED:
            await db_call(presence.remove_all_processes)()
        # The post listens before the first heartbeat: from then on other processes may send messages to this one.
        await hub_services.post.start(hub_services.process_id, hub_services.take)
        await db_call(presence.record_heartbeat)(hub_services.process_id, mine={}, others=[])
        if settings.IS_EMBEDDED:
            # Ends what a crash left open before the first ask is admitted:
            # its claims would refuse asks as busy.
            await db_call(jobs.reap)()
            if settings.GATEWAY:  # before clients read their sessions; a failed write is tried again
                await attempt(self._write_orphaned, SESSIONS_FAILED)
        # Nothing below waits or fails: a failed start is tried again, and a thread can be started only once.
        on_queued(self._deliverer.wake)
        on_started(self._examiner.wake)
        hub_services.examiner.start()
        hub_services.canceller.start()
        for thread in self._threads:
            thread.start()
        announcements.set_carrier(hub_services.message_sender.queue_messages)
        self._tasks.start(hub_services.message_sender.run(), name="courier")
        self._tasks.start(every(BEAT_EVERY_S, self._beat, "beat.failed", tries=BEAT_TRIES), name="beat")
        # Not in the heartbeat's timer: this work waits for locks on sessions, and a process whose heartbeat
        # is late counts as dead.
        self._tasks.start(
            every(BEAT_EVERY_S, partial(self._call, permissions.expire_due), "expire.failed"), name="expire"
        )
        self._tasks.start(every(TEND_EVERY_S, self._run_link_timers, "tend.failed"), name="tend")
        revocations = Revocations(hub_services, self._changes, self._call)
        halts = Halts(hub_services, self._changes, self._call)
        self._tasks.start(every(WATCH_EVERY_S, revocations.look, "watch.failed"), name="watch")
        self._tasks.start(every(HALTS_EVERY_S, halts.look, "halts.failed"), name="halts")
        self._tasks.start(every(CASCADE_EVERY_S, self._cancel_child_turns, "cascade.failed"), name="cascade")
        if settings.IS_EMBEDDED:
            self._tasks.start(every(COPY_LOG_EVERY_S, self._copy_log, "checkpoint.failed"), name="checkpoint")
        if settings.GATEWAY:
            self._start_gateway(hub_services.gateway)
        self.is_started = True

    def _start_gateway(self, gateway: Gateway) -> None:
        queue, statuses = gateway.router.queue, gateway.statuses
        queued = WaitingRows(self._changes, self._call, are_queued, queue.look)
        undecided = WaitingRows(self._changes, self._call, are_open, partial(self._call, close_due))
        self._tasks.start(every(LETTERS_EVERY_S, queued.look, "letters.failed"), name="letters")
        self._tasks.start(every(STATUSES_EVERY_S, statuses.look, "statuses.failed"), name="statuses")
        self._tasks.start(every(DECIDE_EVERY_S, undecided.look, "decide.failed"), name="decide")
        self._tasks.start(every(BEAT_EVERY_S, self._write_orphaned, SESSIONS_FAILED), name="sessions")

    async def _write_orphaned(self) -> None:
        """Write the records of dead processes to sessions."""
        await self._call(write_orphaned_records, self.hub_services.process_id, is_alone=settings.IS_EMBEDDED)

    async def _beat(self) -> None:
        link, dispatcher = self.hub_services.link, self.hub_services.dispatcher
        mine = link.sessions
        others = dispatcher.connections() - set(mine)
        process_id = self.hub_services.process_id
        beat = await self._call(presence.record_heartbeat, process_id, mine=mine, others=others)
        dispatcher.fail_turns_of(beat.lost)
        for connection_id in beat.missing:
            if socket := link.socket(connection_id):
                if socket.session_id in beat.deleted:  # the message about the newer connection has not arrived yet
                    leaving = socket.take(CloseAgent(connection_id, DELETED))
                # Else the agent would reconnect, and take the session from the newer connection.
                elif socket.session_id in beat.superseded:
                    leaving = socket.take(Evict(connection_id, same_program=False))
                else:
                    leaving = socket.close_from_hub(SERVICE_RESTART, bye="reregister")
                self._tasks.start(leaving, name="missing")

    async def _cancel_child_turns(self) -> None:
        """Cancel the asks that agents sent in turns that were canceled or failed; these asks may run in other
        processes.
        """
        if parents := self.hub_services.dispatcher.parents:
            self.hub_services.dispatcher.cancel_children_of(await self._call(ended_parents, parents))

    async def _copy_log(self) -> None:
        """Let a thread copy SQLite's log into the file when the ledger has written much (docs/adr/0215)."""
        work = self.hub_services.counts.batches.sum
        if work - self._copied_work >= COPY_LOG_AFTER:
            self._copied_work = work
            self._log_copier.wake()

    async def _run_link_timers(self) -> None:
        self.hub_services.link.check_sockets(time.monotonic())


class SocketDrain:
    """Closes the sockets of a draining process one after the other, so that not all agents reconnect at once.

    Sockets whose turns are over are closed first.
    """

    def __init__(self, link: SocketLink, clock: Clock = time.monotonic) -> None:
        self._link = link
        self._clock = clock
        self._began = clock()
        self._a_second = max(FEW_A_SECOND, len(link.sockets) / SPREAD_S)
        self._sent_away = 0
        self._tasks = TaskSet()

    def send_some_away(self) -> None:
        """Close as many idle sockets as are due by now; after SPREAD_S the others get no prompts of other
        processes.
        """
        for_s = self._clock() - self._began
        self._link.refuses_far_prompts = for_s >= SPREAD_S
        due = 1 + int(for_s * self._a_second) - self._sent_away
        idle = [socket for socket in self._link.sockets if socket.is_idle(self._clock())]
        self._send_away(idle[: max(0, due)])

    def send_all_away(self) -> None:
        """Close all sockets that are left, also those with open turns."""
        self._link.refuses_far_prompts = True
        self._send_away(self._link.sockets)

    async def wait(self) -> None:
        """Wait until all sockets are closed, LEFT_WITHIN_S at most."""
        await self._tasks.wait(LEFT_WITHIN_S)

    def _send_away(self, sockets: list[ServedSocket]) -> None:
        for socket in sockets:
            self._tasks.start(socket.close_from_hub(SERVICE_RESTART, bye="restart"), name="leave")
            self._sent_away += 1


async def every(seconds: float, work: Callable[[], Awaitable[object]], event: str, *, tries: int = 1) -> None:
    """Run a function every so many seconds, each time as `attempt`."""
    loop, due = asyncio.get_running_loop(), PHASE_S
    while True:
        due = next_due(due, seconds, loop.time())
        await asyncio.sleep(due - loop.time())
        await attempt(work, event, tries=tries)


def next_due(due: float, seconds: float, now: float) -> float:
    """The time of the next run of a timer that was due at `due` and ended `now`: a multiple of `seconds` later.

    The timers of a process therefore wake it together. The pause between two runs is at least half of `seconds`.
    """
    return due + seconds * max(1, ceil((now - due) / seconds + 0.5))


async def attempt(work: Callable[[], Awaitable[object]], event: str, *, tries: int = 1) -> None:
    """Run a function once; a failure is logged as `event` and retried at once while there are tries."""
    for number in range(tries):
        try:
            await work()
            break
        except Exception:
            logger.exception(event, extra={"attempt": number})


async def end(step: str, work: Awaitable[object], *, within_s: float = END_STEP_S) -> None:
    """Run one step of the shutdown; a failure is logged and does not stop the next step."""
    try:
        async with asyncio.timeout(within_s):
            await work
    except Exception:
        logger.exception("stop.failed", extra={"step": step})
