"""The reasons why an ask is refused. Nothing was sent to the agent.

Each surface has its own text for each reason; people read the texts of `agents.core.explanations`.
"""

from typing import ClassVar


class Denied(Exception):
    """An ask that admission refused; its audit row is written. `reason` is public and never changes."""

    reason: ClassVar[str]


class NoSuchTurn(Exception):
    """The session answered no such turn within a day, or its follow-up repeats the reply or another follow-up."""


class TooManyFollowUps(Exception):
    """The turn has as many follow-ups as a turn may have. The text is public."""


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


class OverCostLimit(Denied):
    """The asks of this UTC day cost as much as the agent's owner allows, or more."""

    reason = "cost_limit_reached"


class OverCallerCostLimit(Denied):
    """The caller's asks of this UTC day cost as much as the agent's owner allows one caller, or more."""

    reason = "caller_cost_reached"


class RateLimited(Denied):
    """The caller asks faster than CALLER_RATE_PER_MINUTE.

    `counts_messages`: a token sends messages to its user's own sessions faster than MESSAGES_A_SECOND.
    """

    reason = "rate_limited"

    def __init__(self, retry_in_s: int, *, counts_messages: bool = False) -> None:
        super().__init__()
        self.retry_in_s = retry_in_s
        self.counts_messages = counts_messages


class Blocked(Denied):
    """The owner blocked this caller."""

    reason = "blocked"


class Halted(Denied):
    """The agent, its owner or the caller was halted (`agents.core.halt_rules`). `is_caller`: it is the caller."""

    reason = "halted"

    def __init__(self, *, is_caller: bool = False) -> None:
        super().__init__()
        self.is_caller = is_caller


class TooDeep(Denied):
    """The chain of agents that passed the ask on is too long."""

    reason = "too_deep"


class Cycle(Denied):
    """The ask came through this session already."""

    reason = "cycle"


class Ended(Denied):
    """The parent turn, in which an agent asked onward, was canceled or failed."""

    reason = "ended"


class WaitAbandoned(Denied):
    """The wait for a free agent ended: the caller canceled or disconnected, or the hub stopped."""

    reason = "gave_up"


class MustWait(Exception):
    """The ask has a position in the agent's queue; admit it again later.

    `refusal`: why it waits, and the refusal after `wait_s`. `is_new`: this call created the position.
    """

    def __init__(self, *, wait_s: float, refusal: Denied, is_new: bool) -> None:
        super().__init__()
        self.wait_s = wait_s
        self.refusal = refusal
        self.is_new = is_new


class NotPublished(Exception):
    """No agent for this caller: absent, draft, deleted, not open to them, or its owner suspended.

    No row is written.
    """


class AlreadyAsked(Exception):
    """An identical message of this caller is being answered by the process `home`.

    Nothing was sent, no row was written.
    """

    def __init__(self, *, chat_id: str, task_id: str, home: str) -> None:
        super().__init__()
        self.chat_id = chat_id
        self.task_id = task_id
        self.home = home


class FileGone(Exception):
    """A file the question names is no longer there for its caller. Nothing was sent, no row was written."""


class Unavailable(Exception):
    """The hub takes no asks now: draining, its queue full, its database out of reach, or the agent just moved.

    Nothing was sent.
    """


class NoReceipt(Exception):
    """No receipt for the prompt: it may have been delivered, and the agent may be working."""


class NotDelivered(Exception):
    """The prompt provably never left the hub; its unit of budget is returned."""
