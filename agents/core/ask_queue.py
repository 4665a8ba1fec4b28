"""The asks of this process that wait for a busy agent (docs/adr/0073).

The rows of the asks determine their order over all processes; admission decides which ask is next. This module
repeats admission for the first waiting ask of each session: twice a second, and at once when a turn of the session
ends in this process.
"""

import logging

from agents.core.errors import Denied, MustWait, NotPublished, Unavailable, WaitAbandoned
from agents.core.ledger import Ledger
from agents.core.ports import Clock
from agents.core.types import Ask, OpenTurn, SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome
from kit.durations import seconds

logger = logging.getLogger(__name__)

LOOK_EVERY_S = seconds(0.5, at_least_s=0.1)
MAX_QUEUED = 512
REMOVED = "removed"


class AskQueue:
    """The waiting asks of this process, by session, in order: at most MAX_QUEUED."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._lines: dict[int, dict[str, RunningTurn]] = {}  # by session and chat id
        self._woken: set[str] = set()
        self.count = 0  # a number, because the ledger's thread reads it

    @property
    def is_full(self) -> bool:
        """True if no further ask can wait in this process."""
        return self.count >= MAX_QUEUED

    def wake_first(self, session_id: int) -> None:
        """Wake the first ask that waits for the session, because a turn of the session ended."""
        for chat_id, running in self._lines.get(session_id, {}).items():
            self._woken.add(chat_id)
            running.until_woken.wake()
            return

    async def wait(self, running: RunningTurn, waits: MustWait) -> OpenTurn | SettledTurn:
        """Wait for admission; returns the turn, or a refusal, of which the audit row is written."""
        ask = running.ask
        line = self._lines.setdefault(ask.target.session_id, {})
        line[ask.chat_id] = running
        self.count += 1
        try:
            return await self._see_through(running, line, waits.refusal, self._clock() + waits.wait_s)
        finally:
            self.count -= 1
            self._woken.discard(ask.chat_id)
            del line[ask.chat_id]
            if not line:
                del self._lines[ask.target.session_id]
            self.wake_first(ask.target.session_id)

    async def _see_through(
        self, running: RunningTurn, line: dict[str, RunningTurn], refusal: Denied, deadline: float
    ) -> OpenTurn | SettledTurn:
        ask = running.ask
        while (left_s := deadline - self._clock()) > 0:
            is_first = next(iter(line)) == ask.chat_id
            if ask.chat_id not in self._woken and running.ending is None:
                await running.until_woken.wait(min(left_s, LOOK_EVERY_S) if is_first else left_s)
            self._woken.discard(ask.chat_id)
            if (ending := running.ending) is not None:
                return await self._gave_up(ask, WaitAbandoned(), ending.outcome, ending.reason)
            if self._clock() >= deadline:
                break
            try:
                return await self._ledger.admit(ask, in_queue=True)
            except MustWait as still:
                refusal = still.refusal
            except Denied as denied:
                return _make_refused_end(Outcome.DENIED, denied.reason, denied)
            except NotPublished:
                return _make_refused_end(Outcome.FAILED, REMOVED, WaitAbandoned())
            except Unavailable:
                break
            except Exception:  # any failure ends the wait
                logger.exception("line.broken", extra={"chat_id": ask.chat_id})
                break
        return await self._gave_up(ask, refusal, Outcome.DENIED, refusal.reason)

    async def _gave_up(self, ask: Ask, denied: Denied, outcome: Outcome, reason: str) -> SettledTurn:
        try:
            await self._ledger.deny(ask, denied, in_queue=True)
        except Unavailable:  # the audit row is lost, but the position would block the asks behind it
            self._ledger.withdraw(ask)
        return _make_refused_end(outcome, reason, denied)


def _make_refused_end(outcome: Outcome, reason: str, refused: Denied) -> SettledTurn:
    return SettledTurn(outcome, reason, has_extra_writes=False, refused=refused, is_unsent=True)
