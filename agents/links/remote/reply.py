"""A remote server's events as the pieces of a reply: text as chunks, notes, artifacts, and one end."""

import re
from collections.abc import Callable

import msgspec

from agents.links.remote.events import (
    Artifact,
    ArtifactUpdate,
    Event,
    Message,
    Status,
    StatusUpdate,
    Task,
    state_of,
    text_of,
)
from agents.links.remote.failures import Malformed
from agents.pieces import MAX_PIECES, MAX_REPLY_BYTES, ArtifactPiece, Extra, Part, StatusNote
from agents.post import Chunk, Final, Said
from agents.types import Failure, Interruption

SINGLY = 500  # of the text's pieces; later ones are gathered, so that a word at a time stays within the cap
GATHERED_CHARS = 4_096
MAX_NOTES = 100
MAX_NOTE_CHARS = 4_096
MAX_ID_CHARS = 256
ID = re.compile(r"(?!reply-)[A-Za-z0-9._-]{1,64}")

UNDER_WAY = frozenset({"submitted", "working", "unspecified", "unknown"})
ENDS: dict[str, tuple[str, str]] = {  # by state: the reason, and what is said when the server says nothing
    "input_required": (Interruption.INPUT_REQUIRED, "The agent asks for more input."),
    "auth_required": (Interruption.AUTH_REQUIRED, "The agent asks for credentials."),
    "failed": (Failure.AGENT_FAILED, "the remote agent failed"),
    "rejected": (Failure.REJECTED, "the remote agent refused the question"),
    "canceled": (Failure.AGENT_FAILED, "the remote agent canceled the task"),
}
INTERRUPTED = frozenset({"input_required", "auth_required"})


class TooLarge(Exception):
    """The reply is over what one may hold."""


class Reply:
    """The reply to one question as it grows. `tell` gets each piece; `end` is there once the server is done."""

    def __init__(self, chat_id: str, tell: Callable[[Chunk | Said], object], *, task_id: str = "") -> None:
        self._chat_id = chat_id
        self._tell = tell
        self._texts: dict[str, str] = {}
        self._extras: set[str] = set()
        self._names: dict[str, str] = {}
        self._waiting: list[str] = []
        self._pieces = self._notes = self._bytes = self._chars_waiting = 0
        self._has_text = False
        self._last_note = ""
        self._stale: Status | None = None
        self.task_id = task_id
        self.context_id = ""
        self.state = ""
        self.end: Final | None = None

    def know(self, task: Task) -> None:
        """How the task was before the question: what is in it already is not told again."""
        for artifact in task.artifacts or ():
            self._texts[artifact.artifact_id] = text_of(artifact.parts)
            self._extras.add(artifact.artifact_id)
        self._stale = task.status

    def take(self, event: Event) -> None:
        """One more event; what comes after the end is ignored.

        Raises:
            Malformed: it belongs to another task, or is in a state nobody knows.
            TooLarge: nothing more of the reply is wanted.
        """
        if self.end is not None:
            return
        self._check_ids(event)
        match event:
            case Message():
                self._said(event.parts)
                self._finish("")
            case ArtifactUpdate():
                self._artifact(event.artifact, append=bool(event.append), last=bool(event.last_chunk))
            case StatusUpdate():
                self._status(event.status)
            case Task():
                for artifact in event.artifacts or ():
                    self._artifact(artifact, append=False, last=True)
                is_stale, self._stale = event.status == self._stale, None
                if not (is_stale and state_of(event.status.state) in INTERRUPTED):
                    self._status(event.status, event.history or ())

    def _check_ids(self, event: Event) -> None:
        task_id = event.id if isinstance(event, Task) else event.task_id
        if self.task_id and task_id and task_id != self.task_id:
            raise Malformed("the remote agent answered for another task")
        if max(len(task_id or ""), len(event.context_id or "")) > MAX_ID_CHARS:
            raise Malformed(f"the remote agent's ids are over {MAX_ID_CHARS} characters")
        self.task_id = task_id or self.task_id
        self.context_id = event.context_id or self.context_id

    def _status(self, status: Status, history: tuple[Message, ...] = ()) -> None:
        self.state = state_of(status.state)
        parts = status.message.parts if status.message else ()
        words = text_of(parts)
        if self.state in UNDER_WAY:
            self._note(words)
        elif self.state == "completed":
            self._complete(parts, history)
        elif self.state in ENDS:
            reason, default = ENDS[self.state]
            self._finish(reason, words or ("" if self._has_text else default))
        else:
            raise Malformed("the remote agent's task is in a state that A2A does not know")

    def _complete(self, parts: tuple[Part, ...], history: tuple[Message, ...]) -> None:
        """The text is that of the artifacts; without any, what the agent said last."""
        if not parts and not self._has_text and not self._extras and history:
            last = history[-1]
            parts = last.parts if str(last.role).lower().endswith("agent") else ()
        if self._has_text:
            self._note(text_of(parts))
            parts = tuple(part for part in parts if not isinstance(part.text, str))
        self._said(parts)
        self._finish("")

    def _said(self, parts: tuple[Part, ...]) -> None:
        self._text(text_of(parts))
        rest = tuple(part for part in parts if not isinstance(part.text, str))
        if rest:
            self._extra(ArtifactPiece(self._name("message"), rest, last_chunk=True))

    def _artifact(self, artifact: Artifact, *, append: bool, last: bool) -> None:
        key, parts = artifact.artifact_id, artifact.parts
        if all(map(_is_plain, parts)) and key not in self._names:
            told = self._texts.get(key)
            text = text_of(parts)
            if told is not None and not append:
                text = text.removeprefix(told) if text.startswith(told) else f"\n\n{text}"
            elif told is None and self._has_text:
                self._text("\n\n")
            self._texts[key] = (told or "") + text
            self._text(text)
        elif append or key not in self._extras:
            grows = append and key in self._names
            self._extras.add(key)
            piece = ArtifactPiece(
                self._name(key),
                parts,
                name=(artifact.name or "")[:200],
                description=(artifact.description or "")[:1000],
                append=grows,
                last_chunk=last,
            )
            self._extra(
                piece if artifact.metadata is None else msgspec.structs.replace(piece, metadata=artifact.metadata)
            )

    def _name(self, theirs: str) -> str:
        """An artifact's id as the hub may use it."""
        if theirs not in self._names:
            is_free = theirs not in self._names.values()
            sound = ID.fullmatch(theirs) is not None and is_free
            self._names[theirs] = theirs if sound else f"remote-{len(self._names) + 1}"
        return self._names[theirs]

    def _note(self, words: str) -> None:
        if words and words != self._last_note and self._notes < MAX_NOTES:
            self._last_note = words
            self._notes += 1
            self._extra(StatusNote(words[:MAX_NOTE_CHARS]))

    def _text(self, text: str) -> None:
        if not text:
            return
        self._has_text = True
        self._waiting.append(text)
        self._chars_waiting += len(text)
        if self._pieces < SINGLY or self._chars_waiting > GATHERED_CHARS:
            self._flush()

    def _flush(self) -> None:
        text = "".join(self._waiting)
        self._waiting.clear()
        self._chars_waiting = 0
        if text:
            self._count(len(text.encode("utf-8")))
            self._tell(Chunk(self._chat_id, self._pieces - 1, text))

    def _extra(self, piece: Extra) -> None:
        self._flush()
        self._count(len(msgspec.json.encode(piece)))
        self._tell(Said(self._chat_id, self._pieces - 1, piece))

    def _count(self, size: int) -> None:
        self._pieces += 1
        self._bytes += size
        if self._pieces > MAX_PIECES or self._bytes > MAX_REPLY_BYTES:
            self._pieces -= 1
            raise TooLarge

    def _finish(self, reason: str, text: str = "") -> None:
        self._flush()
        self.end = self.ended(reason, text)

    def ended(self, reason: str, text: str = "") -> Final:
        """The end, for a reason of the caller's."""
        return Final(self._chat_id, self._pieces, text[:MAX_REPLY_BYTES] or None, str(reason))


def _is_plain(part: Part) -> bool:
    """Text to be read in line, not a file that happens to be text."""
    is_text = not part.media_type or part.media_type.startswith("text/")
    return isinstance(part.text, str) and is_text and not part.filename
