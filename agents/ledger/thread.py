"""The ledger as the event loop sees it: work goes to the database thread of the process, its answer comes back."""

import asyncio
import logging
import threading
from queue import SimpleQueue
from typing import Any, cast
from uuid import UUID

from agents.announcing import Carrier
from agents.errors import Denied, Unavailable, Waits
from agents.ledger.lookup import Wanted
from agents.ledger.serving import Item, LookUp, OnBatch, Queue, Serving
from agents.ledger.work import Admit, Also, Deny, Record, Release, Settle, Touch, Withdraw, Work
from agents.transcript.recording import NewEvent
from agents.types import Ask, Ending, Found, OpenTurn, SettledTurn
from kit.disk_reserve import Reserve
from kit.tasks import read_failure

logger = logging.getLogger(__name__)

MAX_WAITING = 1024
CLOSED_WITHIN_S = 10


class Ledger:
    """Admits and settles turns durably. All methods but `close` belong to the event loop."""

    def __init__(
        self,
        *,
        home: str,
        carry: Carrier | None = None,
        on_batch: OnBatch | None = None,
        reserve: Reserve | None = None,
    ) -> None:
        self._queue: Queue = SimpleQueue()
        self._serving = Serving(self._queue, home=home, carry=carry, on_batch=on_batch, reserve=reserve)
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """How many pieces of work wait for the thread."""
        return self._queue.qsize()

    async def look_up(self, digest: str | None, handle: str | None, session: UUID | None = None) -> Found:
        """Find an identity, a published agent and the token's own session; each None when there is none.

        Raises:
            Unavailable: too many wait, or the database is out of reach.
        """
        found = cast(Found, await self._submit(LookUp(Wanted(digest, handle, session))))
        if found.identity and found.identity.is_stale:
            # One that is missed is made up by the next.
            self._post(Touch(found.identity.credential_id)).add_done_callback(read_failure)
        return found

    async def admit(self, ask: Ask, *, in_line: bool = False) -> OpenTurn:
        """Decide an ask, or decide it again (`in_line`); it is durable, counted and holds its claim afterwards.

        An ask that is answered `Unavailable` although its commit happened is withdrawn when the database is back.

        Raises:
            Denied, NotPublished: refused; the audit row of a Denied is durable too.
            AlreadyAsked: an identical message is open; nothing was written.
            Waits: it has a place in the line of its agent.
            Unavailable: nothing was decided; a place it had (`in_line`) may be there still.

        When this is cancelled nobody will see the turn through: what is admitted all the same is withdrawn.
        """
        decided = self._submit(Admit(ask, in_line))
        try:
            return cast(OpenTurn, await asyncio.shield(decided))
        except asyncio.CancelledError:
            decided.add_done_callback(lambda _: self._withdraw(ask, decided))
            raise

    async def deny(self, ask: Ask, denied: Denied, *, in_line: bool = False) -> None:
        """Audit a refusal decided elsewhere. `in_line`: it waited, and gives up its place.

        Raises:
            Unavailable: nothing was written; a place is there still, see `withdraw`.
        """
        await self._submit(Deny(ask, denied, in_line))

    def withdraw(self, ask: Ask) -> None:
        """Take an ask back: end it unsent if it was admitted, and delete its place; once the database is back."""
        self._post(Withdraw(ask)).add_done_callback(read_failure)

    async def settle(self, turn: OpenTurn, ending: Ending, also: Also | None = None) -> SettledTurn:
        """End a turn; the first ending stands, and this returns the one that stands.

        `also`: see `Settle`.

        Raises:
            Unavailable: the database stayed out of reach; the turn's lease will end it.
        """
        return cast(SettledTurn, await self._post(Settle(turn, ending, also)))

    async def release_turn(self, chat_id: str, late: str = "") -> None:
        """Free the lingering claim of an ended turn: its agent finished after all, perhaps with a late reply."""
        await self._post(Release(chat_id=chat_id, late=late))

    async def record(self, event: NewEvent) -> None:
        """Write an event of a session; it is durable when this returns.

        Raises:
            Unavailable: too many wait, or the database is out of reach.
        """
        await self._submit(Record(event))

    async def release_session(self, session_id: int) -> None:
        """Free every lingering claim of a session: its agent's turn is over."""
        await self._post(Release(session_id=session_id))

    def close(self, within_s: float = CLOSED_WITHIN_S) -> None:
        """Serve what waits, then end the thread; one that takes too long is left, and the log says so."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout=within_s)
            if self._thread.is_alive():
                waiting = max(0, self.waiting - 1)  # the one that ends the thread is none of them
                logger.error("ledger.unfinished", extra={"waiting": waiting})
            self._thread = None

    def _withdraw(self, ask: Ask, decided: asyncio.Future[Any]) -> None:
        if not decided.cancelled() and isinstance(decided.exception(), Waits | None):
            self.withdraw(ask)

    def _submit(self, work: Work | LookUp) -> asyncio.Future[Any]:
        if self._queue.qsize() >= MAX_WAITING:
            raise Unavailable("too many asks wait")
        return self._post(work)

    def _post(self, work: Work | LookUp) -> asyncio.Future[Any]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serving.run, name="ledger", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.put(Item(work, loop, future))
        return future
