"""The frames that clients of the prototype and a gateway exchanged: their record, and its comparison with a hub's.

Each step of the record has one frame of a client. A hub is compared frame by frame.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from lab import ROOT
from lab.frames import Json

RECORD = ROOT / "tests" / "gateway" / "prototype_frames.json"

TIME, TIME_MS = "2026-01-01T00:00:00.000Z", 1_767_225_600_000
MADE_BY_CLIENT = re.compile(r"msg_[0-9]{13}_[0-9]+")
OPENS, SENDS, CLOSES = "opens", "sends", "closes"
FIXED: Mapping[str, tuple[Any, ...]] = {  # for values that differ between runs, by key: one of each type
    "timestamp": (TIME, TIME_MS),
    "received": (TIME, TIME_MS),
    "lastHeartbeatSent": (TIME,),
    "clientId": ("gw-1",),
    "uptime": (1.5,),
    "memoryUsage": ({"rss": 1},),
    "host": ("127.0.0.1",),
    "port": (18789,),
    "redisConnected": (True,),
    "pendingResponses": (0,),
    "details": ("the text is not JSON",),
}


@dataclass(frozen=True)
class RecordedFrame:
    """A frame that a client got."""

    client: str
    frame: Json


@dataclass(frozen=True)
class Step:
    """An act of one client, and every frame that this client and others got because of it.

    `does`: OPENS, with `query` as the query of its address, SENDS the message `text`, or CLOSES.
    """

    client: str
    does: str
    query: str = ""
    text: str = ""
    answers: list[RecordedFrame] = field(default_factory=list)

    def answers_of(self, client: str) -> list[Json]:
        """The frames that a client got, in order."""
        return [answer.frame for answer in self.answers if answer.client == client]


def read_steps() -> list[Step]:
    """Read the steps of the record."""
    steps = json.loads(RECORD.read_text())["steps"]
    return [Step(**one | {"answers": [RecordedFrame(**answer) for answer in one["answers"]]}) for one in steps]


def write_steps(steps: list[Step], source: str) -> None:
    """Write the record. `source`: the repository and the commit of the programs."""
    RECORD.write_text(json.dumps({"source": source, "steps": [asdict(one) for one in steps]}, indent=1) + "\n")


class Normaliser:
    """Replaces times, ids and measurements by values that are the same in every run."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def fix_step(self, step: Step) -> Step:
        """The step with replaced values."""
        answers = [RecordedFrame(one.client, self._fix(one.frame)) for one in step.answers]
        return Step(step.client, step.does, step.query, self._fix_text(step.text), answers)

    def _fix_text(self, text: str) -> str:
        try:
            return json.dumps(self._fix(json.loads(text)))
        except ValueError:
            return text

    def _fix(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._fix_member(key, member) for key, member in value.items()}
        if isinstance(value, list):
            return [self._fix(one) for one in value]
        if isinstance(value, str) and value.startswith("{"):  # content that is JSON as text
            return self._fix_text(value)
        if isinstance(value, str):
            return MADE_BY_CLIENT.sub(lambda found: self._number(found[0]), value)
        return value

    def _fix_member(self, key: str, value: Any) -> Any:
        for fixed in FIXED.get(key, ()):
            if isinstance(value, type(fixed)) or (isinstance(fixed, float) and isinstance(value, int)):
                return fixed
        return self._fix(value)

    def _number(self, made_id: str) -> str:
        return self._ids.setdefault(made_id, f"msg_{len(self._ids) + 1}")


AGENT_OFFLINE = 3002

FramePath = tuple[str, ...]

MORE_KEYS: Mapping[str, frozenset[str]] = {  # further keys of a hub's frames, by type
    "message": frozenset({"id", "agent", "sessionId", "metadata"}),
    "broadcast": frozenset({"id", "agent", "metadata"}),
    "error": frozenset({"code", "timestamp"}),
    "health": frozenset({"status.status", "status.timestamp", "status.version"}),
}


class Accepted(NamedTuple):
    """An intended difference at `path`, in the answers to a client's frame that contains `text`."""

    text: str
    path: FramePath
    why: str


FAILURE: FramePath = ("a failure",)
ACCEPTED = (
    Accepted('"agent": "absent"', ("queued",), "for a name that no agent has ever had, the hub keeps no message"),
    Accepted('"in_reply_to', ("correlationId",), "`sendResponse` answers the message that it names"),
    Accepted('"in_reply_to', ("content", "role"), "the role of an answer is `agent`"),
    Accepted("", FAILURE, "a sender is told that the recipient left without an answer, and waits no longer"),
)


def is_failure(frame: Json) -> bool:
    """True if a frame says that a recipient left without an answer; the prototype's gateway sends none."""
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


def _describe(where: str, step: Step, text: str, path: FramePath) -> Difference:
    said = step.text.replace("\\", "")  # content may be JSON as text
    accepted = next((one for one in ACCEPTED if one.text in said and one.path == path), None)
    return Difference(f"{where}: {text}", accepted)


def _compare_answers(expected: Step, shown: Step) -> Iterator[tuple[str, FramePath]]:
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


def _compare_frames(expected: Json, shown: Json) -> Iterator[tuple[str, FramePath]]:
    more = MORE_KEYS.get(expected["type"], frozenset())
    yield from ((text, path) for text, path in _compare(expected, shown) if ".".join(path) not in more)


def _compare(expected: Any, shown: Any, path: FramePath = ()) -> Iterator[tuple[str, FramePath]]:
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
