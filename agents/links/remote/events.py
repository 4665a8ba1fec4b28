"""The events of a remote server, as A2A 1.0 writes them, and its failures.

Version 0.3 is brought into this form first. The texts of failures are public: they name no address but what the
owner of the server gave.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from agents.models.choices import TurnFailure
from agents.transcript.pieces import ArtifactPiece, Json, Part, find_usage, text_in

MAX_WORDS = 500
PART_BYTES = 12  # of a part besides its text

encode = msgspec.json.Encoder(order="deterministic").encode


class RemoteFailure(Exception):
    """A call without an answer. `counts`: the breaker counts it as a failure of the server."""

    reason = TurnFailure.AGENT_FAILED
    counts = True

    def __init__(self, words: str) -> None:
        super().__init__(words[:MAX_WORDS])


class ServerUnreachable(RemoteFailure):
    """The hub sent the server nothing."""

    reason = TurnFailure.NOT_DELIVERED


class BreakerOpen(ServerUnreachable):
    """The server failed too often, and the hub does not call it for a while."""

    counts = False


class CardRefused(ServerUnreachable):
    """The server's card keeps the hub from asking: the breaker opens, and each trial looks at the card again."""

    counts = False


class ServerMoved(ServerUnreachable):
    """The owner moved or deleted the server while its card was fetched: the card is not that of the new server."""

    counts = False


class NotSigned(ServerUnreachable):
    """The hub cannot sign the caller's name, which it must send to this server."""

    counts = False


class Lost(RemoteFailure):
    """The question was sent, but the connection broke before the answer was complete."""

    reason = TurnFailure.CHANNEL_LOST


class Malformed(RemoteFailure):
    """The server's answer is not A2A."""


class ServerFailing(RemoteFailure):
    """An HTTP status that says that the server is failing: 429 or 5xx."""


class Declined(RemoteFailure):
    """The server works and refuses: another HTTP status, or an error of JSON-RPC."""

    counts = False

    def __init__(self, words: str, code: int = 0) -> None:
        super().__init__(words)
        self.code = code


CONTENTS = ("text", "raw", "url", "data")


class RemoteMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message. `role` tells the agent from the user."""

    parts: tuple[Part, ...]
    role: Any = ""
    task_id: str = ""
    context_id: str = ""
    metadata: Json | UnsetType = UNSET
    extensions: tuple[str, ...] = ()
    message_id: str = ""

    @property
    def is_agents(self) -> bool:
        """True if the agent wrote the message."""
        return str(self.role).lower().endswith("agent")


class RemoteStatus(msgspec.Struct, frozen=True):
    """The state of a task, and a message of its agent."""

    state: str
    message: RemoteMessage | None = None


class RemoteArtifact(msgspec.Struct, frozen=True, rename="camel"):
    """A result, or a piece of one."""

    artifact_id: str
    parts: tuple[Part, ...] = ()
    name: str = ""
    description: str = ""
    metadata: Json | UnsetType = UNSET
    extensions: tuple[str, ...] = ()


class RemoteTask(msgspec.Struct, frozen=True, rename="camel"):
    """A whole task."""

    id: str
    status: RemoteStatus
    context_id: str = ""
    artifacts: tuple[RemoteArtifact, ...] = ()
    history: tuple[RemoteMessage, ...] = ()
    metadata: Any = None


class RemoteStatusUpdate(msgspec.Struct, frozen=True, rename="camel"):
    """A task's status changed."""

    task_id: str
    status: RemoteStatus
    context_id: str = ""
    metadata: Json | UnsetType = UNSET


class RemoteArtifactUpdate(msgspec.Struct, frozen=True, rename="camel"):
    """An artifact came, or grew."""

    task_id: str
    artifact: RemoteArtifact
    context_id: str = ""
    append: bool = False
    last_chunk: bool = False


RemoteEvent = RemoteTask | RemoteMessage | RemoteStatusUpdate | RemoteArtifactUpdate
Read = TypeVar("Read", bound=RemoteEvent)
KINDS: dict[str, type[RemoteEvent]] = {
    "task": RemoteTask,
    "message": RemoteMessage,
    "statusUpdate": RemoteStatusUpdate,
    "artifactUpdate": RemoteArtifactUpdate,
}


def read_event(value: Any) -> RemoteEvent:
    """An event: `{"task": …}`, `{"message": …}`, `{"statusUpdate": …}` or `{"artifactUpdate": …}`.

    Raises:
        Malformed: it is none of them.
    """
    found = [name for name in KINDS if isinstance(value, dict) and name in value]
    if len(found) != 1:
        raise Malformed("the remote agent sent something that is no event of A2A")
    return read(value[found[0]], KINDS[found[0]])


def read(value: Any, kind: type[Read]) -> Read:
    """A value as one kind of event; members that the hub does not know are ignored.

    Raises:
        Malformed: it is not of that kind.
    """
    try:
        event: Read = msgspec.convert(_without_nulls(value), kind)
    except (msgspec.ValidationError, RecursionError):
        name = kind.__name__.removeprefix("Remote")
        raise Malformed(f"the remote agent sent a {name} that is not as A2A writes it") from None
    for part in parts_of(event):
        if sum(getattr(part, name) is not msgspec.UNSET for name in CONTENTS) != 1:
            raise Malformed("the remote agent sent a part without content, or with several")
    return event


def _without_nulls(value: Any) -> Any:
    """The value without members that are null, which some servers write; data and metadata stay as they are."""
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    if not isinstance(value, dict):
        return value
    has_content = any(value.get(name) is not None for name in CONTENTS)
    return {
        name: member if name in ("data", "metadata") else _without_nulls(member)
        for name, member in value.items()
        if member is not None or (name == "data" and not has_content)
    }


def parts_of(event: RemoteEvent) -> list[Part]:
    """The parts of an event."""
    match event:
        case RemoteMessage():
            return list(event.parts)
        case RemoteStatusUpdate():
            return list(event.status.message.parts) if event.status.message else []
        case RemoteArtifactUpdate():
            return list(event.artifact.parts)
        case RemoteTask():
            said = [event.status.message] if event.status.message else []
            parts = [part for artifact in event.artifacts for part in artifact.parts]
            return parts + [part for one in (*said, *(event.history)) for part in one.parts]


def state_of(text: str) -> str:
    """A state in plain words: `input_required` for `TASK_STATE_INPUT_REQUIRED` and for `input-required`."""
    return text.removeprefix("TASK_STATE_").lower().replace("-", "_")


def find_interim_messages(task: RemoteTask, *, holds_artifacts: bool) -> Sequence[RemoteMessage]:
    """The agent's messages after the last question in the history of a task, without the last one, which is the
    reply.
    """
    history, end = task.history, task.status.message
    asked = max((number for number, one in enumerate(history, 1) if not one.is_agents), default=0)
    said = history[asked:]
    is_completed = state_of(task.status.state) == "completed"
    if is_completed and not (task.artifacts or holds_artifacts or (end and end.parts)):
        said = said[:-1]  # the last is the reply
    shown = [*(one.parts for one in task.artifacts), *([end.parts] if end else [])]
    texts = {text_in(parts) for parts in shown}
    return [
        one for one in said if not (end and one.message_id == end.message_id) and text_in(one.parts) not in texts
    ]


def status_metadata_in(metadata: Any) -> Json | UnsetType:
    """The metadata of an event, without the usage, which has a place of its own."""
    said = metadata if isinstance(metadata, dict) else {}
    if find_usage(said) is not None:
        said = {name: value for name, value in said.items() if name != "usage"}
    return said or UNSET


def details_of(artifact: RemoteArtifact) -> tuple[Any, ...]:
    """The members of an artifact other than its parts; metadata last."""
    return (artifact.name, artifact.description, artifact.extensions, artifact.metadata or None)


def written_as(parts: Sequence[Part]) -> bytes:
    """Parts as bytes: the bytes of the first parts are a prefix of the bytes of all."""
    return b"".join(map(encode, parts))


def size_of(parts: Sequence[Part]) -> int:
    """The share of parts in the size of the reply: text as it is, all other values as JSON."""
    texts = [part.text.encode() for part in parts if is_text(part) and isinstance(part.text, str)]
    rest = [part for part in parts if not is_text(part)]
    return sum(map(len, texts)) + PART_BYTES * max(len(texts) - 1, 0) + len(written_as(rest))


class HeldArtifact:
    """An artifact as the server has it, in little memory. `name`: its id at the hub. `waiting`: gathered parts.
    `was_told`: pieces of this turn made the artifact or added to it. `was_repeated`: after these pieces the server
    sent the whole artifact.
    """

    def __init__(self, name: str, artifact: RemoteArtifact) -> None:
        self.name = name
        self.details = details_of(artifact)
        self.written = bytearray()
        self.count = 0
        self.waiting: list[Part] = []
        self.chars_waiting = 0
        self.is_closed = self.was_told = self.was_repeated = False
        self.append(artifact)

    def append(self, artifact: RemoteArtifact) -> None:
        """Add parts and metadata as A2A does: other members stay."""
        *named, metadata = self.details
        self.details = (*named, {**(metadata or {}), **artifact.metadata} if artifact.metadata else metadata)
        self.written += written_as(artifact.parts)
        self.count += len(artifact.parts)

    def equals(self, artifact: RemoteArtifact) -> bool:
        """True if a whole artifact is the same as this one."""
        return self.details == details_of(artifact) and self.written == written_as(artifact.parts)

    def piece(
        self, artifact: RemoteArtifact, *, append: bool = False, last: bool = False, lead: str = ""
    ) -> ArtifactPiece:
        """The piece that is an artifact of the server, or parts appended to one."""
        return ArtifactPiece(
            self.name,
            artifact.parts,
            name=artifact.name,
            description=artifact.description,
            metadata=artifact.metadata,
            append=append,
            last_chunk=last,
            extensions=artifact.extensions,
            lead=lead,
        )


def is_plain(message: RemoteMessage) -> bool:
    """True if a message is text alone."""
    return message.metadata is UNSET and all(map(is_text, message.parts))


def is_text(part: Part) -> bool:
    """True if a part is text alone."""
    return isinstance(part.text, str) and part == Part(text=part.text)
