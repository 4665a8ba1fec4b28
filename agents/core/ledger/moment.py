"""When a batch is decided, and how long claims and positions last from then on."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from agents.core.ledger.database import Database
from agents.core.ledger.texts import READ_CLOCK, Statement, statement
from agents.models.session import PROCESS_DEAD_S
from kit.durations import seconds

GRACE = timedelta(seconds=seconds(60.0))
PROCESS_DEAD = timedelta(seconds=PROCESS_DEAD_S)
# its process ends the wait itself, in time; on a busy machine a little later
POSITION_GRACE = timedelta(seconds=10)
# Run on PostgreSQL alone. `count` makes it lock all sessions before it reads the clock.
_LOCK_SESSIONS = statement(
    """
WITH locked AS MATERIALIZED (
  SELECT id FROM agents_session WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE
)
SELECT {clock}, locked_all.count FROM (SELECT count(*) AS count FROM locked) AS locked_all
""",
    clock=Statement("", READ_CLOCK),
)


class Moment:
    """When a batch is decided: by the database's clock, once the sessions it is about are locked, in one order.

    SQLite already holds its one write lock, and its clock is this host's. `values`: what a statement's `{now}`,
    `{day}` and `{alive}` are.
    """

    def __init__(self, database: Database, session_ids: Collection[int]) -> None:
        self._database = database
        self._leases: dict[float, object] = {}
        if database.is_postgresql:
            self._clock = database.send(_LOCK_SESSIONS, {"ids": database.list_of(set(session_ids))})
            self.values: dict[str, Any] = {}
            return
        self.now = datetime.now(UTC)
        now = self.now.replace(tzinfo=None)  # as SQLite stores it
        alive, until = now - PROCESS_DEAD, now + GRACE
        self.values = {"now": str(now), "day": str(now)[:10], "alive": str(alive), "until": str(until)}

    @cached_property
    def now(self) -> datetime:
        """Aware, in UTC."""
        now: datetime = self._clock.fetchall()[0][0]
        return now.astimezone(UTC)

    @cached_property
    def stored(self) -> Any:
        """As the database stores it."""
        return self._database.moment(self.now)

    @cached_property
    def day(self) -> str:
        """The day, as both databases take it."""
        return self.now.date().isoformat()

    def lease(self, wait_s: float) -> object:
        """Until when a turn holds its claim if nothing ends it."""
        if wait_s not in self._leases:
            self._leases[wait_s] = self._database.moment(self.now + timedelta(seconds=wait_s) + GRACE)
        return self._leases[wait_s]

    def position_until(self, wait_s: float) -> object:
        """Until when an ask keeps its position in a queue."""
        return self._database.moment(self.now + timedelta(seconds=wait_s) + POSITION_GRACE)
