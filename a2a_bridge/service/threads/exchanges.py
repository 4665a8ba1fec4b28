"""A question with its answer, as pages, files and searches show it. Pure functions over a task."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec import UNSET

from a2a_bridge.wire.task import INTERRUPTED, TERMINAL, Artifact, Message, Role, State, Task
from agents.transcript.callers_files import find_id
from agents.transcript.pieces import Part, joined_texts, plain_text_in, text_in

BASE64_BYTES = 4, 3  # so many characters hold so many bytes


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a question or an answer, without its content. `url`: of one that the message only names."""

    name: str
    media_type: str
    size_bytes: int | None = None
    url: str = ""

    @property
    def kept_id(self) -> int | None:
        """The id of the file, if the hub keeps it for the caller."""
        return find_id(self.url)


@dataclass(frozen=True, slots=True)
class Said:
    """Words of the caller or the agent. The agent's text is Markdown. `is_cut`: the text is only the beginning."""

    is_caller: bool
    text: str
    files: Sequence[SentFile] = ()
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One task of a thread: its question, what agent and caller said in between, and the answer.

    `chat_id`: of its last turn. `notes`: what the agent said while it worked. `reason`: why there is no answer.
    """

    task_id: str
    chat_id: str
    state: State
    asked_at: datetime
    said: Sequence[Said]
    ended_at: datetime
    notes: Sequence[str] = field(default=())
    reason: str = ""

    @property
    def has_ended(self) -> bool:
        """True if the task has ended: not if its agent works, or waits for its caller."""
        return self.state in TERMINAL

    @property
    def waits(self) -> bool:
        """True if the agent waits for its caller."""
        return self.state in INTERRUPTED

    @property
    def size_chars(self) -> int:
        """The characters of its texts."""
        return sum(len(one.text) for one in self.said) + sum(map(len, self.notes)) + len(self.reason)

    @property
    def question(self) -> str:
        """The texts of the caller."""
        return joined_texts(one.text for one in self.said if one.is_caller)

    @property
    def answer(self) -> str:
        """The texts of the agent; if there is none, why."""
        return joined_texts(one.text for one in self.said if not one.is_caller) or self.reason


def read_exchange(task: Task, asked_at: datetime) -> Exchange:
    """The exchange of a task."""
    said: list[Said] = []
    notes: list[str] = []
    turn = 0
    for message, following in zip(task.history, (*task.history[1:], None), strict=True):
        verdict = _verdict_of(message)
        if message.role is Role.USER and verdict:
            notes.append(f"You: {verdict}")
        elif message.role is Role.USER:
            turn += 1
            said.append(Said(True, plain_text_in(message.parts), _files_in(message.parts)))
        elif following is not None and following.role is Role.USER and not _verdict_of(following):
            said += _of_agent(task, turn, message)
        elif text := text_in(message.parts):
            notes.append(text)
    is_end = task.is_terminal or task.is_interrupted
    words = task.message if is_end else None
    has_failed = task.state in (State.FAILED, State.CANCELED, State.REJECTED)
    said += _of_agent(task, task.turns, None if has_failed else words)
    made = [one for one in task.artifacts if not one.is_reply]
    said += [one for artifact in made if (one := _of_artifact(artifact)) is not None]
    return Exchange(
        task_id=task.id,
        chat_id=task.chat_id,
        state=task.state,
        asked_at=asked_at,
        said=said,
        ended_at=datetime.fromisoformat(task.updated_at),
        notes=notes,
        reason=text_in(words.parts) if words is not None and has_failed else "",
    )


def _of_agent(task: Task, turn: int, words: Message | None) -> Iterator[Said]:
    """The reply that the hub made of a turn's chunks, and the agent's message at the end of the turn."""
    reply = next((one for one in task.artifacts if one.is_reply and one.id == f"reply-{turn}"), None)
    for parts in (reply.parts if reply else (), words.parts if words else ()):
        if parts:
            yield Said(False, plain_text_in(parts), _files_in(parts))


def _of_artifact(artifact: Artifact) -> Said | None:
    text, files = plain_text_in(artifact.parts), _files_in(artifact.parts, artifact.name)
    return Said(False, text, files) if text or files else None


def _verdict_of(message: Message) -> str:
    """The decision of the caller on a permission request, if the message is one."""
    for part in message.parts:
        if isinstance(part.data, dict) and part.data.get("decision"):
            return str(part.data["decision"])
    return ""


def _files_in(parts: Sequence[Part], name: str = "") -> list[SentFile]:
    """The files among parts, and texts and JSON that are sent as files. `name`: for files without one."""
    found: list[SentFile] = []
    for part in parts:
        if isinstance(part.raw, str):
            size = len(part.raw.rstrip("=")) * BASE64_BYTES[1] // BASE64_BYTES[0]
            found.append(SentFile(part.filename or name or "file", part.media_type, size))
        elif isinstance(part.url, str):
            found.append(SentFile(part.filename or name or "file", part.media_type, None, part.url))
        elif part.data is not UNSET:
            found.append(SentFile(part.filename or name or "data", part.media_type or "application/json"))
        elif isinstance(part.text, str) and not plain_text_in([part]) and part.text:
            size = len(part.text.encode("utf-8", "surrogatepass"))
            found.append(SentFile(part.filename or name or "text", part.media_type or "text/plain", size))
    return found


def show_parts(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The parts of a message as A2A 1.0 writes them, for an export."""
    members = ("text", "raw", "url", "data", "filename", "mediaType", "metadata")
    values = [(one.text, one.raw, one.url, one.data, one.filename, one.media_type, one.metadata) for one in parts]
    return [
        {name: value for name, value in zip(members, each, strict=True) if value is not UNSET and value != ""}
        for each in values
    ]
