"""The services that operations use, and the look-up of tasks."""

from collections.abc import Callable

import msgspec

from a2a_bridge.service.calls import Call, Outcome, StreamedAnswer
from a2a_bridge.service.exchange import Exchanges
from a2a_bridge.service.pushes import Pushes
from a2a_bridge.service.streams import TaskStreams
from a2a_bridge.service.tasks.feed import Feeds
from a2a_bridge.service.tasks.reader import TaskReader
from a2a_bridge.service.tasks.store import StoresById
from a2a_bridge.wire.errors import task_not_found
from a2a_bridge.wire.task import Task
from agents.core.dispatch import Dispatcher
from agents.core.post import Post
from agents.transcript.pieces import Json

MAX_TASK_ID_CHARS = 64


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The services of operations. `extended_card`: of an agent for a user, by their ids; reads the database."""

    exchanges: Exchanges
    reader: TaskReader
    tasks: StoresById
    feeds: Feeds
    pushes: Pushes
    dispatcher: Dispatcher
    post: Post
    extended_card: Callable[[int, int], Json | None]


async def find(services: Services, call: Call, task_id: str) -> Task:
    """A task of the caller's with this agent; the same error for absent, expired and foreign."""
    task = await find_of_caller(services, task_id, call.caller.identity.user_id)
    if task.handle != call.caller.agent.handle:
        raise task_not_found()
    return task


async def find_of_caller(services: Services, task_id: str, caller_id: int) -> Task:
    """A task of the caller's with any agent; the same error for absent, expired and foreign."""
    if not task_id or len(task_id) > MAX_TASK_ID_CHARS or not task_id.isprintable():
        raise task_not_found()
    task = await services.reader.find(task_id, caller_id)
    if task is None:
        raise task_not_found()
    return task


async def again(services: Services, call: Call, streaming: TaskStreams, task_id: str = "") -> Outcome:
    """Attach a client that lost its stream; nothing is asked again."""
    seen_id, _, number = call.seen.rpartition(".")
    if not number.isdecimal() or len(number) > 9 or task_id not in ("", seen_id):
        raise task_not_found()
    task, seq = await find(services, call, seen_id), int(number)
    feed = await services.reader.follow(task)
    missed = feed.since(seq) if seq <= feed.task.seq else None
    if missed is None:
        missed = await services.tasks.of(task.id).events_after(task, seq)
    return StreamedAnswer(streaming.again(feed, missed, seq))
