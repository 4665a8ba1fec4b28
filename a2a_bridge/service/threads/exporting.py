"""A thread as a file: Markdown to read, or JSON with all that was sent."""

import json
from collections.abc import Iterator
from typing import Any

from a2a_bridge.models import Thread
from a2a_bridge.service.threads.exchanges import Exchange, Said, SentFile, show_parts
from a2a_bridge.service.threads.reading import walk, walk_tasks
from a2a_bridge.wire.task import Artifact, Message, Task
from kit.clock import db_now, iso

FORMAT = "clawbridge-thread"
VERSION = 1
MEDIA_TYPES = {"markdown": "text/markdown; charset=utf-8", "json": "application/json"}
SUFFIXES = {"markdown": "md", "json": "json"}
MINUTE = "%Y-%m-%d %H:%M UTC"


def pieces(thread: Thread, form: str) -> Iterator[str]:
    """The text of the file, piece by piece. `form`: a key of `MEDIA_TYPES`."""
    return _json(thread) if form == "json" else _markdown(thread)


def file_name(thread: Thread, form: str) -> str:
    """A name for the file that every system takes."""
    return f"thread-{thread.public_id}.{SUFFIXES[form]}"


def _json(thread: Thread) -> Iterator[str]:
    head = {
        "format": FORMAT,
        "version": VERSION,
        "id": str(thread.public_id),
        "title": thread.title,
        "agent": thread.agent.handle,
        "contextId": thread.context_id,
        "beganAt": iso(thread.began_at),
        "lastAskedAt": iso(thread.last_asked_at),
        "exportedAt": iso(db_now()),
    }
    yield json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}") + ',\n "tasks": ['
    between = "\n"
    for _, asked_at, task in walk_tasks(thread):
        shown = {"id": task.id, "chatId": task.chat_id, "askedAt": iso(asked_at), **_task(task)}
        yield f"{between}  {json.dumps(shown, ensure_ascii=False)}"
        between = ",\n"
    yield "\n ]\n}\n"


def _task(task: Task) -> dict[str, Any]:
    said = [*task.history, *([task.message] if task.message is not None else [])]
    return {
        "state": task.state,
        "updatedAt": task.updated_at,
        "messages": [_message(one) for one in said],
        "artifacts": [_artifact(one) for one in task.artifacts],
    }


def _message(message: Message) -> dict[str, Any]:
    return {"messageId": message.id, "role": message.role, "parts": show_parts(message.parts)}


def _artifact(artifact: Artifact) -> dict[str, Any]:
    return {"artifactId": artifact.id, "name": artifact.name, "parts": show_parts(artifact.parts)}


def _markdown(thread: Thread) -> Iterator[str]:
    began, last = (f"{at:{MINUTE}}" for at in (thread.began_at, thread.last_asked_at))
    yield f"# {thread.title}\n\nWith @{thread.agent.handle}, {began} to {last}.\n"
    for _, exchange in walk(thread):
        yield _exchange(exchange, thread.agent.handle)


def _exchange(exchange: Exchange, handle: str) -> str:
    lines = []
    for one in exchange.said:
        who = "You" if one.is_caller else f"@{handle}"
        at = f", {exchange.asked_at:{MINUTE}}" if one is exchange.said[0] else ""
        lines.append(f"\n## {who}{at}\n\n{_said(one)}\n")
    if exchange.reason:
        lines.append(f"\n*No answer: {exchange.reason}*\n")
    return "".join(lines)


def _said(one: Said) -> str:
    text = one.text if not one.is_caller else "\n".join(f"> {line}" for line in one.text.splitlines())
    return "\n\n".join(filter(None, [text, *map(_file, one.files)]))


def _file(file: SentFile) -> str:
    facts = ", ".join(
        filter(None, [file.media_type, f"{file.size_bytes} bytes" if file.size_bytes else "", file.url])
    )
    return f"*File: {file.name}{f' ({facts})' if facts else ''}*"
