"""On whose behalf an agent works: whoever asked drives its session until its turn is over (section 6.3)."""

from dataclasses import dataclass

from agents.post import Prompt

REPLY_GRACE_S = 5.0
LONGEST_TURN_S = 900.0


@dataclass(slots=True)
class Drive:
    """A prompt the agent may still be working on. `waited_until`: when its caller stops waiting."""

    prompt: Prompt
    waited_until: float
    until: float
    is_answered: bool = False


@dataclass(frozen=True, slots=True)
class Driver:
    """For whom the agent works now. `isolated`: it may not reach other sessions meanwhile.

    `chain`: the sessions that led here, this one last.
    """

    user_id: int
    login: str
    isolated: bool
    chain: tuple[int, ...]


class Driving:
    """The drives of one connection.

    A drive begins with delivery. It ends when the agent's program reports the end of its turn and nobody waits for
    the reply any more; with a program that has no hooks, a moment after the reply; at the latest after 15 minutes.
    """

    def __init__(self) -> None:
        self._drives: dict[str, Drive] = {}
        self._has_hooks = False

    def begin(self, prompt: Prompt, now: float) -> None:
        """A prompt goes out."""
        until = now + max(prompt.wait_s, LONGEST_TURN_S)
        self._drives[prompt.chat_id] = Drive(prompt, now + prompt.wait_s, until)

    def resume(self, prompt: Prompt, for_s: float, now: float) -> None:
        """It went out over an earlier connection, and the agent may be at it still."""
        self._drives[prompt.chat_id] = Drive(prompt, now, now + for_s)

    def withdraw(self, chat_id: str) -> None:
        """It did not go out."""
        self._drives.pop(chat_id, None)

    def answered(self, chat_id: str, now: float) -> None:
        """The whole reply came."""
        if drive := self._drives.get(chat_id):
            drive.is_answered = True
            if not self._has_hooks:
                drive.until = now + REPLY_GRACE_S

    def hooked(self, *, is_stop: bool, now: float) -> None:
        """The program reported something: its ends of turns can be relied on. `is_stop`: this is one."""
        self._has_hooks = True
        if is_stop:
            over = [one for one, drive in self._drives.items() if _is_over(drive, now)]
            for chat_id in over:
                del self._drives[chat_id]

    def find(self, now: float) -> Driver | None:
        """Who drives the session; None when it works for its owner alone.

        Prompts of different callers at once, of which one is not over: nobody can tell for whom the agent
        reaches out, so it is isolated.
        """
        self._drives = {one: drive for one, drive in self._drives.items() if drive.until > now}
        prompts = [drive.prompt for drive in self._drives.values()]
        if not prompts:
            return None
        last = prompts[-1]
        isolated = any(one.isolated for one in prompts) or any(one.asker_id != last.asker_id for one in prompts)
        deepest = max(prompts, key=lambda one: len(one.chain))
        return Driver(last.asker_id, last.asker, isolated, deepest.chain)


def _is_over(drive: Drive, now: float) -> bool:
    return drive.is_answered or drive.prompt.tells or drive.waited_until <= now
