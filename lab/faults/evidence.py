"""The evidence of a run: the lines of its log, and the tables of its hub."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lab.faults.oplog import Line, OpLog, read
from lab.faults.stack import FaultStack

TURNS = """
SELECT t.*, a.handle, u.login FROM agents_turn t
LEFT JOIN agents_agent a ON a.id = t.agent_id LEFT JOIN accounts_user u ON u.id = t.caller_id ORDER BY t.id
"""

Rows = Callable[..., list[dict[str, Any]]]


@dataclass
class Evidence:
    """The evidence, read once after the load has stopped. `by_nonce`: the lines of asks by their nonce.

    `turns_of`: the rows of the audit by the nonce in their question. `now`: the time of the database, because F12
    moves its clock. `rows` reads tables of the hub, each row by column.
    """

    lines: dict[str, list[Line]]
    stack: FaultStack | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    turns: list[dict[str, Any]] = field(default_factory=list)
    by_nonce: dict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))
    turns_of: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    rows: Rows = lambda statement: []

    @property
    def asks(self) -> list[Line]:
        """Every request of a caller."""
        return self.lines["ask"]

    def met_pause(self, line: Line) -> bool:
        """True if the web process that a client asked was paused between the request and its answer."""
        return any(
            line["url"] == pause["url"]
            and line["at"] - line["took_s"] <= pause["at"]
            and pause["at"] - pause["took_s"] <= line["at"]
            for pause in self.lines["pause"]
        )

    def add_turn(self, turn: dict[str, Any]) -> None:
        """Add one row of the audit."""
        turn["nonce"] = turn["question"].partition(" ")[0]
        self.turns.append(turn)
        self.turns_of[turn["nonce"]].append(turn)


def gather(stack: FaultStack, log: OpLog) -> Evidence:
    """Read the log and the tables of a run."""
    log.flush()
    lines: dict[str, list[Line]] = defaultdict(list)
    for line in read(log.path):
        lines[line["op"]].append(line)
    found = grouped(lines, [])
    found.stack, found.rows, found.now = stack, stack.rows, stack.now()
    for turn in found.rows(TURNS):
        found.add_turn(turn)
    return found


def grouped(lines: Mapping[str, list[Line]], turns: Sequence[dict[str, Any]]) -> Evidence:
    """Evidence of a log and of rows, without a hub to ask."""
    found = Evidence(defaultdict(list, lines))
    for ask in found.asks:
        found.by_nonce[ask["nonce"]].append(ask)
    for turn in turns:
        found.add_turn(turn)
    return found
