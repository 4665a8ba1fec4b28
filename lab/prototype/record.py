"""A record of the frames that clients of the prototype and a gateway exchanged; each step has one client frame."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

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
