"""Converts a remote server's events to the pieces of a reply: chunks, notes, artifacts, and one end."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from agents.core.post import ExtraPiece, Final, PostedChunk
from agents.links.remote.events import (
    PART_BYTES,
    HeldArtifact,
    Malformed,
    RemoteArtifact,
    RemoteArtifactUpdate,
    RemoteEvent,
    RemoteMessage,
    RemoteStatus,
    RemoteStatusUpdate,
    RemoteTask,
    details_of,
    encode,
    find_interim_messages,
    is_plain,
    is_text,
    size_of,
    state_of,
    status_metadata_in,
    written_as,
)
from agents.models.choices import Interruption, TurnFailure
from agents.transcript.pieces import (
    MAX_PIECES,
    MAX_REPLY_BYTES,
    ArtifactPiece,
    Extra,
    Json,
    LastWords,
    Part,
    StatusNote,
    find_usage,
    plain_text_in,
    text_in,
)

SINGLY = 500  # pieces; appended text after them is gathered, so that a word at a time stays within the cap
GATHERED_CHARS = 4_096
MAX_PARTS = 4_000  # of gathered text; in what is gathered after them, neighbouring parts become one
MAX_NOTES = 100
MAX_NOTE_CHARS = 4_096
MAX_ID_CHARS = 256
MESSAGE = "message"  # id of the artifact that a message is, where its answer is shown as a task

UNDER_WAY = frozenset({"submitted", "working", "unspecified", "unknown"})
ENDS: dict[str, tuple[str, str]] = {  # by state: the reason, and the text if the server sends none
    "input_required": (Interruption.INPUT_REQUIRED, "The agent asks for more input."),
    "auth_required": (Interruption.AUTH_REQUIRED, "The agent asks for credentials."),
    "failed": (TurnFailure.AGENT_FAILED, "the remote agent failed"),
    "rejected": (TurnFailure.REJECTED, "the remote agent refused the question"),
    "canceled": (TurnFailure.AGENT_CANCELED, "the remote agent canceled the task"),
}
INTERRUPTED = frozenset({"input_required", "auth_required"})


class ReplyTooLarge(Exception):
    """The reply exceeds the limits of one reply."""


class RemoteReply:
    """The reply to one question as it grows. `take_piece` gets each piece; `end` is there once the server is done.

    The usage of the turn is `usage` in the metadata of the event that ends it, as this hub writes it too.

    Artifacts pass as they are: same ids, order, names and parts. The text of these parts is the text of the reply.
    `is_continued`: the question continues a task, which may hold artifacts that are not known here.
    """

    def __init__(
        self, chat_id: str, take_piece: Callable[[PostedChunk | ExtraPiece], object], *, task_id: str = ""
    ) -> None:
        self._chat_id = chat_id
        self._take_piece = take_piece
        self._held: dict[str, HeldArtifact] = {}
        self._names: set[str] = set()
        self._gathering: dict[str, HeldArtifact] = {}
        self._pieces = self._notes = self._bytes = self._parts_gathered = 0
        self._text_is_of = ""
        self._last_note: StatusNote | None = None
        self._told: set[str] = set()  # ids of messages
        self._stale: RemoteStatus | None = None
        self._metadata: Any = None
        self.task_id = task_id
        self.is_continued = False
        self.context_id = ""
        self.state = ""
        self.end: Final | None = None

    def know(self, task: RemoteTask) -> None:
        """Store the state of the task before the question, so that its old parts are not passed on again."""
        for artifact in task.artifacts:
            self._hold(artifact)
        self._told |= {one.message_id for one in task.history if one.message_id}
        self._stale = task.status

    def take(self, event: RemoteEvent) -> None:
        """Take one more event; events after the end are ignored.

        Raises:
            Malformed: it belongs to another task, or is in a state that the hub does not know.
            ReplyTooLarge: the hub reads no more of the reply.
        """
        if self.end is not None:
            return
        self._check_ids(event)
        self._metadata = None if isinstance(event, RemoteArtifactUpdate) else event.metadata
        match event:
            case RemoteMessage():
                self._take_message(event)
                self._finish("")
            case RemoteArtifactUpdate():
                if event.last_chunk and not event.append:
                    self._close(event.artifact)
                else:
                    self._artifact(event.artifact, append=event.append, last=event.last_chunk)
            case RemoteStatusUpdate():
                self._status(event.status)
            case RemoteTask():
                self._notes_in(event)
                for artifact in event.artifacts:
                    self._catch_up(artifact, last=state_of(event.status.state) not in UNDER_WAY)
                is_stale, self._stale = event.status == self._stale, None
                if not (is_stale and state_of(event.status.state) in INTERRUPTED):
                    self._status(event.status, event.history, is_whole=True)

    def _check_ids(self, event: RemoteEvent) -> None:
        task_id = event.id if isinstance(event, RemoteTask) else event.task_id
        if self.task_id and task_id and task_id != self.task_id:
            raise Malformed("the remote agent answered for another task")
        if max(len(task_id), len(event.context_id)) > MAX_ID_CHARS:
            raise Malformed(f"the remote agent's ids are over {MAX_ID_CHARS} characters")
        self.task_id = task_id or self.task_id
        self.context_id = event.context_id or self.context_id

    def _status(
        self, status: RemoteStatus, history: tuple[RemoteMessage, ...] = (), *, is_whole: bool = False
    ) -> None:
        self.state = state_of(status.state)
        parts = status.message.parts if status.message else ()
        words = text_in(parts)
        if self.state in UNDER_WAY:
            self._note(status.message, UNSET if is_whole else status_metadata_in(self._metadata))
        elif self.state == "completed":
            self._conclude(status.message if parts else self._words_of(history))
            self._finish("")
        elif self.state in ENDS:
            reason, default = ENDS[self.state]
            tells_more = status.message and (self.state in INTERRUPTED or not is_plain(status.message))
            self._conclude(status.message if tells_more else None, default)
            self._finish(reason, words or ("" if self._text_is_of else default))
        else:
            raise Malformed("the remote agent's task is in a state that A2A does not know")

    def _words_of(self, history: tuple[RemoteMessage, ...]) -> RemoteMessage | None:
        """The last message of the agent, when the task holds nothing else that could be the reply."""
        return history[-1] if history and history[-1].is_agents and not self._held else None

    def _notes_in(self, task: RemoteTask) -> None:
        """Pass on the messages of the agent before an answer that came whole, as notes."""
        for one in find_interim_messages(task, holds_artifacts=bool(self._held)):
            if one.message_id and one.message_id not in self._told:
                self._note(one)

    def _conclude(self, message: RemoteMessage | None, default: str = "") -> None:
        """Pass on the last message and the metadata of the state. `default`: for a message without text."""
        parts = message.parts if message is not None else ()
        if parts and default and not text_in(parts):
            parts = (Part(text=default), *parts)
        metadata = UNSET if message is None else message.metadata
        said = status_metadata_in(self._metadata)
        if parts or said:
            self._flush_all()
            self._count_bytes(size_of(parts) + sum(len(encode(one)) for one in (metadata, said) if one))
            self._pass_on(LastWords(parts, metadata, said))

    def _take_message(self, message: RemoteMessage) -> None:
        """A message that is the whole answer: one plain text is a chunk, anything else an artifact of its parts.

        The artifact has the message's metadata and extensions; the message is made of it again by
        `a2a_bridge.service.tasks.pieces.answer_message`.
        """
        parts, metadata, extensions = message.parts, message.metadata, message.extensions
        text = text_in(parts)
        if text and len(parts) == 1 and is_text(parts[0]) and metadata is UNSET and not extensions:
            self._count_bytes(len(text.encode()))
            self._pass_on(PostedChunk(self._chat_id, self._pieces, text))
        elif parts:
            made = RemoteArtifact(MESSAGE, parts, metadata=metadata, extensions=extensions)
            self._artifact(made, append=False, last=True)

    def _close(self, artifact: RemoteArtifact) -> None:
        """Take a whole artifact. The parts that this turn passed on already are not added again."""
        held = self._held.get(artifact.artifact_id)
        if held is None or not held.was_told or not held.equals(artifact):
            self._artifact(artifact, append=False, last=True)
            return
        self._flush(held)
        # The first repetition is not counted: a reply that its server closes may be as large as any other.
        self._count_bytes(size_of(artifact.parts) if held.was_repeated else PART_BYTES)
        held.was_repeated = True
        again = held.piece(artifact, last=True) if self._parts_gathered <= MAX_PARTS else None
        self._pass_on(ArtifactPiece(held.name, (), append=True, last_chunk=True, lead="", again=again))

    def _catch_up(self, artifact: RemoteArtifact, *, last: bool) -> None:
        """Pass on the new parts of an artifact, or all of it where the server replaced it."""
        held = self._held.get(artifact.artifact_id)
        if held is None or held.details != details_of(artifact):
            self._artifact(artifact, append=False, last=last)
            return
        written = written_as(artifact.parts)
        if not written.startswith(held.written):
            self._artifact(artifact, append=False, last=last)
        elif len(written) > len(held.written):
            more = RemoteArtifact(artifact.artifact_id, artifact.parts[held.count :])
            self._artifact(more, append=True, last=last)

    def _artifact(self, artifact: RemoteArtifact, *, append: bool, last: bool) -> None:
        held = self._held.get(artifact.artifact_id)
        append = append and (held is not None or self.is_continued)
        if held is None or not append:
            held = self._hold(artifact)
        else:
            held.append(artifact)
        held.was_told = True
        if append and not (artifact.parts or artifact.metadata or last):
            return
        details = details_of(artifact)
        size_of_details = len(encode(details)) if any(details) else PART_BYTES * append
        self._count_bytes(size_of(artifact.parts) + size_of_details)
        if append and self._pieces >= SINGLY and all(map(is_text, artifact.parts)) and not artifact.metadata:
            held.is_closed = last
            self._gather(held, artifact.parts)
            return
        self._flush(held)
        lead = self._lead(held, artifact.parts, append=append)
        self._pass_on(held.piece(artifact, append=append, last=last, lead=lead))

    def _hold(self, artifact: RemoteArtifact) -> HeldArtifact:
        """Begin an artifact, or begin it anew.

        The id of the artifact stays, unless it is empty, too long, or taken.
        """
        theirs = artifact.artifact_id
        if old := self._held.get(theirs):
            self._flush(old)
            name = old.name
        else:
            is_sound = 0 < len(theirs) <= MAX_ID_CHARS and theirs not in self._names
            name = theirs if is_sound else f"remote-{len(self._held) + 1}"
            self._names.add(name)
        held = self._held[theirs] = HeldArtifact(name, artifact)
        return held

    def _lead(self, held: HeldArtifact, parts: Sequence[Part], *, append: bool) -> str:
        """The text that separates the text of these parts from the text before it."""
        if not plain_text_in(parts):
            return ""
        before, self._text_is_of = self._text_is_of, held.name
        return "\n\n" if before and not (append and before == held.name) else ""

    def _note(self, message: RemoteMessage | None, status_metadata: Json | UnsetType = UNSET) -> None:
        parts = message.parts if message is not None else ()
        if message is not None and message.message_id:
            self._told.add(message.message_id)
        if not parts and not status_metadata:
            return
        words = text_in(parts)
        metadata = UNSET if message is None else message.metadata
        has_text_alone = all(map(is_text, parts)) or len(words) > MAX_NOTE_CHARS
        note = StatusNote(words[:MAX_NOTE_CHARS], metadata, () if has_text_alone else parts, status_metadata)
        if note != self._last_note and self._notes < MAX_NOTES:
            self._last_note = note
            self._notes += 1
            self._flush_all()
            self._extra(note)

    def _gather(self, held: HeldArtifact, parts: Sequence[Part]) -> None:
        """Gather appended text until there is enough for a piece."""
        self._gathering[held.name] = held
        held.waiting += parts
        held.chars_waiting += len(text_in(parts))
        if held.chars_waiting > GATHERED_CHARS:
            self._flush(held)

    def _flush(self, held: HeldArtifact) -> None:
        if self._gathering.pop(held.name, None) is None:
            return
        parts = tuple(held.waiting)
        self._parts_gathered += len(parts)
        if parts and self._parts_gathered > MAX_PARTS:
            parts = (Part(text=text_in(parts)),)
        held.waiting, held.chars_waiting = [], 0
        lead = self._lead(held, parts, append=True)
        self._pass_on(ArtifactPiece(held.name, parts, append=True, last_chunk=held.is_closed, lead=lead))

    def _flush_all(self) -> None:
        for held in list(self._gathering.values()):
            self._flush(held)

    def _extra(self, piece: Extra) -> None:
        self._count_bytes(len(encode(piece)))
        self._pass_on(piece)

    def _pass_on(self, piece: Extra | PostedChunk) -> None:
        if self._pieces == MAX_PIECES:
            raise ReplyTooLarge
        self._take_piece(
            piece if isinstance(piece, PostedChunk) else ExtraPiece(self._chat_id, self._pieces, piece)
        )
        self._pieces += 1

    def _count_bytes(self, size: int) -> None:
        self._bytes += size
        if self._bytes > MAX_REPLY_BYTES:
            raise ReplyTooLarge

    def _finish(self, reason: str, text: str = "") -> None:
        self._flush_all()
        self.end = msgspec.structs.replace(self.ended(reason, text), usage=find_usage(self._metadata))

    def ended(self, reason: str, text: str = "") -> Final:
        """The `Final` of the reply with this reason."""
        return Final(self._chat_id, self._pieces, text[:MAX_REPLY_BYTES] or None, str(reason))
