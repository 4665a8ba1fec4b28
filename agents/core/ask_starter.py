"""Starts turns for all surfaces except the A2A bridge, and for agents that ask other agents.

It builds an `Ask` like the bridge does; the same ledger admits and settles it.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from agents.core.dispatch import Dispatcher
from agents.core.errors import Unavailable
from agents.core.ledger import Ledger
from agents.core.ports import Notifier
from agents.core.types import Ask, SettledTurn, Source, Target
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome, Surface
from agents.transcript.recording import NewEvent, payload_of
from kit import trace
from kit.durations import seconds
from kit.ids import time_ordered
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

TURN_WAIT_S = seconds(900.0)  # how long a turn stays open when no request waits for it (section 4.4)
PEER_TIMEOUT_S = seconds(120.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """The user on whose behalf an ask is made. `chain`: the sessions that an agent's onward ask came through.

    `traceparent`: the span of the asking request, if any. `parent`: the turn in which an agent asks.
    """

    user_id: int
    login: str
    chain: tuple[int, ...] = ()
    traceparent: str = ""
    parent: str = ""


class AskStarter:
    """Starts turns for native surfaces and agents, and mirrors their ends to the session that asked."""

    def __init__(self, *, dispatcher: Dispatcher, ledger: Ledger, notifier: Notifier) -> None:
        self._dispatcher = dispatcher
        self._ledger = ledger
        self._notifier = notifier
        self._mirroring = TaskSet()

    async def ask(
        self,
        asker: Asker,
        target: Target,
        text: str,
        *,
        surface: Surface,
        wait_s: float = TURN_WAIT_S,
        tells: bool = False,
        source: Source | None = None,
        files: Sequence[int] = (),
    ) -> RunningTurn:
        """Admit an ask and start its turn; the caller may follow it by `RunningTurn.settled`.

        Raises:
            Denied: nothing was sent; the audit row says why.
            NotPublished, FileGone, Unavailable: nothing was sent, no row was written.
        """
        ask = Ask(
            chat_id=time_ordered(),
            target=target,
            caller_id=asker.user_id,
            caller_login=asker.login,
            surface=surface,
            question=text,
            wait_s=wait_s,
            tells=tells,
            source=source,
            chain=asker.chain,
            files=tuple(files),
            traceparent=trace.follow(asker.traceparent),
            parent=asker.parent,
        )
        running = await self._dispatcher.ask(ask, _nothing)
        if source is not None and source.mirrors:
            self._mirroring.start(self._mirror_end(running, source), name=f"mirror {ask.chat_id}")
        return running

    async def close(self) -> None:
        """Stop mirroring."""
        await self._mirroring.cancel()

    async def _mirror_end(self, running: RunningTurn, source: Source) -> None:
        """Report the end to the session that asked: the reply to its agent, a missing reply to its transcript."""
        in_time = running.is_settled or await running.until_settled.wait(PEER_TIMEOUT_S)
        if not in_time or not _is_answered(running.settled.result()):
            peer = payload_of(peerLogin=source.peer_login, peerSessionId=source.peer_session_id)
            with suppress(Unavailable):  # the session may be gone; the reply is reported all the same
                await self._ledger.record(NewEvent(source.session_id, "chat", "peer-timeout", peer))
        settled = await asyncio.shield(running.settled)  # others wait for it too
        text = f"error: {settled.own_words}" if settled.own_words else settled.text
        if _is_answered(settled) and text:
            ask = running.turn.ask
            await self._notifier.route_reply(
                source.session_id,
                chat_id=ask.chat_id,
                from_name=source.peer_login or "",
                text=text,
                origin="operator",
            )


def _is_answered(settled: SettledTurn) -> bool:
    """Whether the agent sent a text: a reply, or its reason for not answering."""
    return settled.outcome is Outcome.COMPLETED or bool(settled.own_words)


async def _nothing(settled: SettledTurn) -> None:
    """Does nothing: this surface needs no callback before the end is published."""
