"""The prompts of one connection: open replies, the processes that wait for them, and the callers on whose behalf
the agent works.

The caller who asked drives the session until its turn is over (section 6.3).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from msgspec import Struct

from agents.core.ports import Clock
from agents.core.post import Final, PostedPrompt
from agents.links.channel import frames
from agents.links.channel.payloads import ReplyFrame
from agents.links.channel.protocol import ChannelProtocol, TooLarge
from agents.links.sockets import Report
from agents.models.choices import TurnFailure
from agents.transcript.pieces import ApprovalAsked, ApprovalDecided
from kit.durations import seconds

LATE_REPLY_S = seconds(60.0)
REPLY_GRACE_S = seconds(5.0, at_least_s=1.25)
LONGEST_TURN_S = seconds(900.0)
FORGETS_EVERY_S = 1.0


class PendingPrompt(Struct):
    """A prompt the agent may still be working on. `waited_until`: when its caller stops waiting.

    `turn`: the chat id of its turn; empty when that turn ended before the agent came back to it.

    `stops`: how many `Stop` events end this prompt: one for each prompt given earlier, and its own.
    """

    prompt: PostedPrompt
    waited_until: float
    until: float
    turn: str = ""
    stops: int = 1
    is_answered: bool = False

    def is_waited_for(self, now: float) -> bool:
        """Whether the asker still waits for the reply; the sender of a tell never does."""
        return not self.prompt.tells and not self.is_answered and self.waited_until > now


@dataclass(frozen=True, slots=True)
class Driver:
    """The user on whose behalf the agent works now. `isolated`: it may not reach other sessions meanwhile.

    `is_certain`: the agent said for which prompt it asks, or its hooks say that it works on this prompt and on
    nothing else. `is_own`: the agent's owner asked, and no stranger's prompt is among those it may work on.

    `chain`: the sessions that led here, this one last. `turn`, `traceparent`: of the turn it works on.
    """

    user_id: int
    login: str
    isolated: bool
    chain: tuple[int, ...]
    traceparent: str = ""
    turn: str = ""
    is_certain: bool = True
    is_own: bool = False


class PendingPrompts:
    """The drives of one connection.

    A drive begins with delivery. It ends when the agent's program reports the end of its turn, and its caller
    does not wait any more. With a program without hooks it ends a moment after the reply; at the latest after 15
    minutes.
    A program queues what it is given while it works: the end of an earlier turn ends no drive without a reply.
    """

    def __init__(self) -> None:
        self._drives: dict[str, PendingPrompt] = {}
        self._has_hooks = False
        self._knows_turns = False  # a hook of this connection said where a turn begins or ends
        self._is_at_work = False  # as far as hooks say: its owner types, too
        self._forgets_at = 0.0

    def begin(self, prompt: PostedPrompt, now: float) -> None:
        """Add a prompt that is about to be sent."""
        if now >= self._forgets_at:
            self._forgets_at = now + FORGETS_EVERY_S
            self._forget_old(now)
        until = now + max(prompt.wait_s, LONGEST_TURN_S)
        self._drives[prompt.chat_id] = PendingPrompt(
            prompt, now + prompt.wait_s, until, turn=prompt.chat_id, stops=self._stops_ahead() + 1
        )

    def resume(self, prompt: PostedPrompt, for_s: float, now: float) -> None:
        """Await the reply to a prompt of an earlier connection, which may still come; its turn has ended."""
        self._drives[prompt.chat_id] = PendingPrompt(prompt, now, now + for_s)

    def remove(self, chat_id: str) -> None:
        """Remove a prompt that was not sent, or on which the agent works no more."""
        self._drives.pop(chat_id, None)

    def unwanted(self, chat_id: str, now: float) -> None:
        """Note that the caller waits no more; the agent may still work on the prompt."""
        if drive := self._drives.get(chat_id):
            drive.waited_until = min(drive.waited_until, now)

    def answered(self, chat_id: str, now: float) -> None:
        """Note that the whole reply arrived."""
        if drive := self._drives.get(chat_id):
            drive.is_answered = True
            # A program without hooks never reports the end of its turn, and
            # may act a moment longer for this caller.
            if not self._has_hooks:
                drive.until = now + REPLY_GRACE_S

    def hooked(self, *, begins: bool = False) -> None:
        """Note a report of the program: its ends of turns can be relied on. `begins`: it started to work."""
        self._has_hooks = True
        self._knows_turns = self._knows_turns or begins
        self._is_at_work = self._is_at_work or begins

    def stopped(self, now: float) -> list[str]:
        """Note the end of a turn; returns the chat ids of the prompts that end with it."""
        self._has_hooks = self._knows_turns = True
        self._is_at_work = False
        for drive in self._drives.values():
            drive.stops -= 1
        over = [one for one, drive in self._drives.items() if _is_over(drive, now)]
        for chat_id in over:
            del self._drives[chat_id]
        return over

    def find(self, now: float, chat_id: str = "") -> Driver | None:
        """Find the caller on whose behalf the agent works; None when it works for its owner alone.

        `chat_id`: the prompt for which the agent says that it asks. Without one it is that which a program with
        hooks works on, or the last that is waited for.
        Prompts of different callers at once, of which one is not over: it is unknown for whom the agent
        reaches out, so it is isolated. What the agent's owner told, or does not wait for, is over for this.
        """
        self._forget_old(now)
        drives = self._drives.values()
        if not drives:
            return None
        at_work = self._drives.get(chat_id) or self._at_work(now)
        prompt = at_work.prompt
        others = [one for one in drives if one.prompt.asker_id != prompt.asker_id]
        is_mixed = any(not one.prompt.is_own or one.is_waited_for(now) for one in others)
        isolated = any(one.prompt.isolated for one in drives) or is_mixed
        is_own = all(one.prompt.is_own for one in drives)
        is_its_turn = self._knows_turns and at_work.stops == 1  # 2: another turn goes on; 0: its own has ended
        return Driver(
            prompt.asker_id,
            prompt.asker,
            isolated,
            self._chain(prompt, now),
            prompt.traceparent,
            turn=at_work.turn,
            is_certain=chat_id in self._drives or (not others and is_its_turn),
            is_own=is_own,
        )

    def _chain(self, prompt: PostedPrompt, now: float) -> tuple[int, ...]:
        """The sessions that an onward question came through.

        The hub does not know which prompt led to that question: for the limit of depth the longest chain counts.
        Of the owner's prompts only those whose askers wait count: other askers may be asked without a cycle.
        """
        drives = self._drives.values()
        counted = [one.prompt.chain for one in drives if not one.prompt.is_own or one.is_waited_for(now)]
        return max(counted, key=len, default=prompt.chain[-1:])

    def _at_work(self, now: float) -> PendingPrompt:
        """The drive that the agent most likely works on, of one or more."""
        drives = list(self._drives.values())
        if self._has_hooks:  # such a program takes one prompt after the other
            return drives[0]
        waited_for = [one for one in drives if not one.is_answered and one.waited_until > now]
        return (waited_for or drives)[-1]

    def _stops_ahead(self) -> int:
        """Ends of turns before one that begins now: stops grow from drive to drive, so the last has the most."""
        last = next(reversed(self._drives.values()), None)
        return max(int(self._is_at_work), last.stops if last else 0)

    def _forget_old(self, now: float) -> None:
        self._drives = {one: drive for one, drive in self._drives.items() if drive.until > now}


class Prompts:
    """The open prompts of one connection: checks their replies, and says for which caller the agent works."""

    def __init__(self, report: Callable[[Sequence[Report]], Awaitable[None]], clock: Clock) -> None:
        self._report = report
        self._clock = clock
        self._protocol = ChannelProtocol()
        self._driving = PendingPrompts()
        self._asked: set[str] = set()  # ids of requests that callers were asked, few: see MAX_PENDING
        self._decided: set[str] = set()

    def begin(self, prompt: PostedPrompt) -> None:
        """Add a prompt that is about to be sent."""
        now = self._clock()
        self._protocol.expect(prompt.chat_id, prompt.home, until=now + prompt.wait_s, tells=prompt.tells)
        self._driving.begin(prompt, now)

    def withdraw(self, chat_id: str) -> None:
        """Remove a prompt that was not sent."""
        self._protocol.withdraw(chat_id)
        self._driving.remove(chat_id)

    def resume(self, prompt: PostedPrompt, for_s: float) -> None:
        """Await the reply to a prompt of an earlier connection, which the agent may still answer."""
        self._driving.resume(prompt, for_s, self._clock())

    def cancel(self, chat_id: str) -> bool:
        """Cancel a prompt for its caller; False when none is open under that id."""
        if not self._protocol.cancel(chat_id):
            return False
        self._driving.unwanted(chat_id, self._clock())
        return True

    async def take_reply(self, saying: ReplyFrame) -> bool:
        """Report what is of a reply; False when it is of one that was too large already.

        Raises:
            BadChannelFrame: it answers what this socket was not asked, or passes a cap.
        """
        reports = self._protocol.take_reply(saying)
        for report in reports:
            if isinstance(report.message, Final):
                self._driving.answered(report.message.chat_id, self._clock())
        await self._report(reports)
        return bool(reports)

    async def ask_caller(self, chat_id: str, asked: ApprovalAsked) -> None:
        """The caller may approve what the agent asks; not when it was decided a moment ago."""
        if asked.request_id in self._decided:
            self._decided.discard(asked.request_id)
            return
        self._asked.add(asked.request_id)
        await self._report(self._protocol.add_piece(chat_id, asked))

    async def tell_caller(self, chat_id: str, decided: ApprovalDecided) -> None:
        """Tell the caller of a decision, which may overtake the request. A reply that grows too large fails."""
        if decided.request_id not in self._asked:
            self._decided.add(decided.request_id)
            return
        self._asked.discard(decided.request_id)
        try:
            await self._report(self._protocol.add_piece(chat_id, decided))
        except TooLarge as large:
            await self.too_large(large)

    async def too_large(self, large: TooLarge) -> None:
        """Fail the reply because it is too large."""
        await self._report(self._protocol.too_large(large))

    async def stopped(self) -> None:
        """The agent's program is at the end of a turn: prompts for which no caller waits end with it."""
        now = self._clock()
        await self._report(self._protocol.stop(self._driving.stopped(now), now))

    async def end_told(self, chat_id: str) -> None:
        """End a turn whose caller waits for no reply. The agent still works for that caller."""
        await self._report(self._protocol.end_told(chat_id, self._clock()))

    def end_drive(self, chat_id: str) -> None:
        """End the work on a prompt: the agent answered it by one frame, and does nothing more for its caller."""
        self._driving.remove(chat_id)

    async def lost(self, reason: TurnFailure = TurnFailure.CHANNEL_LOST) -> None:
        """Fail the open prompts at once with this reason, because the connection is over."""
        await self._report(self._protocol.lost(reason))

    def hooked(self, *, begins: bool = False) -> None:
        """Note a report of the program. `begins`: it started to work."""
        self._driving.hooked(begins=begins)

    def driver(self, chat_id: str = "") -> Driver | None:
        """Find the caller on whose behalf the agent works now; None when it works for its owner alone.

        `chat_id`: see `PendingPrompts.find`.
        """
        return self._driving.find(self._clock(), chat_id)

    def is_idle(self, now: float) -> bool:
        """Whether no caller waits for a reply any more."""
        return self._protocol.is_idle(now)

    def forget_old(self, now: float) -> None:
        """Stop expecting replies for which no caller has waited for a minute."""
        self._protocol.forget_before(now - LATE_REPLY_S)


def prompt_frame(prompt: PostedPrompt) -> frames.Prompt:
    """A question as its agent gets it."""
    return frames.Prompt(
        chat_id=prompt.chat_id,
        text=prompt.text,
        asker_user=prompt.asker,
        task_id=prompt.task_id,
        context_id=prompt.context_id,
        parts=list(prompt.parts),
        traceparent=prompt.traceparent,
        message_id=prompt.message_id,
    )


def _is_over(drive: PendingPrompt, now: float) -> bool:
    is_its_own = drive.stops <= 0 and (drive.prompt.tells or drive.waited_until <= now)
    return drive.is_answered or is_its_own
