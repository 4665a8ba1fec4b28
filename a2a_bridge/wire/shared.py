"""The content of a share: tasks in the form of A2A 1.0, with question and answer and nothing else.

The content has no ids of the caller's, no metadata, no usage, no notes on progress, and no decisions on permission
requests. Of a file that the hub keeps for the caller the content has only the name: the file is deleted with the
caller's thread, which a share outlives.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from a2a_bridge.wire.dialects.v1.shapes import render_task
from a2a_bridge.wire.task import Message, Role, Task
from agents.transcript.callers_files import find_id
from agents.transcript.pieces import Part, text_in

TITLE_CHARS = 200


def write_content(tasks: Sequence[Task]) -> str:
    """The tasks as JSON, in the order in which they were asked."""
    return join_content(write_task(task, number) for number, task in enumerate(tasks, 1))


def write_task(task: Task, number: int) -> str:
    """One task of a content, the first one with the number 1."""
    return msgspec.json.encode(render_task(reduce(task, number), None)).decode()


def join_content(tasks: Iterable[str]) -> str:
    """The content of tasks that `write_task` wrote."""
    return f"[{','.join(tasks)}]"


def write_title(task: Task) -> str:
    """The beginning of the question in one line; the name of its first file if it has no text."""
    question = next((one for one in task.history if one.role is Role.USER), None)
    parts = question.parts if question else ()
    named = next((part.filename for part in parts if part.filename), "")
    text = text_in(parts)[: 4 * TITLE_CHARS] or named
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(printable.split())[:TITLE_CHARS] or "(no text)"


def reduce(task: Task, number: int) -> Task:
    """The task without what its caller alone may know."""
    return replace(
        task,
        id=f"answer-{number}",
        caller_id=0,
        context_id="",
        chat_id="",
        home="",
        history=tuple(_bare(one, count) for count, one in enumerate(_conversation(task.history), 1)),
        message=None if task.message is None else _bare(task.message, 0),
        artifacts=tuple(
            replace(one, parts=_bare_parts(one.parts), metadata=UNSET, extensions=()) for one in task.artifacts
        ),
        metadata=UNSET,
        approvals=(),
        usage=None,
    )


def _conversation(history: Sequence[Message]) -> Iterator[Message]:
    """The caller's messages, and what the agent asked back: the message before each further one of the caller."""
    for index, message in enumerate(history):
        if message.role is Role.USER:
            if not _is_decision(message):
                yield message
        elif index + 1 < len(history):
            after = history[index + 1]
            if after.role is Role.USER and not _is_decision(after):
                yield message


def _is_decision(message: Message) -> bool:
    """True if the caller approved or denied the use of a tool."""
    return any(isinstance(part.data, dict) and "decision" in part.data for part in message.parts)


def _bare(message: Message, number: int) -> Message:
    return Message(f"message-{number}", message.role, _bare_parts(message.parts))


def _bare_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(_bare_part(part) for part in parts)


def _bare_part(part: Part) -> Part:
    if isinstance(part.url, str) and find_id(part.url) is not None:
        named = ", ".join(filter(None, [part.filename or "file", part.media_type]))
        return Part(text=f"File that is not shared: {named}", media_type="text/plain")
    return part if part.metadata is UNSET else replace(part, metadata=UNSET)
