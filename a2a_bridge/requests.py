"""What callers want, whichever dialect they said it in."""

from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from a2a_bridge.tasks.record import Message, State
from agents.pieces import Json, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTarget:
    """Where to tell a task's changes. `scheme`, `credentials`: what the Authorization header shall hold."""

    url: str
    config_id: str = ""
    token: str = ""
    scheme: str = ""
    credentials: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A message. `question`: its text as an agent gets it; `parts`: its parts, where they are more than text.

    `question` is empty when there is nothing in it for an agent: then the hub itself says so.
    `waits`: the answer is the task's end, else the task as it begins. `history_length` None: all.
    `approves`: the task it may answer a request for approval of, in a dialect whose messages go on with no task.
    `takes_direct`: an answer without a task shall be a message and leave no task. `plain_is_direct`: so shall any
    plain reply.
    """

    message: Message
    question: str
    parts: tuple[Part, ...] = ()
    task_id: str = ""
    approves: str = ""
    context_id: str = ""
    waits: bool = True
    takes_direct: bool = False
    plain_is_direct: bool = False
    history_length: int | None = None
    output_modes: tuple[str, ...] = ()
    push: PushTarget | None = None
    metadata: Json | UnsetType = UNSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Get:
    """One task."""

    task_id: str
    history_length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    """A page of the caller's tasks with this agent. `since`: a timestamp, inclusive."""

    context_id: str = ""
    state: State | None = None
    page_size: int = 50
    page_token: str = ""
    history_length: int | None = None
    since: str = ""
    with_artifacts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """End a task."""

    task_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe:
    """Follow a task."""

    task_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePush:
    """Tell a task's changes to this address."""

    task_id: str
    target: PushTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class NamePush:
    """One of a task's push addresses."""

    task_id: str
    config_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPush:
    """A task's push addresses."""

    task_id: str
    page_size: int = 50
    page_token: str = ""


@dataclass(frozen=True, slots=True)
class ShowCard:
    """The agent's card for who is signed in."""


Request = Send | Get | List | Cancel | Subscribe | CreatePush | NamePush | ListPush | ShowCard
