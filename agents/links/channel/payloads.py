"""Payloads of chat events: replies and chunks, task states, artifacts."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct

from agents.models.choices import Interruption, TurnFailure
from agents.transcript.pieces import ArtifactPiece, Json, Part, ReportedUsage, StatusNote
from clawbridge.checks import MAX_URL_CHARS, is_base64, is_web_url
from kit import strict_json
from kit.strict_json import UnreadableText

MAX_NAME_CHARS = 1024
Name = Annotated[str, Meta(max_length=MAX_NAME_CHARS)]
Id = Annotated[str, Meta(min_length=1, max_length=128)]
MAX_TEXT_BYTES = 16_384
MAX_PARTS = 100
OWN_PREFIX = "reply-"  # the hub's own artifacts, see docs/reference/frames.md
ARTIFACT_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

State = Literal["working", "input_required", "auth_required", "completed", "failed", "rejected"]
REASONS: dict[str, str] = {
    "input_required": Interruption.INPUT_REQUIRED,
    "auth_required": Interruption.AUTH_REQUIRED,
    "completed": "",
    "failed": TurnFailure.AGENT_FAILED,
    "rejected": TurnFailure.REJECTED,
}
STATES_WITH_TEXT = frozenset({"working", "input_required", "auth_required"})
KEPT_STATES = frozenset({"working", "failed", "rejected"})  # the text of other states is stored as the reply


class Reply(Struct, frozen=True, rename="camel"):
    """Payload of a whole reply. `direct`: no more than an answer, for callers who take one without a task.

    `usage`: what the turn used; of several frames of a reply the last one that says it stands.
    """

    chat_id: Id
    text: str
    direct: bool = False
    usage: ReportedUsage | None = None


class ReplyChunk(Struct, frozen=True, rename="camel"):
    """Payload of a piece of a reply; the last one is `done`."""

    chat_id: Id
    text: str
    done: bool = False
    usage: ReportedUsage | None = None


class TaskStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Payload of a status. `working` is a note; any other state ends the reply, and `text` says what to do or why.

    `metadata` goes with a note.
    """

    chat_id: Id
    state: State
    text: str = ""
    metadata: Json | msgspec.UnsetType = UNSET
    usage: ReportedUsage | None = None

    @property
    def is_note(self) -> bool:
        """True if the reply goes on."""
        return self.state == "working"

    @property
    def reason(self) -> str:
        """The reason that a turn gets if this state ends its reply."""
        return str(REASONS[self.state])

    @property
    def piece(self) -> StatusNote:
        """The note as part of the reply."""
        return StatusNote(self.text, self.metadata)


class TaskArtifact(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Payload of an artifact. `append`: more parts for one of the same reply; `last_chunk`: nothing follows."""

    chat_id: Id
    artifact_id: Annotated[str, Meta(min_length=1, max_length=64, pattern="^[A-Za-z0-9._-]+$")]
    parts: Annotated[tuple[Part, ...], Meta(min_length=1, max_length=MAX_PARTS)]
    name: Name = ""
    description: Annotated[str, Meta(max_length=4096)] = ""
    metadata: Json | msgspec.UnsetType = UNSET
    append: bool = False
    last_chunk: bool = False

    @property
    def piece(self) -> ArtifactPiece:
        """The artifact as part of the reply."""
        return ArtifactPiece(
            artifact_id=self.artifact_id,
            parts=self.parts,
            name=self.name,
            description=self.description,
            metadata=self.metadata,
            append=self.append,
            last_chunk=self.last_chunk,
        )


class _PlainPayload(Struct, frozen=True, rename="camel"):
    """Payload of a reply or a chunk, with the members that the agent wrote."""

    chat_id: Id
    text: str
    direct: bool | msgspec.UnsetType = UNSET
    done: bool | msgspec.UnsetType = UNSET
    usage: ReportedUsage | msgspec.UnsetType | None = UNSET


class _PlainReply(Struct, frozen=True, rename="camel"):
    """The frame of a reply or a chunk, with the members that the agent wrote."""

    type: Literal["chat_event"]
    event_type: Literal["reply", "reply_chunk"]
    payload: _PlainPayload
    ts: str | msgspec.UnsetType | None = UNSET


_plain = msgspec.json.Decoder(_PlainReply).decode
_encode = msgspec.json.Encoder().encode


def read_plain_reply(text: bytes) -> Reply | ReplyChunk | None:
    """Read a frame with a reply, or a chunk of one, in one step; None for a frame that has anything else."""
    if b"\\u" in text:  # an escaped colon would hide a second key; see `strict_json.read`
        return None
    try:
        frame = _plain(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    # Each member that was read is written again. The text has more colons if it has other members, or one twice.
    if _encode(frame).count(b":") != text.count(b":"):
        return None
    reply = frame.payload
    usage = reply.usage or None
    if frame.event_type == "reply":
        return Reply(reply.chat_id, reply.text, reply.direct is True, usage)
    return ReplyChunk(reply.chat_id, reply.text, reply.done is True, usage)


_status = msgspec.json.Decoder(TaskStatus).decode
_artifact = msgspec.json.Decoder(TaskArtifact).decode


def read_status(payload: msgspec.Raw) -> TaskStatus:
    """Check a status; returns it.

    Raises:
        ValueError: it is none; the text says why.
    """
    status = _status(_checked(payload))
    if status.state in STATES_WITH_TEXT and not status.text.strip():
        raise ValueError(f"text: {status.state} wants words")
    if status.state != "completed" and len(status.text.encode()) > MAX_TEXT_BYTES:
        raise ValueError(f"text: at most {MAX_TEXT_BYTES} bytes with {status.state}")
    return status


def read_artifact(payload: msgspec.Raw) -> TaskArtifact:
    """Check an artifact; returns it.

    Raises:
        ValueError: it is none; the text says why.
    """
    artifact = _artifact(_checked(payload))
    if not ARTIFACT_ID.fullmatch(artifact.artifact_id) or artifact.artifact_id.startswith(OWN_PREFIX):
        raise ValueError(f"artifactId: want 1 to 64 of A-Z a-z 0-9 . _ - not beginning with {OWN_PREFIX}")
    for number, part in enumerate(artifact.parts):
        if flaw := _flaw(part):
            raise ValueError(f"parts[{number}]: {flaw}")
    return artifact


def kept_of(said: TaskStatus | TaskArtifact) -> str | None:
    """The payload for the event in the transcript, without bytes of files; None if the text of the reply has it
    all.
    """
    if isinstance(said, TaskArtifact):
        said = msgspec.structs.replace(said, parts=tuple(_without_bytes(part) for part in said.parts))
    elif said.state not in KEPT_STATES:
        return None
    elif said.usage is not None:
        said = msgspec.structs.replace(said, usage=None)
    return msgspec.json.encode(said).decode()


def size_of_json(value: Any) -> int:
    """Bytes of a value as JSON."""
    return len(msgspec.json.encode(value))


def _without_bytes(part: Part) -> Part:
    return part if part.raw is UNSET else msgspec.structs.replace(part, raw="")


def _checked(payload: msgspec.Raw) -> bytes:
    """Check that the payload is JSON that every reader accepts; returns its bytes."""
    raw = bytes(payload)
    try:
        strict_json.read(raw)
    except UnreadableText as unsound:
        raise ValueError(str(unsound)) from None
    return raw


def _flaw(part: Part) -> str:
    """The reason why the part is refused; empty for a sound part."""
    kinds = [one for one in (part.text, part.raw, part.url, part.data) if one is not UNSET]
    if len(kinds) != 1:
        return "want exactly one of text, raw, url and data"
    if max(len(part.media_type), len(part.filename)) > MAX_NAME_CHARS:
        return f"mediaType and filename hold at most {MAX_NAME_CHARS} characters"
    if isinstance(part.raw, str) and not is_base64(part.raw):
        return "raw: not standard base64"
    if isinstance(part.url, str) and not is_web_url(part.url):
        return f"url: want an absolute http or https address of at most {MAX_URL_CHARS} characters"
    return ""


ReplyFrame = Reply | ReplyChunk | TaskStatus | TaskArtifact
DECODE_REPLY: dict[str, Callable[[msgspec.Raw], ReplyFrame]] = {
    "reply": msgspec.json.Decoder(Reply).decode,
    "reply_chunk": msgspec.json.Decoder(ReplyChunk).decode,
    "task_status": read_status,
    "task_artifact": read_artifact,
}
