"""The asks of this process that wait until an agent is free (docs/adr/0073).

Their order, over all processes, is that of their rows; admission says who is next. Here it is asked again: for the
first of this process that waits for a session, twice a second, and at once when a turn of the session ends here.
"""

import logging
from collections.abc import Iterator

from agents.core.errors import Denied, GaveUp, NotPublished, Unavailable, Waits
from agents.core.ledger import Ledger
from agents.core.ports import Clock
from agents.core.types import Ask, OpenTurn, SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome
from kit.durations import seconds

logger = logging.getLogger(__name__)

LOOK_EVERY_S = seconds(0.5, at_least_s=0.1)
MOST_WAITING = 512
REMOVED = "removed"


class _Waiter:
    """An ask that waits, and the bell that wakes it."""

    def __init__(self, running: RunningTurn) -> None:
        self.running = running
        self._is_rung = False

    def ring(self) -> None:
        """It may be its turn."""
        self._is_rung = True
        self.running.until_replied.wake()

    async def rung(self, within_s: float) -> None:
        """Wait for the bell, the end of the wait, or so long."""
        if not self._is_rung and self.running.ending is None:
            await self.running.until_replied.wait(within_s)
        self._is_rung = False


class Line:
    """Asks that wait here, by session, the first first."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._waiters: dict[str, _Waiter] = {}
        self._lines: dict[int, dict[str, _Waiter]] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def __iter__(self) -> Iterator[RunningTurn]:
        return iter([waiter.running for waiter in self._waiters.values()])

    @property
    def is_full(self) -> bool:
        """Whether another ask cannot wait here."""
        return len(self._waiters) >= MOST_WAITING

    def find(self, chat_id: str) -> RunningTurn | None:
        """The ask of that id, while it waits here."""
        waiter = self._waiters.get(chat_id)
        return waiter.running if waiter else None

    def ring(self, session_id: int) -> None:
        """A turn of the session ended: whose turn is it now?"""
        for waiter in self._lines.get(session_id, {}).values():
            waiter.ring()
            return

    async def wait(self, running: RunningTurn, waits: Waits) -> OpenTurn | SettledTurn:
        """The turn that the ask becomes; or why it becomes none, audited."""
        ask = running.turn.ask
        waiter = _Waiter(running)
        line = self._lines.setdefault(ask.target.session_id, {})
        self._waiters[ask.chat_id] = line[ask.chat_id] = waiter
        deadline = self._clock() + waits.wait_s
        try:
            return await self._see_through(waiter, line, waits.refusal, deadline)
        finally:
            del self._waiters[ask.chat_id], line[ask.chat_id]
            if not line:
                del self._lines[ask.target.session_id]
            self.ring(ask.target.session_id)

    async def _see_through(
        self, waiter: _Waiter, line: dict[str, _Waiter], refusal: Denied, deadline: float
    ) -> OpenTurn | SettledTurn:
        running, ask = waiter.running, waiter.running.turn.ask
        while (left_s := deadline - self._clock()) > 0:
            is_first = next(iter(line)) == ask.chat_id
            await waiter.rung(min(left_s, LOOK_EVERY_S) if is_first else left_s)
            if (ending := running.ending) is not None:
                return await self._gave_up(ask, GaveUp(), ending.outcome, ending.reason)
            if self._clock() >= deadline:
                break
            try:
                return await self._ledger.admit(ask, in_line=True)
            except Waits as still:
                refusal = still.refusal
            except Denied as denied:
                return _never_asked(Outcome.DENIED, denied.reason, denied)
            except NotPublished:
                return _never_asked(Outcome.FAILED, REMOVED, GaveUp())
            except Unavailable:
                break
            except Exception:  # whatever happens, the wait ends
                logger.exception("line.broken", extra={"chat_id": ask.chat_id})
                break
        return await self._gave_up(ask, refusal, Outcome.DENIED, refusal.reason)

    async def _gave_up(self, ask: Ask, denied: Denied, outcome: Outcome, reason: str) -> SettledTurn:
        try:
            await self._ledger.deny(ask, denied, in_line=True)
        except Unavailable:  # no audit row; but its place would block the agent for those behind it
            self._ledger.withdraw(ask)
        return _never_asked(outcome, reason, denied)


def _never_asked(outcome: Outcome, reason: str, refused: Denied) -> SettledTurn:
    return SettledTurn(outcome, reason, has_also=False, refused=refused)
