"""A2A 0.3 beside 1.0: the same things in other clothes (sections 1.5 to 1.8 of the wire)."""

from typing import Any

import msgspec

from agents.transcript.pieces import Json, Part

UPDATES = {"status-update": "statusUpdate", "artifact-update": "artifactUpdate"}


def part_to_03(part: Part) -> Json:
    """A part of 1.0 as 0.3 writes it; JSON that is no object is wrapped."""
    extra: Json = {} if isinstance(part.metadata, msgspec.UnsetType) else {"metadata": part.metadata}
    if isinstance(part.text, str):
        return {"kind": "text", "text": part.text, **extra}
    if part.data is not msgspec.UNSET:
        if isinstance(part.data, dict):
            return {"kind": "data", "data": part.data, **extra}
        marked = {**extra.get("metadata", {}), "data_part_compat": True}
        return {"kind": "data", "data": {"value": part.data}, "metadata": marked}
    file: Json = {"bytes": part.raw} if isinstance(part.raw, str) else {"uri": part.url}
    named = {"name": part.filename, "mimeType": part.media_type}
    return {"kind": "file", "file": {**file, **{key: value for key, value in named.items() if value}}, **extra}


def event_from_03(value: Any) -> Any:
    """A result of 0.3 as an event of 1.0; what is none is given back as it is, to be refused."""
    if not isinstance(value, dict):
        return value
    kind = value.get("kind")
    kind = kind if isinstance(kind, str) and kind else _kind_of(value)
    if kind in UPDATES:
        return {UPDATES[kind]: task_from_03(value)}
    return {kind: task_from_03(value)} if kind in ("task", "message") else value


def task_from_03(value: Any) -> Any:
    """A task, message or update with its parts as 1.0 writes them."""
    if not isinstance(value, dict):
        return value
    found = dict(value)
    if isinstance(value.get("parts"), list):
        found["parts"] = [_part_from_03(part) for part in value["parts"]]
    for name in ("status", "message", "artifact"):
        if name in value:
            found[name] = task_from_03(value[name])
    for name in ("artifacts", "history"):
        if isinstance(value.get(name), list):
            found[name] = [task_from_03(one) for one in value[name]]
    return found


def _kind_of(value: Json) -> str:
    """What it must be when it does not say."""
    if "artifact" in value:
        return "artifact-update"
    if "status" in value:
        return "task" if "id" in value else "status-update"
    return "message" if "parts" in value else ""


def _part_from_03(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    found = {name: part[name] for name in ("text", "data", "metadata") if part.get(name) is not None}
    file = part.get("file")
    if isinstance(file, dict):
        names = {"bytes": "raw", "uri": "url", "name": "filename", "mimeType": "mediaType"}
        found |= {ours: file[theirs] for theirs, ours in names.items() if file.get(theirs) is not None}
    metadata, data = found.get("metadata"), found.get("data")
    if isinstance(metadata, dict) and metadata.get("data_part_compat") is True and isinstance(data, dict):
        found["data"] = data.get("value")
        found["metadata"] = {name: value for name, value in metadata.items() if name != "data_part_compat"}
        if not found["metadata"]:
            del found["metadata"]
    return found
