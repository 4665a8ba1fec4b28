"""What A2A 1.0 answers, for the public description; its parameters are in `a2a_bridge.dialects.v1.params`."""

from typing import Any, Literal, NotRequired, TypedDict

from kit.describe import Family, Time

Json = dict[str, Any]
StateName = Literal[
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_AUTH_REQUIRED",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_REJECTED",
]


class ShownPart(TypedDict):
    """Content of exactly one kind: text, raw (base64), url or data."""

    text: NotRequired[str]
    raw: NotRequired[str]
    url: NotRequired[str]
    data: NotRequired[Any]
    mediaType: NotRequired[str]
    filename: NotRequired[str]
    metadata: NotRequired[Json]


class Message(TypedDict):
    """What was said."""

    messageId: str
    role: Literal["ROLE_USER", "ROLE_AGENT"]
    parts: list[ShownPart]
    contextId: NotRequired[str]
    taskId: NotRequired[str]
    metadata: NotRequired[Json]
    extensions: NotRequired[list[str]]
    referenceTaskIds: NotRequired[list[str]]


class Status(TypedDict):
    """Where a task stands; `message` says what it asks for, or why it failed."""

    state: StateName
    timestamp: Time
    message: NotRequired[Message]


class Artifact(TypedDict):
    """What a task made; text that comes without an artifact is `reply-n` in the n-th turn."""

    artifactId: str
    parts: list[ShownPart]
    name: NotRequired[str]
    description: NotRequired[str]
    metadata: NotRequired[Json]
    extensions: NotRequired[list[str]]


class Task(TypedDict):
    """A question and what became of it."""

    id: str
    contextId: str
    status: Status
    artifacts: NotRequired[list[Artifact]]
    history: NotRequired[list[Message]]
    metadata: NotRequired[Json]


class Sent(TypedDict):
    """The task of a message."""

    task: Task


class TaskPage(TypedDict):
    """Tasks, those that changed last first; `nextPageToken` is empty on the last page."""

    tasks: list[Task]
    nextPageToken: str
    pageSize: int
    totalSize: int


class StatusUpdate(TypedDict):
    """A task's state changed, or the agent said how far it is."""

    taskId: str
    contextId: str
    status: Status
    metadata: NotRequired[Json]


class ArtifactUpdate(TypedDict):
    """An artifact is new, or with `append` grew; `lastChunk` closes it."""

    taskId: str
    contextId: str
    artifact: Artifact
    append: NotRequired[bool]
    lastChunk: NotRequired[bool]
    metadata: NotRequired[Json]


class StreamEvent(TypedDict):
    """One event of a stream: exactly one of these."""

    task: NotRequired[Task]
    statusUpdate: NotRequired[StatusUpdate]
    artifactUpdate: NotRequired[ArtifactUpdate]


class PushAuthentication(TypedDict):
    """What the Authorization header of a push begins with, and holds."""

    scheme: str
    credentials: NotRequired[str]


class KeptPush(TypedDict):
    """Where a task's changes are told."""

    taskId: str
    id: str
    url: str
    token: NotRequired[str]
    authentication: NotRequired[PushAuthentication]


class PushPage(TypedDict):
    """Push addresses of one task."""

    configs: list[KeptPush]
    nextPageToken: str


class Interface(TypedDict):
    """One way to call an agent."""

    url: str
    protocolBinding: str
    protocolVersion: str


class Card(TypedDict):
    """An AgentCard; these members and those of the specification."""

    name: str
    description: str
    version: str
    supportedInterfaces: list[Interface]
    capabilities: Json
    skills: list[Json]


class Nothing(TypedDict):
    """It is done."""


def of_v1(shape: Any) -> Family:
    """A shape of A2A 1.0."""
    return Family("V1.", shape, "A2A 1.0")
