"""The requests of callers, the same in all dialects."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from a2a_bridge.wire.task import Message, State
from agents.transcript.pieces import Json, Part

Thumb = Literal["up", "down", "none"]


class PushTarget(Struct, frozen=True, kw_only=True):
    """An address for a task's changes. `scheme`, `credentials`: the parts of a push's Authorization header."""

    url: str
    config_id: str = ""
    token: str = ""
    scheme: str = ""
    credentials: str = ""


class InputNeed(Struct, frozen=True):
    """Content of a message that not every agent takes: a file, or text or data of a media type of its own.

    `where`: what an error calls it.
    """

    where: str
    media_type: str
    is_file: bool


class Send(Struct, frozen=True, kw_only=True):
    """A message. `question`: its text as an agent gets it; `parts`: its parts, where they are more than text.

    `needs`: what its agent must take, by its card; `leaves_out`: files that the agent does not take are left out,
    instead of being refused. `files`: the ids of the files that the hub keeps; `digest`: that of the message as it
    was sent, with the bytes of files. `only_modes`: output modes of which its agent must have one,
    where the caller accepts none that every agent has.

    `question` is empty when there is nothing in it for an agent: then the hub itself says so.
    `waits`: the answer is the task's end, else the task as it begins. `has_agents_time`: the agent has as long as
    its owner allows, although the caller `waits`. `history_length` None: all.
    `resumes`: a message without `task_id` goes on with the task in its context that waits for its caller, if any.
    `approves`: the task it may answer a request for approval of, in a dialect whose messages go on with no task.
    `takes_direct`: an answer without a task shall be a message and leave no task. `plain_is_direct`: so shall any
    plain reply.
    """

    message: Message
    question: str
    parts: tuple[Part, ...] = ()
    needs: tuple[InputNeed, ...] = ()
    leaves_out: bool = False
    files: tuple[int, ...] = ()
    digest: bytes = b""
    only_modes: tuple[str, ...] = ()
    task_id: str = ""
    resumes: bool = False
    approves: str = ""
    context_id: str = ""
    waits: bool = True
    has_agents_time: bool = False
    takes_direct: bool = False
    plain_is_direct: bool = False
    history_length: int | None = None
    output_modes: tuple[str, ...] = ()
    push: PushTarget | None = None
    metadata: Json | UnsetType = UNSET


class GetTask(Struct, frozen=True, kw_only=True):
    """Read a task."""

    task_id: str
    history_length: int | None = None


class ListTasks(Struct, frozen=True, kw_only=True):
    """Read a page of the caller's tasks with this agent. `since`: a timestamp, inclusive."""

    context_id: str = ""
    state: State | None = None
    page_size: int = 50
    page_token: str = ""
    history_length: int | None = None
    since: str = ""
    with_artifacts: bool = False


class CancelTask(Struct, frozen=True, kw_only=True):
    """End a task."""

    task_id: str


class RateTask(Struct, frozen=True, kw_only=True):
    """Give the answer of a task's last turn a thumb, with a note for the agent's owner; `none` takes it away."""

    task_id: str
    rating: Thumb
    note: str = ""


class FollowTask(Struct, frozen=True, kw_only=True):
    """Follow a task."""

    task_id: str


class CreatePush(Struct, frozen=True, kw_only=True):
    """Send a task's changes to this address."""

    task_id: str
    target: PushTarget


class NamePush(Struct, frozen=True, kw_only=True):
    """Read or delete one of a task's push addresses."""

    task_id: str
    config_id: str


class ListPush(Struct, frozen=True, kw_only=True):
    """Read a page of a task's push addresses."""

    task_id: str
    page_size: int = 50
    page_token: str = ""


class ShowCard(Struct, frozen=True):
    """Read the agent's card for callers who are signed in."""


Request = (
    Send | GetTask | ListTasks | CancelTask | RateTask | FollowTask | CreatePush | NamePush | ListPush | ShowCard
)
