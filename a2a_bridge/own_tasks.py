"""Tasks of whoever calls: found, and followed again after a break. Everybody else's do not exist."""

from a2a_bridge.calls import Call, Outcome, Services, Told
from a2a_bridge.errors import task_not_found
from a2a_bridge.streams import Streaming
from a2a_bridge.tasks.record import Task

MAX_TASK_ID_CHARS = 64


async def find(services: Services, call: Call, task_id: str) -> Task:
    """A task of the caller's with this agent; the same error for absent, expired and foreign."""
    if not task_id or len(task_id) > MAX_TASK_ID_CHARS or not task_id.isprintable():
        raise task_not_found()
    task = await services.reader.find(task_id, call.caller.identity.user_id)
    if task is None or task.handle != call.caller.agent.handle:
        raise task_not_found()
    return task


async def again(services: Services, call: Call, streaming: Streaming, task_id: str = "") -> Outcome:
    """Attach a client that lost its stream; nothing is asked again."""
    seen_id, _, number = call.seen.rpartition(".")
    if not number.isdecimal() or len(number) > 9 or task_id not in ("", seen_id):
        raise task_not_found()
    task, seq = await find(services, call, seen_id), int(number)
    feed = await services.reader.follow(task)
    missed = feed.since(seq) if seq <= feed.task.seq else None
    if missed is None:
        missed = await services.tasks.events_after(task, seq)
    return Told(streaming.again(feed, missed, seq))
