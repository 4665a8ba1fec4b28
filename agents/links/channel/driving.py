"""The caller for whom an agent works: who asked drives the session until its turn is over (section 6.3)."""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import Struct

from agents.core.post import PostedPrompt
from agents.transcript.pieces import Usage


class OpenPrompt(Struct):
    """A prompt of a connection: what has come of its reply, and until when the agent works for its caller.

    `waited_until`: when its caller stops waiting. `taken_until`: the same for the reply, which may come a minute
    later also when its caller canceled. `drives_until`: when the agent works for its caller no more.

    `ends_with_turn`: the sender of a tell waits for no reply, so the end of the agent's turn ends its turn.
    `turn`: the chat id of its turn; empty when that turn ended before the agent came back to it.
    `stops`: how many `Stop` events end this prompt: one for each prompt given earlier, and its own.

    `is_failed`: the reply passed a cap and was reported as failed, but the agent has not finished it.
    `is_wanted`: its caller has not canceled it. `usage`: what the turn used, as a frame said last.
    """

    prompt: PostedPrompt
    waited_until: float
    taken_until: float
    drives_until: float
    ends_with_turn: bool = False
    turn: str = ""
    stops: int = 1
    is_answered: bool = False
    is_failed: bool = False
    is_wanted: bool = True
    pieces: int = 0
    size_bytes: int = 0
    usage: Usage | None = None
    open_artifacts: frozenset[str] = frozenset()  # mostly none: an empty set of its own would take 200 bytes

    def is_waited_for(self, now: float) -> bool:
        """True if the asker still waits for the reply; the sender of a tell never does."""
        return not self.prompt.tells and not self.is_answered and self.waited_until > now

    def is_over(self, now: float) -> bool:
        """True if the end of a turn ends the agent's work on it."""
        return self.is_answered or (self.stops <= 0 and (self.prompt.tells or self.waited_until <= now))


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


def find_driver(
    driving: Mapping[str, OpenPrompt], chat_id: str, now: float, *, has_hooks: bool, knows_turns: bool
) -> Driver | None:
    """Find the caller on whose behalf the agent works; None when it works for its owner alone.

    `chat_id`: the prompt for which the agent says that it asks. Without one it is that which a program with
    hooks works on, or the last that is waited for.
    Prompts of different callers at once, of which one is not over: it is unknown for whom the agent
    reaches out, so it is isolated. A prompt that the agent's owner told, or does not wait for, counts as over.
    """
    if not driving:
        return None
    drives = list(driving.values())
    at_work = driving.get(chat_id) or _most_likely(drives, now, has_hooks=has_hooks)
    prompt = at_work.prompt
    others = [one for one in drives if one.prompt.asker_id != prompt.asker_id]
    is_mixed = any(not one.prompt.is_own or one.is_waited_for(now) for one in others)
    is_its_turn = knows_turns and at_work.stops == 1  # 2: another turn goes on; 0: its own has ended
    # The hub does not know which prompt led to an onward question: for the limit of depth the longest chain
    # counts. Of the owner's prompts only those whose askers wait count: others may be asked without a cycle.
    counted = [one.prompt.chain for one in drives if not one.prompt.is_own or one.is_waited_for(now)]
    return Driver(
        prompt.asker_id,
        prompt.asker,
        any(one.prompt.isolated for one in drives) or is_mixed,
        max(counted, key=len, default=prompt.chain[-1:]),
        prompt.traceparent,
        turn=at_work.turn,
        is_certain=chat_id in driving or (not others and is_its_turn),
        is_own=all(one.prompt.is_own for one in drives),
    )


def _most_likely(drives: list[OpenPrompt], now: float, *, has_hooks: bool) -> OpenPrompt:
    """Find the prompt, among several, that the agent most likely works on."""
    if has_hooks:  # such a program takes one prompt after the other
        return drives[0]
    waited_for = [one for one in drives if not one.is_answered and one.waited_until > now]
    return (waited_for or drives)[-1]
