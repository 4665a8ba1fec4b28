"""A2A 0.3 for callers whose messages have no `kind`: each result is in the forms of 0.3 and 1.0 (docs/adr/0172).

In 0.3 the member `kind` says what a result is; in 1.0 the name of the member that holds the result says so.
fasta2a sends messages without `kind` to the methods of 0.3, and reads results of 1.0. A script that sends such
messages may read results of 0.3.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from msgspec import to_builtins

from a2a_bridge.wire.dialects.dialect import EventRenderer
from a2a_bridge.wire.dialects.v03 import V03, shapes
from a2a_bridge.wire.dialects.v03.updates import StreamedTask
from a2a_bridge.wire.task import Task
from agents.transcript.pieces import Json

MEMBERS: Mapping[str, str] = {
    "task": "task",
    "message": "message",
    "status-update": "statusUpdate",
    "artifact-update": "artifactUpdate",
}
HOLDERS = frozenset({"status", "message", "history", "artifact", "artifacts", "parts"})
OF_FILES: Mapping[str, str] = {"bytes": "raw", "uri": "url", "name": "filename", "mimeType": "mediaType"}


def has_no_kinds(params: Any) -> bool:
    """Whether a message has no `kind`, and none of its parts has a `kind` or the `type` of older clients."""
    message = params.get("message") if isinstance(params, dict) else None
    if not isinstance(message, dict) or "kind" in message:
        return False
    parts = message.get("parts")
    return isinstance(parts, list) and all(
        isinstance(one, dict) and not {"kind", "type"} & one.keys() for one in parts
    )


def render_both(shown: shapes.OldFrame | shapes.OldMessage) -> Json:
    """A result of 0.3, with one more member that holds the same result in the form of 1.0."""
    flat: Json = to_builtins(shown)
    return flat | {MEMBERS[flat["kind"]]: _without_kinds(flat)}


def _without_kinds(value: Any) -> Any:
    """Messages, artifacts and parts without `kind`; files in the form of 1.0."""
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
        render_both(one) for one in streamed.render_event(task, event, is_last=is_last)
    ]


BOTH_FORMS = replace(
    V03,
    versions=frozenset(),
    bindings=(),
    render_answer=lambda task, request: render_both(shapes.render_answer(task, request)),
    render_opening=lambda task, request: [render_both(one) for one in shapes.render_opening(task, request)],
    follow=_follow,
    render_message=lambda context_id, message: render_both(shapes.render_message(context_id, message)),
)
