"""The prompts of one connection: what its agent owes, to whom it is reported, and on whose behalf it works."""

from collections.abc import Awaitable, Callable, Sequence

from agents.links.channel.driving import Driver, Driving
from agents.links.channel.expected import TooLarge
from agents.links.channel.frames import Saying
from agents.links.channel.protocol import ChannelProtocol, Report
from agents.pieces import ApprovalAsked, ApprovalDecided
from agents.ports import Clock
from agents.post import Final, Prompt
from kit.durations import seconds

LATE_REPLY_S = seconds(60.0)


class Prompts:
    """See `ChannelProtocol` for what may be said to them, `Driving` for who drives."""

    def __init__(self, report: Callable[[Sequence[Report]], Awaitable[None]], clock: Clock) -> None:
        self._report = report
        self._clock = clock
        self._protocol = ChannelProtocol()
        self._driving = Driving()
        self._asked: set[str] = set()  # ids of requests that callers were asked, few: see MAX_PENDING
        self._decided: set[str] = set()

    def begin(self, prompt: Prompt) -> None:
        """One is about to go out."""
        now = self._clock()
        self._protocol.expect(prompt.chat_id, prompt.home, until=now + prompt.wait_s, tells=prompt.tells)
        self._driving.begin(prompt, now)

    def withdraw(self, chat_id: str) -> None:
        """It did not go out."""
        self._protocol.withdraw(chat_id)
        self._driving.withdraw(chat_id)

    def resume(self, prompt: Prompt, for_s: float) -> None:
        """It went out over an earlier connection, and the agent may be at it still."""
        self._driving.resume(prompt, for_s, self._clock())

    def cancel(self, chat_id: str) -> bool:
        """Its caller wants it no more; False when nothing is open under that id."""
        if not self._protocol.cancel(chat_id):
            return False
        self._driving.unwanted(chat_id, self._clock())
        return True

    async def hear(self, saying: Saying) -> bool:
        """Report what is of a reply; False when it is of one that was too large already.

        Raises:
            BadFrame: it answers what this socket was not asked, or passes a cap.
        """
        reports = self._protocol.hear(saying)
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
        await self._report(self._protocol.say(chat_id, asked))

    async def tell_caller(self, chat_id: str, decided: ApprovalDecided) -> None:
        """It was decided; the decision may overtake the request."""
        if decided.request_id not in self._asked:
            self._decided.add(decided.request_id)
            return
        self._asked.discard(decided.request_id)
        await self._report(self._protocol.say(chat_id, decided))

    async def too_large(self, large: TooLarge) -> None:
        """The reply fails."""
        await self._report(self._protocol.too_large(large))

    async def stopped(self) -> None:
        """The agent's program is at the end of a turn: what nobody waits for ends with it."""
        now = self._clock()
        await self._report(self._protocol.stop(self._driving.stopped(now), now))

    async def lost(self) -> None:
        """The connection is over: what is owed fails at once."""
        await self._report(self._protocol.lost())

    def hooked(self, *, begins: bool = False) -> None:
        """The program reported something. `begins`: it set to work."""
        self._driving.hooked(begins=begins)

    def driver(self, chat_id: str = "") -> Driver | None:
        """Who drives the session now; None when it works for its owner alone. `chat_id`: see `Driving.find`."""
        return self._driving.find(self._clock(), chat_id)

    def is_idle(self, now: float) -> bool:
        """Whether nobody waits for a reply any more."""
        return self._protocol.is_idle(now)

    def forget_old(self, now: float) -> None:
        """Expect no more what nobody has waited for in a minute."""
        self._protocol.forget_before(now - LATE_REPLY_S)
