"""A task as it is written down, and as it is read again, whichever release wrote it.

Version 1 was a question and its answer; version 2 is `Task`, and the events after it. A task that is read has the
present version; the store writes that version with the next change of the task.
"""

import logging
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from a2a_bridge.service.tasks.pieces import agent_message
from a2a_bridge.wire.task import Artifact, Message, Role, State, Task, TaskEvent, after
from agents.core.errors import Unavailable
from agents.transcript.pieces import Part

logger = logging.getLogger(__name__)

VERSION = 2

Written = bytes | str


class TaskV1(Struct, frozen=True, kw_only=True):
    """A task of the release before. `text`: the reply when completed, the reason when failed."""

    id: str
    caller_id: int
    handle: str
    chat_id: str
    message_id: str
    question: tuple[str, ...]
    state: State
    updated_at: str
    text: str = ""


encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Task).decode
_decode_v1 = msgspec.json.Decoder(TaskV1).decode
_decode_event = msgspec.json.Decoder(TaskEvent).decode


def read_task(task_id: str, version: int, snapshot: Written, later: Sequence[Written]) -> Task | None:
    """The task that a snapshot and the events after it make; if the task cannot be read, the function logs a line
    and returns None.

    Raises:
        Unavailable: a later release wrote it.
    """
    if version > VERSION:
        raise written_by_a_later_release(task_id)
    try:
        task = _upgraded(_decode_v1(snapshot)) if version < VERSION else _decode(snapshot)
        return after(task, read_events(later))
    except (msgspec.DecodeError, RecursionError) as failure:
        logger.error("task.unreadable", extra={"task_id": task_id, "failure": type(failure).__name__})
        return None


def read_events(written: Sequence[Written]) -> list[TaskEvent]:
    """Events, as they were written.

    Raises:
        msgspec.DecodeError: one of them is not one.
    """
    return [_decode_event(one) for one in written]


def written_by_a_later_release(task_id: str) -> Unavailable:
    """The exception for a task in a form that this release does not know, and must not change."""
    logger.error("task.of_a_later_release", extra={"task_id": task_id, "knows_version": VERSION})
    return Unavailable("a later release of this hub wrote the task")


def _upgraded(old: TaskV1) -> Task:
    """The context of the task had the name of its message; none of its events are known."""
    said = Message(old.message_id, Role.USER, tuple(Part(text=text) for text in old.question))
    task = Task(
        id=old.id,
        caller_id=old.caller_id,
        handle=old.handle,
        context_id=old.message_id,
        chat_id=old.chat_id,
        home="",
        state=old.state,
        updated_at=old.updated_at,
        history=(said,),
    )
    if not old.text:
        return task
    if old.state is State.COMPLETED:
        return msgspec.structs.replace(task, artifacts=(Artifact(task.reply_id, (Part(text=old.text),)),))
    return msgspec.structs.replace(task, message=agent_message(task, 0, old.text))
