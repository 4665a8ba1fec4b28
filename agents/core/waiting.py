"""The open turns of this process with their replies so far, and the waking of their followers."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from time import monotonic
from typing import Any

from agents.core.failures import failed
from agents.core.post import ExtraPiece, Final, PostedChunk, ReplyMessage
from agents.core.types import Ask, OpenTurn, SettledTurn, TurnEnding
from agents.models.choices import Interruption, Outcome, TurnFailure
from agents.transcript.pieces import (
    ApprovalAsked,
    ApprovalDecided,
    ArtifactPiece,
    LastWords,
    Part,
    Piece,
    Usage,
    describe_left_out,
    joined_texts,
    plain_text_in,
    text_in,
)
from kit import sql
from kit.failpoints import reach
from kit.newest import NewestEntries
from kit.tasks import TaskSet, Waiters

logger = logging.getLogger(__name__)

LATE_KEPT = 256

OnChunk = Callable[[str], None]
REASONS: dict[str, TurnFailure | Interruption] = {
    str(one): one for kind in (TurnFailure, Interruption) for one in kind
}


class RunningTurn:
    """One turn of this process, from its ask to its stored end.

    A surface makes the turn of an ask and passes it to `Dispatcher.ask`; a subclass stores what its surface keeps
    with the end. Links fill the turn; any number of surfaces follow it, each from the beginning. The reply is
    bounded by the caps that the link keeps on chunks and reply size.

    `is_admitted`: the agent is asked, and `turn` is set; before that the ask may wait for a free agent. `ending`:
    the end of the wait for the reply; the first ending stands. `is_direct`: the agent answered with a message, not
    with a task. `is_decided`: the hub knows whether the answer is direct, or the turn has ended. `link_decides`:
    the link finds out whether the answer is direct; otherwise the first piece makes the answer a task. `is_due`: a
    response to the caller is due, because the turn has ended, or because its agent waits for the caller's
    approval. `is_settled`: the end is committed and kept. `until_decided`, `until_due`, `until_settled`: the
    waiters for `is_decided`, `is_due`, `is_settled`. `until_woken`: the waiter of an ask that waits for a free
    agent. `on_ending`: called once when `ending` is set. `context`: the context variables of the request that
    asked, for the log. `waited_s`: the time in line for a free agent. `started_at`, `delivered_at`,
    `first_piece_at`: moments of the monotonic clock, the first before admission; None: did not happen.
    """

    turn: OpenTurn
    context: Context
    started_at: float

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.is_admitted = False
        self.pieces: list[Piece] = []
        self.agent_is_done = False
        self.usage: Usage | None = None
        self.ending: TurnEnding | None = None
        self.on_ending: Callable[[], None] | None = None
        self.until_woken = Waiters()
        self.until_decided = Waiters()
        self.until_due = Waiters()
        self.until_settled = Waiters()
        self.is_direct = self.is_decided = self.is_due = self.is_settled = False
        self.link_decides = False
        self.on_chunk: OnChunk | None = None
        self.waited_s: float | None = None
        self.delivered_at: float | None = None
        self.first_piece_at: float | None = None
        self._stored: SettledTurn | None = None
        self._settled: asyncio.Future[SettledTurn] | None = None
        self._waits_for: set[str] = set()
        self._until_more = Waiters()

    @property
    def text(self) -> str:
        """The text of the reply so far."""
        return text_of(self.pieces)

    @property
    def settled(self) -> asyncio.Future[SettledTurn]:
        """A future of the committed end, created on first use and shared by all waiters."""
        if self._settled is None:
            self._settled = asyncio.get_running_loop().create_future()
            if self._stored is not None:
                self._settled.set_result(self._stored)
        return self._settled

    def extra_writes(self, settled: SettledTurn) -> Sequence[sql.Query]:
        """Return what the surface writes in the transaction that settles the turn; see `ExtraWrites`."""
        return ()

    def keep_end(self, settled: SettledTurn) -> Coroutine[Any, Any, None] | None:
        """Store what the surface keeps of the end; returns a coroutine if that must wait.

        The end is committed, but followers do not see it yet.
        """

    def record(self) -> None:
        """Record that the turn was admitted or has a new piece. Returns at once."""

    def admit(self, turn: OpenTurn) -> None:
        """Set the turn of the admitted ask, which may have waited before."""
        self.turn, self.is_admitted = turn, True
        self.record()

    def becomes_task(self) -> None:
        """Note that the answer will be a task, not a direct message, so that streams can begin."""
        if not self.is_decided:
            self.is_decided = True
            if self.until_decided:
                self.until_decided.wake()

    def take(self, message: ReplyMessage) -> None:
        """Add a piece or the end of the reply; a message after the end only shows that the agent is done."""
        if isinstance(message, Final):
            if message.reason != TurnFailure.REPLY_TOO_LARGE:
                self.agent_is_done = True
            if message.usage is not None:  # also the usage of a late reply: it was paid for
                self.usage = message.usage
        if self.ending is not None:
            return
        if isinstance(message, Final):
            self.is_direct = message.direct
            self.end(self._ending_of(message))
        else:
            self._add(message)

    def end(self, ending: TurnEnding) -> None:
        """End the wait for the reply; the first ending stands."""
        if self.ending is None:
            self.ending = ending
            on_ending, self.on_ending = self.on_ending, None  # which refers to the turn: no circle may stay
            if on_ending is not None:
                on_ending()
            elif self.until_woken:
                self.until_woken.wake()

    def publish(self, settled: SettledTurn) -> Coroutine[Any, Any, None] | None:
        """Let the surface store the committed end, then show the end to every follower.

        Returns a coroutine that does it if the surface must wait.
        """
        try:
            keeping = self.keep_end(settled)
        except Exception:
            logger.exception("turn.on_settled_failed", extra={"chat_id": self.ask.chat_id})
            keeping = None
        if keeping is not None:
            return self._publish_once_kept(keeping, settled)
        self._show_end(settled)
        return None

    async def _publish_once_kept(self, keeping: Coroutine[Any, Any, None], settled: SettledTurn) -> None:
        try:
            await keeping
        except Exception:
            logger.exception("turn.on_settled_failed", extra={"chat_id": self.ask.chat_id})
        self._show_end(settled)

    def _show_end(self, settled: SettledTurn) -> None:
        self._stored = settled
        self.is_settled = self.is_due = self.is_decided = True
        # A follower that waits for the future without a shield cancels the future when the follower is cancelled.
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(settled)
        for waiters in (self.until_settled, self.until_due, self.until_decided, self._until_more):
            if waiters:
                waiters.wake()

    async def ended(self, within_s: float) -> bool:
        """Wait for the end of the turn; returns False if it is not in time. A cancelled wait does not stop the
        turn.
        """
        return self.is_settled or await self.until_settled.wait(within_s)

    async def more_than(self, told: int, within_s: float) -> bool:
        """Wait until there are more than `told` pieces, or the end; returns False if neither came in time."""
        return len(self.pieces) > told or self.is_settled or await self._until_more.wait(within_s)

    def _add(self, message: PostedChunk | ExtraPiece) -> None:
        if message.seq != len(self.pieces):
            self.end(failed(TurnFailure.REPLY_LOST))
            return
        if self.first_piece_at is None:
            self.first_piece_at = monotonic()
        self.pieces.append(message.text if isinstance(message, PostedChunk) else message.piece)
        if isinstance(self.pieces[-1], ApprovalAsked | ApprovalDecided):
            self._ask_or_go_on(self.pieces[-1])
        if not self.is_decided and not self.link_decides:
            self.becomes_task()
        if reach:
            reach("first-chunk")
        if self.on_chunk is not None and (text := _text_added(self.pieces[-1])):
            self.on_chunk(text)
        self.record()
        self._until_more.wake()

    def _ask_or_go_on(self, piece: ApprovalAsked | ApprovalDecided) -> None:
        if isinstance(piece, ApprovalAsked):
            self._waits_for.add(piece.request_id)
        else:
            self._waits_for.discard(piece.request_id)
        self.is_due = bool(self._waits_for)
        if self.is_due:
            self.until_due.wake()

    def _ending_of(self, final: Final) -> TurnEnding:
        reason = REASONS.get(final.reason)
        if isinstance(reason, TurnFailure):
            return failed(reason, final.text or "")
        if final.chunks != len(self.pieces):
            return failed(TurnFailure.REPLY_LOST)
        text = final.text if final.text is not None else self.text
        return TurnEnding(outcome=Outcome.COMPLETED, reason=reason or "", text=text)


def text_of(pieces: Sequence[Piece]) -> str:
    """The text of a reply: its chunks, or the text of the artifacts that are the reply; else its last words."""
    texts: dict[str, list[str]] = {}
    words = ""
    for piece in pieces:
        if isinstance(piece, str):
            texts.setdefault("", []).append(piece)
        elif isinstance(piece, LastWords):
            words = text_in(piece.parts)
        elif isinstance(piece, ArtifactPiece) and piece.lead is not None:
            told = texts.setdefault(piece.artifact_id, [])
            if not piece.append:
                told.clear()
            told.append(plain_text_in(piece.parts))
    return joined_texts("".join(told) for told in texts.values()) or words


def left_out_of(pieces: Sequence[Piece], shown: Sequence[Part] = ()) -> list[str]:
    """A line for each part of artifacts that is not in the text of the reply, and not one of `shown`."""
    made = [(one, part) for one in pieces if isinstance(one, ArtifactPiece) for part in one.parts]
    are_shown = {id(part) for part in shown}  # by identity, because equal parts may both have to be named
    others = [
        describe_left_out(f"artifact {one.artifact_id}", part)
        for one, part in made
        if id(part) not in are_shown and (one.lead is None or not plain_text_in([part]))
    ]
    return [*dict.fromkeys(others)]


def text_with_left_out(text: str, pieces: Sequence[Piece]) -> str:
    """A reply for an agent that gets only text, with a line for each part that is not in the text."""
    return "\n".join(filter(None, [text, *(f"[left out: {line}]" for line in left_out_of(pieces))]))


def _text_added(piece: Piece) -> str:
    """The text that a piece adds for a reader of the growing reply."""
    if isinstance(piece, str):
        return piece
    if not isinstance(piece, ArtifactPiece) or piece.lead is None:
        return ""
    text = plain_text_in(piece.parts)
    return f"{piece.lead}{text}" if text else ""


# The arguments are the chat id, the text of the late reply (may be empty), and the usage that the agent reported
Release = Callable[[str, str, Usage | None], Coroutine[Any, Any, None]]


class WaitingTurns:
    """The turns this process waits for, by chat id, and the latest turns that ended before their agent was done.

    `release`: stores a late reply and frees its agent.
    """

    def __init__(self, release: Release) -> None:
        self._release = release
        self._releasing = TaskSet()
        self._turns: dict[str, RunningTurn] = {}
        self._late = NewestEntries[str, list[Piece]](LATE_KEPT)

    def expect(self, running: RunningTurn) -> None:
        """Take replies for this turn from now on."""
        self._turns[running.ask.chat_id] = running

    def forget(self, running: RunningTurn) -> None:
        """Stop taking replies for the turn: later replies are late."""
        chat_id = running.ask.chat_id
        del self._turns[chat_id]
        may_be_told_late = running.ask.tells and not running.pieces  # the turn ended before its reply came
        was_too_large = running.ending is not None and running.ending.reason == TurnFailure.REPLY_TOO_LARGE
        # A part of a reply that was too large must not pass for a complete late reply.
        if (not running.agent_is_done or may_be_told_late) and not was_too_large:
            self._late[chat_id] = list(running.pieces)  # a copy: late pieces are no part of the turn's reply

    def find(self, chat_id: str) -> RunningTurn | None:
        """The open turn of that id, if it is one of this process."""
        return self._turns.get(chat_id)

    def take(self, message: ReplyMessage) -> None:
        """Pass a message to its turn. A `Final` without a waiting turn is late: it frees the agent.

        An agent whose late reply became too large may still be sending it: another `Final` frees that agent.
        """
        running = self._turns.get(message.chat_id)
        if running is not None:
            running.take(message)
        elif isinstance(message, Final):
            text = self._late_text(message)
            if message.reason != TurnFailure.REPLY_TOO_LARGE:
                self._releasing.start(self._release(message.chat_id, text, message.usage), name="release")
        elif message.chat_id in self._late:
            self._late[message.chat_id].append(message.text if isinstance(message, PostedChunk) else message.piece)

    async def close(self) -> None:
        """Stop freeing agents, because the process ends and its rows are deleted."""
        await self._releasing.cancel()

    def _late_text(self, final: Final) -> str:
        """The text of a late reply; empty if the reply failed or is not complete."""
        pieces = self._late.pop(final.chat_id, [])
        if final.reason:
            return ""
        if final.text is not None:
            return final.text
        return text_of(pieces) if final.chunks == len(pieces) else ""
