"""The internal task: what every dialect renders, and what happened to it, event by event.

States, messages and artifacts are those of A2A 1.0, section 4. The names of this module are of no wire.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agents.transcript.pieces import (
    ApprovalAsked,
    Json,
    Part,
    Usage,
    joined_texts,
    plain_text_in,
    show_usage,
    text_in,
)
from kit.clock import approximate_now


class State(StrEnum):
    """Task states; dialects have their own spelling."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    AUTH_REQUIRED = "auth_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"


TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELED, State.REJECTED})
INTERRUPTED = frozenset({State.INPUT_REQUIRED, State.AUTH_REQUIRED})

OPEN = frozenset({State.SUBMITTED, State.WORKING})
SNAPSHOT_EVERY = 64
REPLY = "reply-"


class Role(StrEnum):
    """The sender of a message."""

    USER = "user"
    AGENT = "agent"


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """A message of a task's conversation."""

    id: str
    role: Role
    parts: tuple[Part, ...]
    metadata: Json | UnsetType = UNSET
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()


class Artifact(Struct, frozen=True, gc=False, omit_defaults=True):
    """Something the agent made; `reply-1`, `reply-2` … are the texts of its replies, one a turn.

    `turn`: the turn whose reply its text is, where an agent answers in artifacts of its own; only the parts from
    number `since` on, the ones before are of earlier turns.
    """

    id: str
    parts: tuple[Part, ...]
    name: str = ""
    description: str = ""
    metadata: Json | UnsetType = UNSET
    extensions: tuple[str, ...] = ()
    turn: int = 0
    since: int = 0

    @property
    def is_reply(self) -> bool:
        """True if the hub made the artifact of the chunks of a reply; a remote server may use such an id, too."""
        return self.id.startswith(REPLY) and not self.turn


class StatusEvent(Struct, frozen=True, gc=False, tag="status", omit_defaults=True):
    """The task's state was set, or confirmed with a note. `approvals`: what its open turn waits for.

    `usage`: of the end of a turn, what the turn used. `metadata`: what a remote server says of the state; the task
    takes it over, as the official SDKs do.
    """

    seq: int
    at: str
    state: State
    message: Message | None = None
    approvals: tuple[ApprovalAsked, ...] = ()
    usage: Usage | None = None
    metadata: Json | UnsetType = UNSET


class ArtifactEvent(Struct, frozen=True, gc=False, tag="artifact", omit_defaults=True):
    """An artifact came, or with `append` more of one. `last_chunk`: nothing more of it will come.

    `lead`, `again`: see `agents.transcript.pieces.ArtifactPiece`. `whole`: of an event with which the end of a
    turn closes an artifact, how many parts the artifact has.
    """

    seq: int
    at: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    lead: str | None = None
    whole: int = 0
    again: Artifact | None = None

    @property
    def closes_only(self) -> bool:
        """True if the event only says that nothing more of the artifact will come."""
        return self.append and self.artifact == Artifact(self.artifact.id, ())


TaskEvent = StatusEvent | ArtifactEvent


class Task(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A task: the request of a caller to an agent, over as many turns as it takes.

    `chat_id`, `home`: its last turn, and the process that runs it. `turns`: how many there were. `seq`: of the
    last event in it; 0 as it was made. `message`: what its state says. `updated_at`: when the state was set.
    `text_type`: the media type of what its agent says; empty: plain text.
    `approvals`: it asks its caller for these, and its turn goes on. `usage`: what its last turn used.
    """

    id: str
    caller_id: int
    handle: str
    context_id: str
    chat_id: str
    home: str
    state: State
    updated_at: str
    history: tuple[Message, ...]
    message: Message | None = None
    artifacts: tuple[Artifact, ...] = ()
    metadata: Json | UnsetType = UNSET
    turns: int = 1
    seq: int = 0
    text_type: str = ""
    approvals: tuple[ApprovalAsked, ...] = ()
    usage: Usage | None = None

    @property
    def is_terminal(self) -> bool:
        """True if the task has ended."""
        return self.state in TERMINAL

    @property
    def is_interrupted(self) -> bool:
        """True if the task waits for its caller."""
        return self.state in INTERRUPTED

    @property
    def is_open(self) -> bool:
        """True if the agent works on the task, or is about to."""
        return self.state in OPEN

    @property
    def is_running(self) -> bool:
        """True if the turn goes on: the agent works on the task, or waits for the caller's approval."""
        return self.is_open or bool(self.approvals)

    @property
    def message_id(self) -> str:
        """The beginning of the ids of its agent's messages; in the hub's own dialect it is all of the id."""
        return f"msg-{self.id.removeprefix('task-')}"

    @property
    def reply_id(self) -> str:
        """The artifact that this turn's reply is."""
        return f"{REPLY}{self.turns}"

    @property
    def reply(self) -> Artifact | None:
        """The artifact that the hub made of this turn's chunks, as far as they have come."""
        reply_id = f"{REPLY}{self.turns}"
        for one in self.artifacts:
            if one.id == reply_id and not one.turn:  # a remote server may use such an id, too
                return one
        return None

    @property
    def reply_text(self) -> str:
        """The text of this turn's reply, as far as it has come; see `agents.core.waiting.text_of`."""
        if (reply := self.reply) is not None:
            return text_in(reply.parts)
        words = self.message.parts if self.state is State.COMPLETED and self.message is not None else ()
        return joined_texts(plain_text_in(one.parts[one.since :]) for one in self.made) or text_in(words)

    @property
    def made(self) -> list[Artifact]:
        """The artifacts that are this turn's reply, where an agent answers in artifacts of its own."""
        return [one for one in self.artifacts if one.turn == self.turns]

    @property
    def besides_reply(self) -> list[tuple[Artifact, Part]]:
        """The parts of artifacts that are not in the text of its reply."""
        reply_id, found = f"{REPLY}{self.turns}", []
        for one in self.artifacts:
            if one.id != reply_id or one.turn:
                found += [(one, part) for part in one.parts if not (one.turn and plain_text_in([part]))]
        return found

    def artifact(self, artifact_id: str) -> Artifact | None:
        """The artifact of that id; None if the task has none."""
        for one in self.artifacts:
            if one.id == artifact_id:
                return one
        return None

    @property
    def size_bytes(self) -> int:
        """The approximate bytes of the task in memory."""
        held = (*self.history, *self.artifacts, *((self.message,) if self.message else ()))
        return 800 + (_weight(self.metadata) if self.metadata else 0) + size_of(*held)


def after(task: Task, events: Iterable[TaskEvent]) -> Task:
    """The task after these events; events that it has already change nothing."""
    for event in events:
        if event.seq > task.seq:
            task = _with_status(task, event) if isinstance(event, StatusEvent) else _with_artifact(task, event)
    return task


def snapshot_is_due(events: Iterable[TaskEvent]) -> bool:
    """True if a store should write a snapshot of the task now: readers apply all events after the last one."""
    return any(
        event.seq % SNAPSHOT_EVERY == 0 or (isinstance(event, StatusEvent) and event.state is not State.WORKING)
        for event in events
    )


def metadata_with_usage(metadata: Json | UnsetType, usage: Usage | None) -> Json | UnsetType:
    """Metadata as dialects show it: under `usage` what the turn used, where its agent reported it."""
    return metadata if usage is None else {**(metadata or {}), "usage": show_usage(usage)}


def size_of(*held: Message | Artifact) -> int:
    """The approximate bytes of messages and artifacts in memory."""
    size = 0
    for one in held:
        for part in one.parts:
            if part == Part(text=part.text):  # as nearly all are
                size += 200 + sys.getsizeof(part.text)
            else:
                values = (part.text, part.raw, part.url, part.data, part.filename, part.media_type, part.metadata)
                size += 200 + sum(map(_weight, values))
        if one.metadata or one.extensions:
            size += sum(map(_weight, (one.metadata, *one.extensions)))
        if type(one) is Artifact:
            size += _weight(one.name) + _weight(one.description) if one.name or one.description else 0
        elif type(one) is Message and one.reference_task_ids:
            size += sum(map(_weight, one.reference_task_ids))
    return size


def timestamp() -> str:
    """Now, as A2A writes it: UTC, milliseconds, Z. Later ones sort behind."""
    return f"{approximate_now().isoformat('T', 'milliseconds')[:-6]}Z"  # it is in UTC: no +00:00


def _with_status(task: Task, event: StatusEvent) -> Task:
    """The task with a new state; the message of the state before becomes part of the conversation."""
    history = (*task.history, task.message) if task.message is not None else task.history
    return msgspec.structs.replace(
        task,
        state=event.state,
        message=event.message,
        updated_at=event.at,
        history=history,
        seq=event.seq,
        approvals=event.approvals,
        usage=event.usage,
        metadata={**(task.metadata or {}), **event.metadata} if event.metadata else task.metadata,
    )


def _with_artifact(task: Task, event: ArtifactEvent) -> Task:
    new = event.artifact
    old = task.artifact(new.id)
    if old is None:
        return msgspec.structs.replace(task, artifacts=(*task.artifacts, new), seq=event.seq)
    merged = _merged(old, new) if event.append else new
    artifacts = tuple(merged if one is old else one for one in task.artifacts)
    return msgspec.structs.replace(task, artifacts=artifacts, seq=event.seq)


def _merged(old: Artifact, new: Artifact) -> Artifact:
    """Parts and metadata are added; the rest stays as it was, as the official SDK does it."""
    metadata = old.metadata
    if isinstance(new.metadata, dict):
        metadata = {**(old.metadata or {}), **new.metadata}
    since = old.since if new.turn in (0, old.turn) else len(old.parts)
    return msgspec.structs.replace(
        old, parts=(*old.parts, *new.parts), metadata=metadata, turn=new.turn or old.turn, since=since
    )


def _weight(value: object) -> int:
    """The approximate bytes of a JSON value in memory: lists and objects weigh the most, also small ones."""
    if value is UNSET or value == "":
        return 0
    if isinstance(value, str):
        return sys.getsizeof(value)
    written = msgspec.json.encode(value)
    lists_and_items = written.count(b"[") + written.count(b",")
    return 2 * len(written) + 64 * lists_and_items + 200 * written.count(b"{")


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A page of tasks; `total`: how many there are on all pages. `is_last`: no page follows."""

    tasks: Sequence[Task]
    total: int
    is_last: bool
