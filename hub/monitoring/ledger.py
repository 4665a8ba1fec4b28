"""The counts of a process besides those of its ledger, and a link with spans around it."""

import time

from agents.core.ledger.thread import LedgerCounts
from agents.core.ports import Link, Spans
from agents.core.types import OpenTurn
from agents.core.waiting import RunningTurn
from agnt.service.figures import AgntCounts


class Counts(LedgerCounts):
    """The counts of the ledger; `agnt`: those of the endpoint of AGNT."""

    def __init__(self) -> None:
        super().__init__()
        self.agnt = AgntCounts()


class MeasuredLink:
    """A link whose deliveries are timed. See `agents.core.ports.Link`."""

    def __init__(self, link: Link, spans: Spans) -> None:
        self._link = link
        self._spans = spans

    def deliver_now(self, running: RunningTurn) -> bool:
        """See `agents.core.ports.Link`."""
        began_ns = time.time_ns()
        is_delivered = self._link.deliver_now(running)
        if is_delivered:
            self._spans.delivered(running.turn, began_ns)
        return is_delivered

    async def deliver(self, running: RunningTurn) -> None:
        """See `agents.core.ports.Link`."""
        began_ns, failure = time.time_ns(), ""
        try:
            await self._link.deliver(running)
        except BaseException as why:
            failure = type(why).__name__
            raise
        finally:
            self._spans.delivered(running.turn, began_ns, failure)

    async def withdraw(self, turn: OpenTurn) -> None:
        """See `agents.core.ports.Link`."""
        await self._link.withdraw(turn)

    async def close(self) -> None:
        """See `agents.core.ports.Link`."""
        await self._link.close()
