"""The course of an admitted turn: the prompt is delivered, the reply is awaited, and the end is stored once."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from agents.core.errors import NoReceipt, NotDelivered
from agents.core.failures import failed
from agents.core.ledger import Ledger
from agents.core.live_views import LiveViews
from agents.core.ports import Clock, Link
from agents.core.types import OpenTurn, SettledTurn, TurnEnding
from agents.core.waiting import OnChunk, RunningTurn, WaitingTurns
from agents.models.choices import TurnFailure
from agents.transcript.announcements import ReplyChunkMessage
from kit.failpoints import reach
from kit.tasks import TaskSet, wait_within

logger = logging.getLogger(__name__)

NO_REPLY = failed(TurnFailure.TIMEOUT)
NEVER_LEFT = replace(failed(TurnFailure.NOT_DELIVERED), returns_budget=True)
MAY_WORK = replace(failed(TurnFailure.CHANNEL_LOST), keeps_claim=True)  # the agent may have the prompt

OnEnd = Callable[[RunningTurn, SettledTurn | Exception], None]


class TurnCourse:
    """Takes turns from delivery to their stored end. `links`: the links by `Session.link`.

    `on_end`: called with the end of each turn, as stored, or with the error if it was not.
    """

    def __init__(
        self,
        *,
        links: Mapping[str, Link],
        ledger: Ledger,
        waiting: WaitingTurns,
        live: LiveViews,
        clock: Clock,
        on_end: OnEnd,
    ) -> None:
        self._links = links
        self._ledger = ledger
        self._waiting = waiting
        self._live = live
        self._showing = TaskSet()
        self._clock = clock
        self._on_end = on_end
        self._tasks = TaskSet()

    def begin(self, running: RunningTurn) -> None:
        """Run an admitted turn: deliver it, wait for its ending, and store the end.

        Each step calls the next one. Only a step that must wait for something else runs in an asyncio task.
        """
        turn = running.turn
        if turn.watchers:
            running.on_chunk = self._show_chunk(turn)
        self._waiting.expect(running)  # register before delivery, or a fast agent's reply would be lost
        link = self._links.get(turn.link)
        if link is None:  # this hub no longer has the link
            self._settle(running, NEVER_LEFT)
        elif running.ending is None and self._deliver_now(running, link):
            self._await_reply(running, running.ask.wait_s)
        else:
            self._tasks.start(self._deliver(running, link), name=f"deliver {running.ask.chat_id}")

    def _deliver_now(self, running: RunningTurn, link: Link) -> bool:
        try:
            return link.deliver_now(running)
        except Exception:  # any failure ends the turn
            logger.exception("turn.broken", extra={"chat_id": running.ask.chat_id})
            running.end(MAY_WORK)
            return True

    async def _deliver(self, running: RunningTurn, link: Link) -> None:
        """Deliver a prompt that has to wait, such as for another process or for an agent that reads slowly."""
        if running.ending is not None:  # the turn was ended during its admission
            self._settle(running, replace(running.ending, keeps_claim=False, returns_budget=True))
            return
        ending: TurnEnding | None = None
        deadline = self._clock() + running.ask.wait_s
        try:
            await wait_within(link.deliver(running), running.ask.wait_s)
        except TimeoutError:
            ended: TurnEnding | None = running.ending  # the agent may have ended the turn in the same moment
            ending = ended or NO_REPLY
        except NoReceipt:
            ending = MAY_WORK
        except NotDelivered:
            ending = NEVER_LEFT
        except Exception:  # any failure ends the turn
            logger.exception("turn.broken", extra={"chat_id": running.ask.chat_id})
            ending = MAY_WORK
        if ending is None:
            self._await_reply(running, deadline - self._clock())
        else:
            self._settle(running, ending)

    def _await_reply(self, running: RunningTurn, within_s: float) -> None:
        """Settle the turn at its first ending: at once, by the agent or the hub, or when the time is over."""
        running.delivered_at = self._clock()
        if reach:
            reach("after-delivery")
        if running.ending is not None:
            self._settle(running, running.ending)
            return
        timer = asyncio.get_running_loop().call_later(within_s, running.end, NO_REPLY)

        def end() -> None:
            timer.cancel()
            if running.ending is not None:
                running.context.run(self._settle, running, running.ending)

        running.on_ending = end

    def _settle(self, running: RunningTurn, ending: TurnEnding) -> None:
        """Store the end of a turn."""
        self._waiting.forget(running)
        if reach:
            reach("before-settling")
        started = running.started_at
        ending = replace(
            ending,
            latency_ms=int((self._clock() - started) * 1000),
            waited_ms=None if running.waited_s is None else int(running.waited_s * 1000),
            delivered_ms=None if (at := running.delivered_at) is None else int((at - started) * 1000),
            first_piece_ms=None if (at := running.first_piece_at) is None else int((at - started) * 1000),
            keeps_claim=ending.keeps_claim and not running.agent_is_done,
            usage=running.usage,
        )

        take = partial(self._on_end, running)
        self._ledger.settle(running.turn, ending, take, running.extra_writes)

    def _show_chunk(self, turn: OpenTurn) -> OnChunk:
        """Return a callback that sends each chunk to the operators who watch the session."""

        def show(text: str) -> None:
            chunk = ReplyChunkMessage(turn.session_public_id, turn.ask.chat_id, text, done=False)
            self._showing.start(
                self._live.publish(turn.watchers, turn.ask.target.session_id, chunk), name="show chunk"
            )

        return show
