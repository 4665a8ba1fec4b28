"""What a remote server said, looked at: which of it is on the way to the answer, what it weighs, what is equal."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from agents.links.remote.events import Artifact, Message, Task, state_of
from agents.transcript.pieces import Json, Part, find_usage, text_in

PART_BYTES = 12  # of a part besides its text

encode = msgspec.json.Encoder(order="deterministic").encode


def said_on_the_way(task: Task, *, holds_artifacts: bool) -> Sequence[Message]:
    """What the agent said to the last question of a task; not its end, and not its reply."""
    history, end = task.history or (), task.status.message
    asked = max((number for number, one in enumerate(history, 1) if not one.is_agents), default=0)
    said = history[asked:]
    is_completed = state_of(task.status.state) == "completed"
    if is_completed and not (task.artifacts or holds_artifacts or (end and end.parts)):
        said = said[:-1]  # the last is the reply
    shown = [*(one.parts for one in task.artifacts or ()), *([end.parts] if end else [])]
    texts = {text_in(parts) for parts in shown}
    return [
        one for one in said if not (end and one.message_id == end.message_id) and text_in(one.parts) not in texts
    ]


def status_metadata_in(metadata: Any) -> Json | UnsetType:
    """What an event says of the state, without the usage, which has a place of its own."""
    said = metadata if isinstance(metadata, dict) else {}
    if find_usage(said) is not None:
        said = {name: value for name, value in said.items() if name != "usage"}
    return said or UNSET


def details_of(artifact: Artifact) -> tuple[Any, ...]:
    """What an artifact is besides its parts; metadata last."""
    return (artifact.name or "", artifact.description or "", artifact.extensions or (), artifact.metadata or None)


def written_as(parts: Sequence[Part]) -> bytes:
    """Parts as bytes that begin with the same bytes as fewer of them."""
    return b"".join(map(encode, parts))


def size_of(parts: Sequence[Part]) -> int:
    """What parts count towards the size of the reply: text as it is, all else as JSON."""
    texts = [part.text.encode() for part in parts if is_text(part) and isinstance(part.text, str)]
    rest = [part for part in parts if not is_text(part)]
    return sum(map(len, texts)) + PART_BYTES * max(len(texts) - 1, 0) + len(written_as(rest))


def is_plain(message: Message) -> bool:
    """Whether a message is text and says nothing more."""
    return message.metadata is None and all(map(is_text, message.parts))


def is_text(part: Part) -> bool:
    """Whether a part is text and says nothing more."""
    return isinstance(part.text, str) and part == Part(text=part.text)
