"""The shapes that the client reads and sends: A2A 1.0 as HTTP+JSON, lists of `/api/v1`, and files of tasks."""

import base64
import binascii
import mimetypes
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Generic, Literal, TypeVar

import msgspec

ENDED = frozenset({"COMPLETED", "FAILED", "REJECTED", "CANCELED"})
WAITING = frozenset({"INPUT_REQUIRED", "AUTH_REQUIRED"})
QuestionState = Literal[  # of `/api/v1/questions`
    "queued",
    "open",
    "input_required",
    "auth_required",
    "completed",
    "rejected",
    "canceled",
    "failed",
    "denied",
]
STATE_PREFIX = "TASK_STATE_"


class WireStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """JSON of A2A 1.0; unknown members are ignored, and members with their default are left out."""


class Part(WireStruct, frozen=True):
    """A piece of a message or an artifact: one of `text`, `data` (any JSON), `raw` (in base64) and `url`."""

    text: str | None = None
    data: Any = msgspec.UNSET
    raw: str | None = None
    url: str | None = None
    filename: str = ""
    media_type: str = ""

    @property
    def content(self) -> bytes:
        """The bytes of `raw`; none where it is no base64."""
        try:
            return base64.b64decode(self.raw or "")
        except (binascii.Error, ValueError):
            return b""


class UploadedFile(WireStruct, frozen=True):
    """A file that the hub keeps for a question. `url`: what a part of the question names it by."""

    url: str
    filename: str
    mime: str


class Message(WireStruct, frozen=True):
    """A message of an agent."""

    parts: list[Part] = []

    @property
    def text(self) -> str:
        """The texts of the message, joined by newlines."""
        return "\n".join(part.text for part in self.parts if part.text)


class Status(WireStruct, frozen=True):
    """The state of a task. `message`: why, or what the agent asks."""

    state: str
    message: Message | None = None

    @property
    def name(self) -> str:
        """The state without its prefix, such as `COMPLETED`."""
        return self.state.removeprefix(STATE_PREFIX)

    @property
    def has_ended(self) -> bool:
        return self.name in ENDED

    @property
    def is_settled(self) -> bool:
        """True if the agent is done for now: the task has ended, or waits for the caller."""
        return self.has_ended or self.name in WAITING

    @property
    def text(self) -> str:
        return self.message.text if self.message else ""


class Artifact(WireStruct, frozen=True):
    """A named result of a task."""

    artifact_id: str
    name: str = ""
    parts: list[Part] = []

    @property
    def text(self) -> str:
        """The texts of the artifact, joined: they are pieces of one."""
        return "".join(part.text for part in self.parts if part.text)


class Task(WireStruct, frozen=True):
    """A task of the caller's."""

    id: str
    status: Status
    context_id: str = ""
    artifacts: list[Artifact] = []

    @property
    def text(self) -> str:
        """The texts of its artifacts, one below the other, else of its status, such as what the agent asks."""
        return "\n".join(one.text for one in self.artifacts if one.text) or self.status.text


class TaskStatusUpdate(WireStruct, frozen=True):
    """The task's new state."""

    task_id: str
    status: Status
    context_id: str = ""


class TaskArtifactUpdate(WireStruct, frozen=True):
    """The next piece of the answer; with `last_chunk` and without `append`, all of an artifact once more."""

    task_id: str
    artifact: Artifact
    context_id: str = ""
    append: bool = False
    last_chunk: bool = False


class TaskStreamEvent(WireStruct, frozen=True):
    """An event of a stream: exactly one member is set."""

    task: Task | None = None
    status_update: TaskStatusUpdate | None = None
    artifact_update: TaskArtifactUpdate | None = None
    message: Message | None = None


class Skill(WireStruct, frozen=True):
    """The media types that a skill adds."""

    input_modes: list[str] = []


class CardInputModes(WireStruct, frozen=True):
    """The media types that an agent takes, by its card."""

    default_input_modes: list[str] = []
    skills: list[Skill] = []

    @property
    def input_modes(self) -> list[str]:
        """The media types of the agent and of its skills."""
        of_skills = [mode for skill in self.skills for mode in skill.input_modes]
        return list(dict.fromkeys([*self.default_input_modes, *of_skills]))


class AgentEntry(msgspec.Struct, frozen=True):
    """The columns of an agent in a list."""

    handle: str
    name: str
    tagline: str
    online: bool


class AgentPage(msgspec.Struct, frozen=True):
    """`GET /api/v1/agents`."""

    items: list[AgentEntry]
    total: int


class QuestionEntry(msgspec.Struct, frozen=True, rename="camel"):
    """The columns of a question in a list. `task_id`: None where the hub refused it."""

    asked_at: datetime
    state: str
    agent: str
    task_id: str | None
    question: str


class QuestionPage(msgspec.Struct, frozen=True):
    """`GET /api/v1/questions`, newest first. `next`: where the next page begins."""

    items: list[QuestionEntry]
    next: str | None


class ShareEntry(msgspec.Struct, frozen=True, rename="camel"):
    """An answer that the caller shares. `url`: None of a link after the answer that made it."""

    id: int
    agent: str
    title: str
    audience: str
    login: str | None
    url: str | None
    expires_at: datetime
    is_shown: bool


class ReceivedShare(msgspec.Struct, frozen=True, rename="camel"):
    """An answer that another user shows the caller."""

    id: int
    shared_by: str
    agent: str
    title: str
    expires_at: datetime


Entry = TypeVar("Entry")


class SharePage(msgspec.Struct, Generic[Entry], frozen=True):
    """`GET /api/v1/shares` and `/api/v1/shares/received`, newest first."""

    items: list[Entry]
    total: int


class SharedAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A shared answer, with the beginning of its question."""

    shared_by: str
    agent: str
    title: str
    tasks: list[Task]


class AskStep(msgspec.Struct, frozen=True, rename="camel"):
    """A step of an ask. `ended_at`: None while the step goes on."""

    name: str
    detail: str
    began_at: datetime
    ended_at: datetime | None
    level: int


class AskedOnce(msgspec.Struct, frozen=True, rename="camel"):
    """The columns of `GET /api/v1/questions/{id}` that the command shows."""

    agent: str
    asked_at: datetime
    state: str
    why: str | None
    url: str
    curl: str | None
    steps: list[AskStep]


class ThreadEntry(msgspec.Struct, frozen=True, rename="camel"):
    """The columns of a thread in a list."""

    id: str
    title: str
    agent: str
    context_id: str
    last_asked_at: datetime
    archived: bool
    questions: int


class ThreadPage(msgspec.Struct, frozen=True):
    """`GET /api/v1/threads`, the one asked last first."""

    items: list[ThreadEntry]
    total: int


MAX_NAME_BYTES = 200  # bytes of a name, of the 255 that file systems allow
MAX_SUFFIX_CHARS = 16
NOT_IN_NAMES = '<>:"|?*'  # characters that Windows does not allow in names
DEVICES = {"con", "prn", "aux", "nul", *(f"{kind}{number}" for kind in ("com", "lpt") for number in range(1, 10))}
SUFFIXES = {"text/plain": ".txt", "text/markdown": ".md", "application/json": ".json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFile:
    """A file of a task. `content`: None for a file elsewhere, at `url`; `name`: safe, and unique in the task."""

    artifact_id: str
    name: str
    media_type: str
    content: bytes | None = None
    url: str = ""


def files_of(artifacts: Iterable[Artifact]) -> list[ArtifactFile]:
    """The files of a task: one for each part, but texts that follow each other in an artifact are one."""
    found: list[ArtifactFile] = []
    for artifact in artifacts:
        last: Part | None = None
        for part in artifact.parts:
            file = file_of(artifact, part)
            is_more = last is not None and None not in (last.text, part.text)
            if last and is_more and (last.filename, last.media_type) == (part.filename, part.media_type):
                earlier = found.pop()
                file = replace(earlier, content=(earlier.content or b"") + (file.content or b""))
            found.append(file)
            last = part
    return with_different_names(found)


def file_of(artifact: Artifact, part: Part) -> ArtifactFile:
    """The file of one part."""
    media_type = part.media_type
    content = None if part.url is not None else part.content
    if part.text is not None:
        media_type, content = media_type or "text/plain", part.text.encode(errors="replace")
    elif part.data is not msgspec.UNSET:
        media_type = media_type or "application/json"
        content = msgspec.json.format(msgspec.json.encode(part.data)) + b"\n"
    name = safe_name(part.filename)
    if not name:
        main = media_type.partition(";")[0].strip().lower()
        suffix = SUFFIXES.get(main) or mimetypes.guess_extension(main) or ".bin"
        name = safe_name(artifact.name or artifact.artifact_id) or "artifact"
        name = name if name.lower().endswith(suffix) else safe_name(name + suffix)
    return ArtifactFile(
        artifact_id=artifact.artifact_id,
        name=name,
        media_type=media_type or "application/octet-stream",
        content=content,
        url=part.url or "",
    )


def safe_name(text: str) -> str:
    """An untrusted name as a safe file name; empty if nothing remains."""
    last = text.replace("\\", "/").rpartition("/")[2]
    letters = (
        "_" if letter in NOT_IN_NAMES or unicodedata.category(letter).startswith("C") else letter
        for letter in unicodedata.normalize("NFC", last)
    )
    name = "".join(letters).strip(" .")
    if name.partition(".")[0].strip().lower() in DEVICES:
        name = f"_{name}"
    suffix = PurePosixPath(name).suffix
    suffix = suffix if len(suffix) <= MAX_SUFFIX_CHARS else ""
    stem = name.removesuffix(suffix).encode()[: MAX_NAME_BYTES - len(suffix.encode())]
    return stem.decode(errors="ignore") + suffix


def with_different_names(files: Sequence[ArtifactFile]) -> list[ArtifactFile]:
    """The files; a name that comes again, in any case of its letters, gets a number."""
    taken: set[str] = set()
    named = []
    for file in files:
        path, name, number = PurePosixPath(file.name), file.name, 1
        while name.casefold() in taken:
            number += 1
            name = f"{path.stem}-{number}{path.suffix}"
        taken.add(name.casefold())
        named.append(replace(file, name=name))
    return named
