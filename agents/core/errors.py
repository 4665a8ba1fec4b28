"""The reasons why an ask is refused, and what else can go wrong before an agent has the ask.

A subclass of `Denied` is the registry's entry of a reason: surfaces have codes for its kind, not for the reason.
`python -m lab.in_django lab.errors_page:write` makes its rows of docs/reference/errors.md, where the docstring is
the column "When".
"""

from typing import ClassVar

from agents.core.reasons import RefusalKind, RefusalReason


class Denied(Exception):
    """An ask that admission refused; nothing was sent to the agent, and its audit row is written.

    `reason` is public, never changes, and has at most 20 characters. `is_caller`: the reason lies with the caller.
    """

    entry: ClassVar[RefusalReason]
    reason: ClassVar[str]
    is_caller = False

    def __init_subclass__(cls) -> None:
        cls.reason = cls.entry.reason

    def text(self, agent: str) -> str:
        """The public text. `agent`: the surface's name for the agent."""
        of_caller = self.entry.caller_text if self.is_caller else ""
        return self.fill(of_caller or self.entry.text, agent)

    def text_for_agents(self, name: str) -> str:
        """The clause for the model of an agent that asked the agent `name`."""
        of_caller = self.entry.caller_agent if self.is_caller else ""
        return self.fill(of_caller or self.entry.agent or self.entry.text, f"@{name}")

    def fill(self, text: str, agent: str) -> str:
        """Fill the values of this refusal into a text. `agent`: the surface's name for the agent."""
        return text.format(agent=agent, denied=self)


# In the order in which admission checks them (docs/reference/errors.md).


class RateLimited(Denied):
    """The caller's asks of the last minute, to all agents, reached `CALLER_RATE_PER_MINUTE`."""

    entry = RefusalReason(
        reason="rate_limited",
        kind=RefusalKind.TOO_FAST,
        text="over your rate limit, retry in {denied.retry_in_s} s",
        agent="the caller is over the rate limit, retry in {denied.retry_in_s} s",
        caller="You asked faster than the hub allows.",
        owner="The caller asked faster than the hub allows.",
        advice="Wait as long as it says: this holds over all agents.",
    )

    def __init__(self, retry_in_s: int, *, counts_messages: bool = False) -> None:
        super().__init__()
        self.retry_in_s = retry_in_s
        # Messages of a token to sessions of its user, limited by MESSAGES_A_SECOND.
        self.counts_messages = counts_messages


class Halted(Denied):
    """The [kill switch](../howto/operate.md#the-kill-switch) stopped the agent, its owner or the caller."""

    entry = RefusalReason(
        reason="halted",
        kind=RefusalKind.FORBIDDEN,
        text="{agent} is halted",
        caller_text="your questions are halted",
        caller_agent="the caller's questions are halted",
        caller="The agent, or your account, was halted.",
        owner="The agent, its owner or the caller was halted.",
        advice="Its owner or the hub's administrators have to let it, or you, go on.",
    )

    def __init__(self, *, is_caller: bool = False) -> None:
        super().__init__()
        self.is_caller = is_caller


class Blocked(Denied):
    """The owner blocked this caller."""

    entry = RefusalReason(
        reason="blocked",
        kind=RefusalKind.FORBIDDEN,
        text="{agent} does not take your questions",
        agent="{agent} does not take questions of this caller",
        caller="The agent’s owner does not take your questions.",
        owner="The owner blocked this caller.",
        advice="Its owner decides who may ask.",
    )


class Ended(Denied):
    """An agent asked another one in a turn that was canceled or failed meanwhile; not over A2A."""

    entry = RefusalReason(
        reason="ended",
        kind=RefusalKind.ENDED,
        text="the question that this one is asked for has ended",
        agent="the question that you ask this for was canceled or failed, stop working on it",
        caller="An agent asked this for a question of yours that had ended.",
        owner="An agent asked this for a question that had ended.",
        advice="The question that led an agent to ask this was canceled or failed. Ask again.",
    )


class Cycle(Denied):
    """An agent asked another one, and the ask had come through that agent's session before; not over A2A. An agent
    may [tell](frames.md#driving) a session of its owner about what that session asked.
    """

    entry = RefusalReason(
        reason="cycle",
        kind=RefusalKind.PASSED_ON,
        text="this question came through the same agent already",
        agent="the question came through {agent} already, answer without asking it again",
        caller="The question had come through this agent already.",
        advice="An agent passed the question back to one that has it already.",
    )


class TooDeep(Denied):
    """A fourth agent passed the question on; not over A2A."""

    entry = RefusalReason(
        reason="too_deep",
        kind=RefusalKind.PASSED_ON,
        text="too many agents passed this question on",
        agent="too many agents passed this question on, answer without asking another",
        caller="Too many agents had passed the question on.",
        advice="Agents may pass a question on three times. Ask the last one yourself.",
    )


class Offline(Denied):
    """No live connection of the agent's session."""

    entry = RefusalReason(
        reason="offline",
        kind=RefusalKind.OFFLINE,
        text="agent channel offline",
        agent="{agent} is offline",
        caller="The agent was offline.",
        advice="Its owner has to bring it back: ask another agent, or come back later.",
    )


class Busy(Denied):
    """Another caller has a claim on the session."""

    entry = RefusalReason(
        reason="busy",
        kind=RefusalKind.BUSY,
        text="agent is processing a turn for another caller",
        agent="{agent} is processing a turn for another caller",
        caller="The agent was answering another caller.",
        advice="It answers one caller at a time. Try again in a few seconds.",
    )


class OverCap(Denied):
    """The caller's own claims reached the agent's cap."""

    entry = RefusalReason(
        reason="concurrency",
        kind=RefusalKind.BUSY,
        text="agent already holds {denied.held} of your questions",
        agent="{agent} already holds {denied.held} questions of the same caller",
        caller="The agent had as many of your questions as it takes at once.",
        owner="The agent had as many questions of this caller as it takes at once.",
        advice="Wait until one of your own questions is answered.",
    )

    def __init__(self, held: int) -> None:
        super().__init__()
        self.held = held


class OverBudget(Denied):
    """The budget of this UTC day is spent."""

    entry = RefusalReason(
        reason="budget_exhausted",
        kind=RefusalKind.SPENT,
        text="{agent} hit its daily budget ({denied.budget})",
        caller="The agent had answered as many questions as it takes in a day.",
        owner="The day’s budget was used up.",
        advice="The day's questions are used up. They come back at midnight UTC.",
    )

    def __init__(self, budget: int) -> None:
        super().__init__()
        self.budget = budget


class OverCostLimit(Denied):
    """The asks of this UTC day cost as much as its owner [allows](../howto/limit-costs.md)."""

    entry = RefusalReason(
        reason="cost_limit_reached",
        kind=RefusalKind.SPENT,
        text="{agent} reached its cost limit of today, free again at 00:00 UTC",
        caller="The agent had reached its cost limit of the day.",
        advice="The agent cost as much today as its owner allows. It takes questions again at midnight UTC.",
    )


class OverCallerBudget(Denied):
    """The caller's own budget of this UTC day is spent."""

    entry = RefusalReason(
        reason="caller_budget_spent",
        kind=RefusalKind.SPENT,
        text="you hit your daily budget ({denied.budget}) at {agent}, free again at 00:00 UTC",
        agent="the caller hit their daily budget ({denied.budget}) at {agent}, free again at 00:00 UTC",
        caller="You had asked this agent as often as you may in a day.",
        owner="The caller’s own budget of the day was used up.",
        advice="Your own questions to it are used up. They come back at midnight UTC.",
    )

    def __init__(self, budget: int) -> None:
        super().__init__()
        self.budget = budget


class OverGroupBudget(Denied):
    """The budget of one of the caller's groups at the agent is spent on this UTC day."""

    entry = RefusalReason(
        reason="group_budget_spent",
        kind=RefusalKind.SPENT,
        text="your group hit its daily budget ({denied.budget}) at {agent}, free again at 00:00 UTC",
        agent="the caller's group hit its daily budget ({denied.budget}) at {agent}, free again at 00:00 UTC",
        caller="Your group had asked this agent as often as it may in a day.",
        owner="The budget of the caller’s group was used up for the day.",
        advice="The questions of your group to it are used up. They come back at midnight UTC.",
    )

    def __init__(self, budget: int) -> None:
        super().__init__()
        self.budget = budget


class OverCallerCostLimit(Denied):
    """The caller's asks of this UTC day cost as much as its owner allows one caller."""

    entry = RefusalReason(
        reason="caller_cost_reached",
        kind=RefusalKind.SPENT,
        text="your questions reached the cost limit of today at {agent}, free again at 00:00 UTC",
        agent="the caller reached the cost limit of today at {agent}, free again at 00:00 UTC",
        caller="Your questions had reached this agent’s cost limit of the day.",
        owner="The caller’s questions had reached the cost limit of the day.",
        advice="Your questions cost as much today as its owner allows. Ask again after midnight UTC.",
    )


class WaitAbandoned(Denied):
    """While the question [waited](asking.md#waiting-for-a-free-agent) its caller canceled it or disconnected, or
    the hub stopped; only the audit has this reason, the task is `canceled`, or `failed`.
    """

    entry = RefusalReason(
        reason="gave_up",
        kind=RefusalKind.WITHDRAWN,
        label="withdrawn",
        text="the question was withdrawn before the agent was free; send it again to ask",
        agent="the question was withdrawn before {agent} was free; send it again to ask",
        caller="The question was withdrawn before the agent was free.",
        advice="Nothing was sent and nothing was spent. Ask again.",
    )


REFUSALS: tuple[type[Denied], ...] = tuple(Denied.__subclasses__())


class NoSuchTurn(Exception):
    """The session answered no such turn within a day, or its follow-up repeats the reply or another follow-up."""


class TooManyFollowUps(Exception):
    """The turn has as many follow-ups as a turn may have. The text is public."""


class MustWait(Exception):
    """The ask has a position in the agent's queue; admit it again later.

    `refusal`: why the ask waits, and its refusal after `wait_s`. `is_new`: this call created the position.
    """

    def __init__(self, *, wait_s: float, refusal: Denied, is_new: bool) -> None:
        super().__init__()
        self.wait_s = wait_s
        self.refusal = refusal
        self.is_new = is_new


class NotPublished(Exception):
    """The caller can ask no such agent: absent, draft, deleted, not open to the caller, or its owner suspended.

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

    text = "the hub takes no questions right now, try again shortly"


class NoReceipt(Exception):
    """The prompt was not acknowledged: the prompt may have been delivered, and the agent may be working."""


class NotDelivered(Exception):
    """The prompt provably never left the hub; its unit of budget is returned."""
