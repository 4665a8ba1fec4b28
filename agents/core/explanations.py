"""How asks end, in words for each reader: the caller, the owner's side, and an agent that asked another one.

This is the only table of these texts. Programs read others, which never change, from each surface's `errors.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from agents.core.errors import (
    Blocked,
    Busy,
    Cycle,
    Denied,
    Ended,
    Halted,
    Offline,
    OverBudget,
    OverCallerBudget,
    OverCallerCostLimit,
    OverCap,
    OverCostLimit,
    RateLimited,
    TooDeep,
    WaitAbandoned,
)
from agents.models.choices import Failure, Interruption, Outcome

REMOVED = "deleted"  # the reason where the agent, and with it the row of the turn, is gone


class ClaimState(StrEnum):
    """Until when the session's claim is held after an ask, in words for the owner."""

    FREED = "The agent can be asked at once."
    OFFLINE = "The agent can be asked when it is connected again."
    LINGERS = "The agent answers no other caller until it has finished, for at most 60 s."
    LINGERS_CONNECTED = "The agent answers no other caller until its connection ends, for at most 60 s."
    UNTIL_RECORDED = "The agent answers no other caller until the hub has recorded the end."


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One way an ask ends, or the state of an ask that has not ended.

    `label`: one or two words. `is_fault`: something went wrong, so pages show the end in red.
    `caller`: a sentence for the caller, as "you". `owner`: a sentence for the owner of the agent, staff and people
    with a share.
    `advice`: what the caller can do; clients of MCP and of OpenAI's API get it, too.
    `agent`: for the model of an agent that asked another one: a clause in which `{name}` is the agent that was
    asked, and `{denied}` the refusal; empty where the agent gets a reply.
    `is_counted`: whether the ask stays in the day's budget; None: nothing was sent, or nothing has ended.
    """

    label: str
    caller: str
    owner: str
    agent: str = ""
    advice: str = ""
    is_fault: bool = False
    is_counted: bool | None = None
    claim: ClaimState | None = None

    @property
    def counted(self) -> str:
        """Whether the ask counts in the budget, for the caller on the same day."""
        return {True: "It counts in today’s budget.", False: "It does not count.", None: ""}[self.is_counted]

    @property
    def remains(self) -> str:
        """Whether the ask counts in the budget, and when the agent can be asked again; for the owner."""
        if self.claim is None:
            return ""
        counted = "It counts in the day’s budget." if self.is_counted else "It was given back to the day’s budget."
        return f"{counted} {self.claim}"


def _refused(caller: str, owner: str, agent: str, advice: str, *, label: str = "refused") -> Explanation:
    return Explanation(label=label, caller=caller, owner=owner, agent=agent, advice=advice)


def _failed(
    caller: str,
    owner: str,
    agent: str,
    advice: str,
    claim: ClaimState,
    *,
    label: str = "failed",
    is_fault: bool = True,
    is_counted: bool = True,
) -> Explanation:
    return Explanation(
        label=label,
        caller=caller,
        owner=owner,
        agent=agent,
        advice=advice,
        is_fault=is_fault,
        is_counted=is_counted,
        claim=claim,
    )


ASK_AGAIN = "The agent may have acted on it: ask again if it does no harm to do it twice."
LET_GO_ON = "Its owner or the hub's administrators have to let it, or you, go on."

DENIED: Mapping[type[Denied], Explanation] = {
    Offline: _refused(
        "The agent was offline.",
        "The agent was offline.",
        "@{name} is offline",
        "Its owner has to bring it back: ask another agent, or come back later.",
    ),
    Busy: _refused(
        "The agent was answering another caller.",
        "The agent was answering another caller.",
        "@{name} is processing a turn for another caller",
        "It answers one caller at a time. Try again in a few seconds.",
    ),
    OverCap: _refused(
        "The agent had as many of your questions as it takes at once.",
        "The agent had as many questions of this caller as it takes at once.",
        "@{name} already holds {denied.held} questions of the same caller",
        "Wait until one of your own questions is answered.",
    ),
    OverBudget: _refused(
        "The agent had answered as many questions as it takes in a day.",
        "The day’s budget was used up.",
        "@{name} hit its daily budget ({denied.budget})",
        "The day's questions are used up. They come back at midnight UTC.",
    ),
    OverCallerBudget: _refused(
        "You had asked this agent as often as you may in a day.",
        "The caller’s own budget of the day was used up.",
        "the caller hit their daily budget ({denied.budget}) at @{name}, free again at 00:00 UTC",
        "Your own questions to it are used up. They come back at midnight UTC.",
    ),
    OverCostLimit: _refused(
        "The agent had reached its cost limit of the day.",
        "The agent had reached its cost limit of the day.",
        "@{name} reached its cost limit of today, free again at 00:00 UTC",
        "The agent cost as much today as its owner allows. It takes questions again at midnight UTC.",
    ),
    OverCallerCostLimit: _refused(
        "Your questions had reached this agent’s cost limit of the day.",
        "The caller’s questions had reached the cost limit of the day.",
        "the caller reached the cost limit of today at @{name}, free again at 00:00 UTC",
        "Your questions cost as much today as its owner allows. Ask again after midnight UTC.",
    ),
    Blocked: _refused(
        "The agent’s owner does not take your questions.",
        "The owner blocked this caller.",
        "@{name} does not take questions of this caller",
        "Its owner decides who may ask.",
    ),
    Halted: _refused(
        "The agent, or your account, was halted.",
        "The agent, its owner or the caller was halted.",
        "@{name} is halted",
        LET_GO_ON,
    ),
    WaitAbandoned: _refused(
        "The question was withdrawn before the agent was free.",
        "The question was withdrawn before the agent was free.",
        "the question was withdrawn before @{name} was free; send it again to ask",
        "Nothing was sent and nothing was spent. Ask again.",
        label="withdrawn",
    ),
    Ended: _refused(
        "An agent asked this for a question of yours that had ended.",
        "An agent asked this for a question that had ended.",
        "the question that you ask this for was canceled or failed, stop working on it",
        "The question that led an agent to ask this was canceled or failed. Ask again.",
    ),
    TooDeep: _refused(
        "Too many agents had passed the question on.",
        "Too many agents had passed the question on.",
        "too many agents passed this question on, answer without asking another",
        "Agents may pass a question on three times. Ask the last one yourself.",
    ),
    Cycle: _refused(
        "The question had come through this agent already.",
        "The question had come through this agent already.",
        "the question came through @{name} already, answer without asking it again",
        "An agent passed the question back to one that has it already.",
    ),
    RateLimited: _refused(
        "You asked faster than the hub allows.",
        "The caller asked faster than the hub allows.",
        "the caller is over the rate limit, retry in {denied.retry_in_s} s",
        "Wait as long as it says: this holds over all agents.",
    ),
}
FAILED: Mapping[str, Explanation] = {
    Failure.TIMEOUT: _failed(
        "The agent did not answer in time.",
        "The agent did not answer in time.",
        "@{name} did not reply in time; the reply may still come, but not here",
        ASK_AGAIN,
        ClaimState.LINGERS,
        label="no answer",
    ),
    Failure.CHANNEL_LOST: _failed(
        "The connection to the agent was lost before it had answered.",
        "The connection to the agent was lost.",
        "@{name} went offline before it replied",
        ASK_AGAIN,
        ClaimState.OFFLINE,
    ),
    Failure.NOT_DELIVERED: _failed(
        "The agent could not be reached: it did not get your question.",
        "The agent could not be reached: it did not get the question.",
        "@{name} is offline",
        "Ask again when it is online.",
        ClaimState.OFFLINE,
        is_counted=False,
    ),
    Failure.REPLY_TOO_LARGE: _failed(
        "The agent’s answer was larger than the hub passes on.",
        "The answer was larger than the hub passes on.",
        "the reply of @{name} was over the size limit",
        "Ask for less at once.",
        ClaimState.LINGERS,
    ),
    Failure.REPLY_LOST: _failed(
        "The hub lost a part of the agent’s answer.",
        "The hub lost a part of the answer.",
        "part of the reply of @{name} was lost",
        ASK_AGAIN,
        ClaimState.LINGERS,
    ),
    Failure.PROCESS_DIED: _failed(
        "The hub stopped unexpectedly before the agent had answered.",
        "The hub stopped unexpectedly.",
        "the hub stopped before @{name} replied",
        ASK_AGAIN,
        ClaimState.FREED,
    ),
    Failure.SHUTDOWN: _failed(
        "The hub was shut down before the agent had answered.",
        "The hub was shut down.",
        "the hub stopped before @{name} replied",
        ASK_AGAIN,
        ClaimState.LINGERS_CONNECTED,
    ),
    Failure.NOT_RECORDED: _failed(
        "The hub could not record the agent’s answer.",
        "The hub could not record the answer.",
        "the hub could not record the reply of @{name}",
        ASK_AGAIN,
        ClaimState.UNTIL_RECORDED,
    ),
    Failure.CANCELED: _failed(
        "You canceled this.",
        "The caller canceled this.",
        "the question to @{name} was canceled",
        "",
        ClaimState.LINGERS,
        label="canceled",
        is_fault=False,
    ),
    Failure.HALTED: _failed(
        "The agent, or your account, was halted before it had answered.",
        "The agent, its owner or the caller was halted meanwhile.",
        "@{name} or the caller was halted before it replied",
        LET_GO_ON,
        ClaimState.LINGERS_CONNECTED,
        label="halted",
        is_fault=False,
    ),
    Failure.AGENT_FAILED: _failed(
        "The agent said that it failed.",
        "The agent said that it failed.",
        "@{name} failed",
        "",
        ClaimState.FREED,
    ),
    Failure.REJECTED: _failed(
        "The agent declined to answer.",
        "The agent declined to answer.",
        "@{name} refused the question",
        "",
        ClaimState.FREED,
        label="declined",
        is_fault=False,
    ),
    Failure.AGENT_CANCELED: _failed(
        "The agent canceled this itself.",
        "The agent canceled this itself.",
        "@{name} canceled the question",
        "",
        ClaimState.FREED,
        label="canceled by the agent",
        is_fault=False,
    ),
    REMOVED: _failed(
        "The agent was removed before it had answered.",
        "The agent was removed.",
        "@{name} was removed",
        "",
        ClaimState.FREED,
    ),
}
COMPLETED: Mapping[str, Explanation] = {
    "": Explanation(label="answered", caller="The agent answered.", owner="The agent answered."),
    Interruption.INPUT_REQUIRED: Explanation(
        label="asked back", caller="The agent asks you something.", owner="The agent asked back."
    ),
    Interruption.AUTH_REQUIRED: Explanation(
        label="asked for permission",
        caller="The agent asks you for a permission or credentials.",
        owner="The agent asked for a permission or credentials.",
    ),
}
IN_PROGRESS = Explanation(
    label="in progress", caller="The agent has your question.", owner="The agent has the question."
)
# Of an ask that an agent made: neither that agent nor its caller canceled this ask itself.
CANCELED_ONWARD = _failed(
    "An agent asked this for a question that has ended since.",
    "Another agent asked this for a question that has ended since.",
    FAILED[Failure.CANCELED].agent,
    "",
    ClaimState.LINGERS,
    label="canceled",
    is_fault=False,
)
# The labels of outcomes that have many reasons.
OUTCOME_LABELS: Mapping[Outcome | None, str] = {
    Outcome.COMPLETED: COMPLETED[""].label,
    Outcome.FAILED: "not answered",
    Outcome.DENIED: DENIED[Busy].label,
    None: IN_PROGRESS.label,
}
BY_REASON: Mapping[Outcome, Mapping[str, Explanation]] = {
    Outcome.COMPLETED: COMPLETED,
    Outcome.FAILED: FAILED,
    Outcome.DENIED: {denied.reason: explanation for denied, explanation in DENIED.items()},
}


def explain(outcome: str | None, reason: str = "", *, depth: int = 0) -> Explanation:
    """Explain how a stored ask ended, or that it has not ended. `depth`: how many agents passed the ask on.

    An unknown reason, stored by a later release before a downgrade, is itself the text.
    """
    if outcome is None:
        return IN_PROGRESS
    if depth and reason == Failure.CANCELED:
        return CANCELED_ONWARD
    known = Outcome(outcome)
    if (found := BY_REASON[known].get(reason)) is not None:
        return found
    words = f"{reason.replace('_', ' ').capitalize() or 'No reason is known'}."
    return Explanation(label=OUTCOME_LABELS[known], caller=words, owner=words, is_fault=known is Outcome.FAILED)
