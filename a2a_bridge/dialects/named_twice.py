"""A2A 0.3 for a caller who names no kinds, as fasta2a does: answers name theirs in both ways (docs/adr/0173).

In 0.3 a `kind` says what a result is, in 1.0 the member that holds it. fasta2a sends messages without `kind` to
the methods of 0.3, and reads the members of 1.0. A caller who wrote such a message by hand reads 0.3.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec import to_builtins

from a2a_bridge.dialects.dialect import EventRenderer
from a2a_bridge.dialects.v03 import V03, shapes
from a2a_bridge.dialects.v03.updates import StreamedTask
from a2a_bridge.tasks.record import Task
from agents.transcript.pieces import Json

MEMBERS: Mapping[str, str] = {
    "task": "task",
    "message": "message",
    "status-update": "statusUpdate",
    "artifact-update": "artifactUpdate",
}
HOLDERS = frozenset({"status", "message", "history", "artifact", "artifacts", "parts"})
OF_FILES: Mapping[str, str] = {"bytes": "raw", "uri": "url", "name": "filename", "mimeType": "mediaType"}


def names_no_kind(params: Any) -> bool:
    """Whether a message has no `kind`, and no part of it has one, nor the `type` of older clients."""
    message = params.get("message") if isinstance(params, dict) else None
    if not isinstance(message, dict) or "kind" in message:
        return False
    parts = message.get("parts")
    return isinstance(parts, list) and all(
        isinstance(one, dict) and not {"kind", "type"} & one.keys() for one in parts
    )


def told_twice(shown: shapes.OldFrame | shapes.OldMessage) -> Json:
    """A result of 0.3 that also holds itself as 1.0 would."""
    flat: Json = to_builtins(shown)
    return flat | {MEMBERS[flat["kind"]]: _without_kinds(flat)}


def _without_kinds(value: Any) -> Any:
    """Messages, artifacts and parts without `kind`; a file as 1.0 has it."""
    if isinstance(value, list):
        return [_without_kinds(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: _without_kinds(one) if name in HOLDERS else one for name, one in value.items() if name != "kind"}
    file = made.pop("file", {})
    return made | {OF_FILES[name]: one for name, one in file.items()}


def _follow(task: Task) -> EventRenderer:
    streamed = StreamedTask(task)
    return lambda task, event, *, is_last: [
        told_twice(one) for one in streamed.render_event(task, event, is_last=is_last)
    ]


NAMED_TWICE = replace(
    V03,
    versions=frozenset(),
    bindings=(),
    render_answer=lambda task, request: told_twice(shapes.render_answer(task, request)),
    render_opening=lambda task, request: [told_twice(one) for one in shapes.render_opening(task, request)],
    follow=_follow,
    render_message=lambda context_id, message: told_twice(shapes.render_message(context_id, message)),
)
