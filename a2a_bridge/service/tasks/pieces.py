"""The events of a task, made from an agent's pieces and the end of its turn. Pure functions."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import UNSET

from a2a_bridge.wire.errors import denied_text, failure_text
from a2a_bridge.wire.task import (
    Artifact,
    ArtifactEvent,
    Message,
    Role,
    State,
    StatusEvent,
    Task,
    TaskEvent,
    metadata_with_usage,
)
from agents.core.types import SettledTurn
from agents.models.choices import AGENTS_OWN_WORDS, Interruption, Outcome, TurnFailure
from agents.transcript.pieces import (
    LEFT_OUT,
    ApprovalAsked,
    ApprovalDecided,
    ArtifactPiece,
    Json,
    LastWords,
    Part,
    Piece,
    StatusNote,
    text_in,
)

INTERRUPTIONS = {
    Interruption.INPUT_REQUIRED: State.INPUT_REQUIRED,
    Interruption.AUTH_REQUIRED: State.AUTH_REQUIRED,
}
APPROVAL = "approval_request"
TO_APPROVE = "The agent asks you to approve: {tool}"
HOW = "Answer approve or deny."
DECIDED = {
    "allow": "Approved: {tool}",
    "deny": "Denied: {tool}",
    "expired": "Not decided in time: {tool}",
}
FAILURES = {
    TurnFailure.CANCELED: State.CANCELED,
    TurnFailure.REJECTED: State.REJECTED,
    TurnFailure.AGENT_CANCELED: State.CANCELED,
}


def agent_message(task: Task, seq: int, text: str, reason: str = "") -> Message:
    """A message of the agent, or of the hub in its place. `reason`: why the hub refused or failed the turn."""
    said = _message(task, seq, (Part(text=text),))
    return msgspec.structs.replace(said, metadata={"reason": str(reason)}) if reason else said


def _message(task: Task, seq: int, parts: tuple[Part, ...]) -> Message:
    return Message(f"{task.message_id}-{seq}", Role.AGENT, parts)


def _text(task: Task, text: str) -> Part:
    """Words of the agent, in its media type."""
    return Part(text=text, media_type=task.text_type)


def reply_message(task: Task) -> Message:
    """The reply of a task's last turn, as far as it has come, as a message; its text is one part."""
    parts = (_text(task, task.reply_text),) if task.reply_text or task.reply else ()
    return Message(f"{task.message_id}-reply-{task.turns}", Role.AGENT, parts)


def answer_message(task: Task) -> Message:
    """The whole answer of a turn as one message; the message of a remote server as the server wrote it."""
    reply = reply_message(task)
    if own := task.made:
        parts = tuple(part for one in own for part in one.parts)
        message = Message(reply.id, Role.AGENT, parts, own[0].metadata, own[0].extensions)
    else:
        made = [part for one in task.artifacts if one.id != task.reply_id for part in one.parts]
        message = Message(reply.id, Role.AGENT, (*reply.parts, *made))
    left_out = task.metadata.get(LEFT_OUT) if isinstance(task.metadata, dict) else None
    if left_out:
        message = msgspec.structs.replace(message, metadata={**(message.metadata or {}), LEFT_OUT: left_out})
    return msgspec.structs.replace(message, metadata=metadata_with_usage(message.metadata, task.usage))


def with_joined_text(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces in which chunks of text that follow each other are one."""
    joined: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def events_of(task: Task, pieces: Sequence[Piece], at: str) -> list[TaskEvent]:
    """The events that pieces of a reply make of the task that they continue."""
    events: list[TaskEvent] = []
    has_begun = task.reply is not None
    known = {one.id for one in task.artifacts}
    waits_for = task.approvals
    for seq, piece in enumerate(pieces, task.seq + 1):
        if isinstance(piece, str):
            reply = Artifact(task.reply_id, (_text(task, piece),))
            events.append(ArtifactEvent(seq, at, reply, append=has_begun))
            has_begun = True
        elif isinstance(piece, ApprovalAsked | ApprovalDecided):
            waits_for = tuple(one for one in waits_for if one.request_id != piece.request_id)
            if isinstance(piece, ApprovalAsked):
                waits_for = (*waits_for, piece)
            words = "" if isinstance(piece, ApprovalAsked) else DECIDED[piece.decision].format(tool=piece.tool)
            events.append(_approvals(task, seq, at, waits_for, words))
        elif isinstance(piece, StatusNote) and waits_for:
            events.append(_approvals(task, seq, at, waits_for, piece.text))
        elif isinstance(piece, StatusNote):
            parts = piece.parts or ((_text(task, piece.text),) if piece.text else ())
            note = _with_metadata(_message(task, seq, parts), piece) if parts else None
            events.append(StatusEvent(seq, at, State.WORKING, note, metadata=piece.status_metadata))
        elif isinstance(piece, ArtifactPiece):
            append = piece.append and piece.artifact_id in known
            known.add(piece.artifact_id)
            made = _artifact(task, piece, append=append)
            again = _artifact(task, piece.again, append=False) if piece.again is not None else None
            events.append(ArtifactEvent(seq, at, made, append, piece.last_chunk, piece.lead, again=again))
    return events


def _artifact(task: Task, piece: ArtifactPiece, *, append: bool) -> Artifact:
    """The part of an artifact that a piece contains.

    Parts that an agent appends bring no name: clients differ in what they do with it. An artifact of a remote
    server stays as it is.
    """
    if append and piece.lead is None:
        return Artifact(piece.artifact_id, piece.parts, metadata=piece.metadata or UNSET)
    turn = 0 if piece.lead is None else task.turns
    named = (piece.name, piece.description, piece.metadata, piece.extensions)
    return Artifact(piece.artifact_id, piece.parts, *named, turn)


def _approvals(task: Task, seq: int, at: str, waits_for: tuple[ApprovalAsked, ...], words: str) -> StatusEvent:
    """The task asks its caller to approve these; without any it works on. `words` go before."""
    if not waits_for:
        return StatusEvent(seq, at, State.WORKING, agent_message(task, seq, words))
    texts = [words, *(f"{TO_APPROVE.format(tool=one.tool)}\n{one.description}" for one in waits_for), HOW]
    parts = (Part(text="\n\n".join(filter(None, texts))), *(Part(data=_asked(one)) for one in waits_for))
    return StatusEvent(seq, at, State.INPUT_REQUIRED, _message(task, seq, parts), waits_for)


def _asked(one: ApprovalAsked) -> Json:
    return {
        "type": APPROVAL,
        "requestId": one.request_id,
        "tool": one.tool,
        "description": one.description,
        "options": ["approve", "deny"],
    }


def last_words(pieces: Sequence[Piece]) -> LastWords | None:
    """The message that the agent sends with the end of its turn, beside its reply."""
    return pieces[-1] if pieces and isinstance(pieces[-1], LastWords) else None


def end_of(
    task: Task,
    settled: SettledTurn,
    words: LastWords | None = None,
    open_ids: Iterable[str] = (),
    *,
    wait_s: float,
    at: str,
) -> list[TaskEvent]:
    """The events by which the end of the turn ends a task that has all pieces. The state closes every artifact.

    `open_ids`: see `left_open`; a reply makes those artifacts whole.
    """
    if settled.outcome is not Outcome.COMPLETED:
        return [_failed(task, settled, words, wait_s, at)]
    metadata = words.status_metadata if words is not None else UNSET
    interruption = INTERRUPTIONS.get(settled.reason)  # type: ignore[call-overload]
    has_reply = interruption is None and not (words is not None and words.parts)
    reply = _whole_reply(task, settled.text) if has_reply else None
    closed = closing(task, [one for one in open_ids if reply is None or one != reply.id], at)
    seq = task.seq + len(closed) + 1
    if interruption:
        said = _last_message(task, seq, words) or _message(task, seq, (_text(task, settled.text),))
        return [*closed, StatusEvent(seq, at, interruption, said, usage=settled.usage, metadata=metadata)]
    replies = [] if reply is None else [ArtifactEvent(seq, at, reply, last_chunk=True)]
    seq += len(replies)
    last = _last_message(task, seq, words)
    return [*closed, *replies, StatusEvent(seq, at, State.COMPLETED, last, usage=settled.usage, metadata=metadata)]


def is_waiting_again(settled: SettledTurn) -> bool:
    """True if a task waits for its caller as before: nothing was sent, and the caller did not cancel it."""
    return settled.is_unsent and settled.reason != TurnFailure.CANCELED


def waiting_again(task: Task, seq: int, at: str) -> tuple[Task, StatusEvent]:
    """A task that waits for its caller again after an unsent message to the task. `seq`: of its last event."""
    event = StatusEvent(seq + 1, at, task.state, task.message, usage=task.usage)
    return msgspec.structs.replace(task, seq=event.seq, updated_at=at), event


def plain_end(task: Task, settled: SettledTurn, at: str) -> Task:
    """A new task that its agent answered with a text and nothing else; its events follow from it."""
    reply = (Artifact(task.reply_id, (_text(task, settled.text),)),) if settled.text else ()
    return msgspec.structs.replace(
        task, state=State.COMPLETED, updated_at=at, artifacts=reply, seq=len(reply) + 2, usage=settled.usage
    )


def events_of_plain(task: Task) -> list[TaskEvent]:
    """The events of such a task: its agent worked, gave the reply, and was done."""
    at = task.updated_at
    replies = [ArtifactEvent(2, at, reply, last_chunk=True) for reply in task.artifacts]
    return [
        StatusEvent(1, at, State.WORKING),
        *replies,
        StatusEvent(task.seq, at, State.COMPLETED, usage=task.usage),
    ]


def is_promoted(task: Task, pieces: Sequence[Piece]) -> bool:
    """True if a task is more than a plain reply, given the pieces it came in."""
    if task.turns > 1 or not (task.is_open or task.state is State.COMPLETED):
        return True
    if task.state is State.COMPLETED and not (task.reply and text_in(task.reply.parts)):
        return True
    return any(not isinstance(piece, str) for piece in pieces)


def left_open(open_ids: Iterable[str], events: Iterable[TaskEvent]) -> tuple[str, ...]:
    """The ids of the artifacts of a turn whose agent has not said that they are whole, the last changed last."""
    left = dict.fromkeys(open_ids)
    for event in events:
        if isinstance(event, ArtifactEvent):
            left.pop(event.artifact.id, None)
            if not event.last_chunk:
                left[event.artifact.id] = None
    return tuple(left)


def closing(task: Task, open_ids: Iterable[str], at: str) -> list[TaskEvent]:
    """The events that say that artifacts of a task are whole, because its turn is over."""
    found = [whole for one in open_ids if (whole := task.artifact(one)) is not None and whole.parts]
    return [
        ArtifactEvent(seq, at, Artifact(whole.id, ()), append=True, last_chunk=True, whole=len(whole.parts))
        for seq, whole in enumerate(found, task.seq + 1)
    ]


def _whole_reply(task: Task, text: str) -> Artifact | None:
    """The whole text, unless it came in pieces already, or in artifacts of the agent's own."""
    if not text or task.made or (task.reply is not None and text == text_in(task.reply.parts)):
        return None
    return Artifact(task.reply_id, (_text(task, text),))


def _failed(task: Task, settled: SettledTurn, words: LastWords | None, wait_s: float, at: str) -> StatusEvent:
    seq, reason = task.seq + 1, settled.reason
    if settled.refused is not None and settled.outcome is Outcome.DENIED:
        message = agent_message(task, seq, denied_text(settled.refused, task.handle), settled.refused.reason)
    elif reason not in AGENTS_OWN_WORDS:
        message = agent_message(task, seq, failure_text(reason, wait_s), reason)
    else:
        own = _last_message(task, seq, words)
        message = own or agent_message(task, seq, settled.text or failure_text(reason, wait_s))
    state = FAILURES.get(settled.reason, State.FAILED)  # type: ignore[call-overload]
    metadata = words.status_metadata if words is not None and reason in AGENTS_OWN_WORDS else UNSET
    return StatusEvent(task.seq + 1, at, state, message, usage=settled.usage, metadata=metadata)


def _last_message(task: Task, seq: int, words: LastWords | None) -> Message | None:
    if words is None or not words.parts:
        return None
    said = _message(task, seq, words.parts)
    return Message(said.id, said.role, said.parts, words.metadata)


def _with_metadata(message: Message, note: StatusNote) -> Message:
    return Message(message.id, message.role, message.parts, note.metadata)
