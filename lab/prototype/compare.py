"""Compares the frames that a hub sends with those of the prototype's own gateway, frame by frame."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lab.frames import Json
from lab.prototype.record import Step

AGENT_OFFLINE = 3002

Path = tuple[str, ...]

MORE_KEYS: Mapping[str, frozenset[str]] = {  # further keys of a hub's frames, by type
    "message": frozenset({"id", "agent", "sessionId", "metadata"}),
    "broadcast": frozenset({"id", "agent", "metadata"}),
    "error": frozenset({"code", "timestamp"}),
    "health": frozenset({"status.status", "status.timestamp", "status.version"}),
}


class Accepted(NamedTuple):
    """An intended difference at `path`, in the answers to a client's frame that contains `text`."""

    text: str
    path: Path
    why: str


FAILURE: Path = ("a failure",)
ACCEPTED = (
    Accepted('"agent": "absent"', ("queued",), "for a name that no agent has ever had, the hub keeps no message"),
    Accepted('"in_reply_to', ("correlationId",), "`sendResponse` answers the message that it names"),
    Accepted('"in_reply_to', ("content", "role"), "the role of an answer is `agent`"),
    Accepted("", FAILURE, "a sender is told that the recipient left without an answer, and waits no longer"),
)


def is_failure(frame: Json) -> bool:
    """Whether a frame says that a recipient left without an answer; the prototype's gateway sends none."""
    return frame["type"] == "error" and frame.get("code") == AGENT_OFFLINE and "queued" not in frame


class Difference(NamedTuple):
    """One difference. `accepted`: None if the difference is a fault."""

    text: str
    accepted: Accepted | None = None


def find_differences(expected: Sequence[Step], shown: Sequence[Step]) -> list[Difference]:
    """The differences between two runs of the same steps."""
    found: list[Difference] = []
    for number, (one, other) in enumerate(zip(expected, shown, strict=False), start=1):
        where = f"step {number}, {one.client} {one.does} {one.query or one.text}"
        if (one.client, one.does, one.query) != (other.client, other.does, other.query):
            return [*found, Difference(f"{where}: then {other.client} {other.does} {other.text}")]
        found += [_describe(where, one, text, path) for text, path in _compare_answers(one, other)]
    if len(expected) != len(shown):
        found.append(Difference(f"{len(expected)} steps, not {len(shown)}"))
    return found


def _describe(where: str, step: Step, text: str, path: Path) -> Difference:
    said = step.text.replace("\\", "")  # content may be JSON as text
    accepted = next((one for one in ACCEPTED if one.text in said and one.path == path), None)
    return Difference(f"{where}: {text}", accepted)


def _compare_answers(expected: Step, shown: Step) -> Iterator[tuple[str, Path]]:
    """The differences in the frames that each client got, in order, each with its path in the frame."""
    clients = sorted({answer.client for answer in (*expected.answers, *shown.answers)})
    for client in clients:
        theirs, ours = expected.answers_of(client), shown.answers_of(client)
        for failure in filter(is_failure, ours):
            yield f"{client} is sent {failure}", FAILURE
        ours = [one for one in ours if not is_failure(one)]
        types, types_shown = [one["type"] for one in theirs], [one.get("type") for one in ours]
        if types != types_shown:
            yield f"{client} is sent {types_shown}, not {types}", ()
            continue
        for one, other in zip(theirs, ours, strict=True):
            for text, path in _compare_frames(one, other):
                yield f"{client}, {one['type']}.{'.'.join(path)}: {text}", path


def _compare_frames(expected: Json, shown: Json) -> Iterator[tuple[str, Path]]:
    more = MORE_KEYS.get(expected["type"], frozenset())
    yield from ((text, path) for text, path in _compare(expected, shown) if ".".join(path) not in more)


def _compare(expected: Any, shown: Any, path: Path = ()) -> Iterator[tuple[str, Path]]:
    """The differences between two values. Null in `expected` matches any value: the gateway did not know it."""
    if expected is None:
        return
    if isinstance(expected, dict) and isinstance(shown, dict):
        for key in sorted(expected.keys() | shown.keys()):
            if key not in shown:
                yield "is missing", (*path, key)
            elif key not in expected:
                yield f"is more: {shown[key]}", (*path, key)
            else:
                yield from _compare(expected[key], shown[key], (*path, key))
    elif isinstance(expected, list) and isinstance(shown, list):
        if _sorted(expected) != _sorted(shown):
            yield f"{shown}, not {expected}", path
    elif _kind_of(expected) != _kind_of(shown) or expected != shown:
        yield f"{shown!r}, not {expected!r}", path


def _sorted(values: list[Any]) -> list[str]:
    """Sort a list, because lists of agents have no order."""
    return sorted(json.dumps(one, sort_keys=True) for one in values)


def _kind_of(value: Any) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)
