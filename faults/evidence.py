"""What is left of a run: the lines of its log, and the tables of its hub."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.rows import dict_row

from faults.oplog import Line, OpLog, read
from faults.stack import DATABASE, Stack

TURNS = """
SELECT t.*, a.handle, u.login FROM agents_turn t
LEFT JOIN agents_agent a ON a.id = t.agent_id LEFT JOIN accounts_user u ON u.id = t.caller_id ORDER BY t.id
"""
DENIED_TEXTS = ("busy", "processing a turn", "already holds", "daily budget", "rate limit", "channel offline")


@dataclass
class Evidence:
    """Read once, after the load has stopped. `asks` are the lines of that op, `by_nonce` the same in groups.

    `turns_of` are the rows of the audit by the nonce in their question.
    """

    stack: Stack
    lines: dict[str, list[Line]]
    turns: list[dict[str, Any]]
    by_nonce: dict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))
    turns_of: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    @property
    def asks(self) -> list[Line]:
        """Every request of a caller."""
        return self.lines["ask"]

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
        """Rows of the hub's database by column."""
        url = self.stack.postgres.url(DATABASE)
        with psycopg.connect(url, row_factory=dict_row, autocommit=True) as connection:
            return connection.execute(statement.encode(), values or None).fetchall()


def gather(stack: Stack, log: OpLog) -> Evidence:
    """Everything there is."""
    log.flush()
    lines: dict[str, list[Line]] = defaultdict(list)
    for line in read(log.path):
        lines[line["op"]].append(line)
    found = Evidence(stack, lines, [])
    found.turns = found.rows(TURNS)
    for ask in found.asks:
        found.by_nonce[ask["nonce"]].append(ask)
    for turn in found.turns:
        turn["nonce"] = turn["question"].partition(" ")[0]
        found.turns_of[turn["nonce"]].append(turn)
    return found
