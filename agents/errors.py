"""Why an ask is refused. A surface turns each into its own words; nothing was sent to the agent."""

from typing import ClassVar


class Denied(Exception):
    """An ask that admission refused; its audit row is written. `reason` is public and never changes."""

    reason: ClassVar[str]


class Offline(Denied):
    """No live connection of the agent's session."""

    reason = "offline"


class Busy(Denied):
    """The session is held for another caller."""

    reason = "busy"


class OverCap(Denied):
    """The caller already holds as many turns of this agent as its concurrency cap."""

    reason = "concurrency"

    def __init__(self, held: int) -> None:
        super().__init__()
        self.held = held


class OverBudget(Denied):
    """The agent's budget of this UTC day is spent."""

    reason = "budget_exhausted"

    def __init__(self, budget: int) -> None:
        super().__init__()
        self.budget = budget


class OverCallerBudget(Denied):
    """The caller's own budget at this agent, of this UTC day, is spent."""

    reason = "caller_budget_spent"

    def __init__(self, budget: int) -> None:
        super().__init__()
        self.budget = budget


class RateLimited(Denied):
    """The caller asks faster than CALLER_RATE_PER_MINUTE."""

    reason = "rate_limited"

    def __init__(self, retry_in_s: int) -> None:
        super().__init__()
        self.retry_in_s = retry_in_s


class Blocked(Denied):
    """The owner does not want asks of this caller."""

    reason = "blocked"


class Halted(Denied):
    """The agent, its owner or the caller was halted (`agents.halting`). `is_caller`: it is the caller."""

    reason = "halted"

    def __init__(self, *, is_caller: bool = False) -> None:
        super().__init__()
        self.is_caller = is_caller


class TooDeep(Denied):
    """Agents passed the ask on more often than they may."""

    reason = "too_deep"


class Cycle(Denied):
    """The ask came through this session already."""

    reason = "cycle"


class Ended(Denied):
    """The turn in which an agent asks on was canceled or failed: its caller waits no more."""

    reason = "ended"


class GaveUp(Denied):
    """While it waited for a free agent its caller canceled it or left, or the hub stopped."""

    reason = "gave_up"


class Waits(Exception):
    """The ask has a place in the line of its agent; ask for it again.

    `refusal`: why it waits, and is refused after `wait_s`. `is_new`: it has the place since now.
    """

    def __init__(self, *, wait_s: float, refusal: Denied, is_new: bool) -> None:
        super().__init__()
        self.wait_s = wait_s
        self.refusal = refusal
        self.is_new = is_new


class NotPublished(Exception):
    """Nothing there for this caller: absent, draft, deleted, not open to them, its owner suspended. No row."""


class AlreadyAsked(Exception):
    """An identical message of this caller's is being answered, by the process `home`. Nothing was sent, no row."""

    def __init__(self, *, chat_id: str, task_id: str, home: str) -> None:
        super().__init__()
        self.chat_id = chat_id
        self.task_id = task_id
        self.home = home


class FileGone(Exception):
    """A file the question names is no longer there for its caller. Nothing was sent, no row was written."""


class Unavailable(Exception):
    """The hub takes no asks now: draining, its queue full, or its database out of reach. Nothing was sent."""


class NoReceipt(Exception):
    """Nobody confirmed the prompt: it may have left, and the agent may be working."""


class NotDelivered(Exception):
    """The prompt provably never left the hub; the ask is given back."""
