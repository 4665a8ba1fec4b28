"""The dialect of Agno's `RemoteAgent`: A2A 0.3 in JSON-RPC envelopes, sent to addresses of HTTP+JSON.

Answers have the form of Agno's own server, AgentOS: a Task whose history holds what its agent said, or a stream of
messages that ends with a final status update (docs/adr/0172). Agno reads neither artifacts nor a Message as an
answer, and stops reading a stream at a Task.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from msgspec import UNSET, structs

from a2a_bridge.wire.dialects.dialect import Method, by_name
from a2a_bridge.wire.dialects.v03 import V03, shapes
from a2a_bridge.wire.dialects.v03.shapes import status_update
from a2a_bridge.wire.requests import Request
from a2a_bridge.wire.task import Artifact, Message, Role, State, StatusEvent, Task, TaskEvent
from agents.transcript.pieces import Part, joined_texts

UNNAMED = "application/octet-stream"


class FileArtifact(shapes.OldMade, frozen=True, rename="camel", kw_only=True):
    """An artifact with a file in the form that Agno reads: the URL of the file, or its bytes as a `data:` URI."""

    uri: str
    mime_type: str


def method_of_agno(method: Method) -> Method:
    """A method of 0.3. Agno sends no task id: a message goes on with the task that waits in its context."""

    def read(params: object) -> Request:
        return structs.replace(method.read(params), takes_direct=False, resumes=True)

    return replace(method, read=read)


def render_task(task: Task, history_length: int | None) -> shapes.OldTask:
    """A Task with all that its agent said as the last message of its history, and with files as artifacts."""
    asked = [shapes.render_message(task.context_id, one, task.id) for one in task.history if one.role is Role.USER]
    said = joined_texts([*(_words(one.parts) for one in _of_turn(task)), _status_words(task)])
    files = [_file(one, part) for one in task.artifacts for part in one.parts if part.is_file]
    return structs.replace(
        shapes.render_task(task, 0),
        history=[*asked, *_messages(task, said, task.seq)],
        artifacts=files or UNSET,
    )


def render_opening(task: Task, request: Request) -> Sequence[shapes.OldFrame | shapes.OldMessage]:
    """A message with what the agent said so far in this turn, and the state of the task."""
    made = _of_turn(task) if task.turns == 1 else [one for one in _of_turn(task) if one.is_reply]
    said = joined_texts([*(_words(one.parts) for one in made), _status_words(task)])
    status = StatusEvent(task.seq, task.updated_at, task.state, task.message)
    return [*_messages(task, said, task.seq), status_update(task, status, is_last=not task.is_running)]


class StreamedWords:
    """The words of a task that one stream has shown: each piece once."""

    def __init__(self, task: Task) -> None:
        self._last = task.reply_id if task.reply else ""

    def render_event(
        self, task: Task, event: TaskEvent, *, is_last: bool
    ) -> Sequence[shapes.OldFrame | shapes.OldMessage]:
        """A message with the words of an event, and a status update for a new state."""
        if isinstance(event, StatusEvent):
            said = _status_words(task) if is_last else ""
            between = "\n\n" if said and self._last else ""
            return [
                *_messages(task, between + said, event.seq),
                status_update(task, event, is_last=is_last),
            ]
        if event.whole or event.closes_only:
            return []
        between = "\n\n" if self._last and self._last != event.artifact.id else ""
        self._last = event.artifact.id
        said = _words(event.artifact.parts, is_stream=True)
        return _messages(task, between + said if said else "", event.seq)


def _of_turn(task: Task) -> list[Artifact]:
    """The artifacts of a task, without the replies of earlier turns."""
    return [one for one in task.artifacts if not one.is_reply or one.id == task.reply_id]


def _messages(task: Task, said: str, seq: int) -> list[shapes.OldMessage]:
    """A list with one message that has the agent's words; empty without words."""
    message = Message(f"{task.message_id}-said-{seq}", Role.AGENT, (Part(text=said),))
    return [shapes.render_message(task.context_id, message, task.id)] if said else []


def _status_words(task: Task) -> str:
    """The text of the state that a turn ended in."""
    message = shapes.status_of(task).message
    if message is UNSET or task.state is State.WORKING:
        return ""
    return "".join(part.text for part in message.parts if isinstance(part.text, str))


def _words(parts: Iterable[Part], *, is_stream: bool = False) -> str:
    return "".join(_word(part, is_stream=is_stream) for part in parts)


def _word(part: Part, *, is_stream: bool) -> str:
    """A part as text. A file becomes an artifact; Agno reads none in a stream, so the text names the file."""
    if isinstance(part.text, str):
        return part.text
    if part.data is not UNSET:
        return json.dumps(part.data, ensure_ascii=False)
    if not is_stream:
        return ""
    return part.url if isinstance(part.url, str) else f"left out: file {part.filename or part.media_type}"


def _file(artifact: Artifact, part: Part) -> FileArtifact:
    kind = part.media_type or UNNAMED
    uri = part.url if isinstance(part.url, str) else f"data:{kind};base64,{part.raw}"
    name = part.filename or artifact.name or UNSET
    return FileArtifact(artifact.id, shapes.render_parts([part]), name, uri=uri, mime_type=kind)


AGNO = replace(
    V03,
    name="AgentOS",
    versions=frozenset(),
    bindings=(),
    methods=by_name(*(method_of_agno(V03.methods[name]) for name in ("message/send", "message/stream"))),
    streams_errors=False,
    render_task=render_task,
    render_answer=lambda task, request: render_task(task, None),
    render_opening=render_opening,
    follow=lambda task: StreamedWords(task).render_event,
    check_answer=None,
)
