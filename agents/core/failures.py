"""The registry of the reasons why an admitted ask gets no reply; `agents.core.errors` has the reasons of refusals.

`python -m lab.in_django lab.errors_page:write` makes the rows of docs/reference/errors.md from these entries.
"""

from collections.abc import Mapping

from agents.core.reasons import ClaimState, FailureReason
from agents.core.types import TurnEnding
from agents.models.choices import Outcome, TurnFailure

ASK_AGAIN = "The agent may have acted on it: ask again if it does no harm to do it twice."
REMOVED = "deleted"  # the reason if the agent was deleted, and the row of the turn with it

_ENTRIES = (
    FailureReason(
        reason=TurnFailure.TIMEOUT,
        text="agent did not reply within {wait_s:g}s",
        agent="{agent} did not reply in time; the reply may still come, but not here",
        label="no answer",
        caller="The agent did not answer in time.",
        advice=ASK_AGAIN,
        when="no complete reply within `REPLY_WAIT_S`",
        claim=ClaimState.LINGERS,
    ),
    FailureReason(
        reason=TurnFailure.CHANNEL_LOST,
        text="agent channel offline",
        agent="{agent} went offline before it replied",
        caller="The connection to the agent was lost before it had answered.",
        owner="The connection to the agent was lost.",
        advice=ASK_AGAIN,
        when="the agent's socket, or the process that held it, was lost; or no receipt came from it within 4 s:"
        " then the claim lingers",
        claim=ClaimState.OFFLINE,
    ),
    FailureReason(
        reason=TurnFailure.NOT_DELIVERED,
        text="agent channel offline",
        agent="{agent} is offline",
        caller="The agent could not be reached: it did not get your question.",
        owner="The agent could not be reached: it did not get the question.",
        advice="Ask again when it is online.",
        when="the prompt was certainly not sent",
        claim=ClaimState.OFFLINE,
        is_counted=False,
    ),
    FailureReason(
        reason=TurnFailure.REPLY_TOO_LARGE,
        text="agent reply was over the size limit",
        agent="the reply of {agent} was over the size limit",
        caller="The agent’s answer was larger than the hub passes on.",
        owner="The answer was larger than the hub passes on.",
        advice="Ask for less at once.",
        when="over a [cap](frames.md#caps)",
        claim=ClaimState.LINGERS,
    ),
    FailureReason(
        reason=TurnFailure.REPLY_LOST,
        text="part of the agent's reply was lost",
        agent="part of the reply of {agent} was lost",
        caller="The hub lost a part of the agent’s answer.",
        owner="The hub lost a part of the answer.",
        advice=ASK_AGAIN,
        when="a chunk went missing between two processes",
        claim=ClaimState.LINGERS,
    ),
    FailureReason(
        reason=TurnFailure.PROCESS_DIED,
        text="the hub stopped before {agent} answered",
        agent="the hub stopped before {agent} replied",
        caller="The hub stopped unexpectedly before the agent had answered.",
        owner="The hub stopped unexpectedly.",
        advice=ASK_AGAIN,
        when="the process that waited is dead; the reaper ended the turn",
        claim=ClaimState.FREED,
    ),
    FailureReason(
        reason=TurnFailure.SHUTDOWN,
        text="the hub stopped before {agent} answered",
        agent="the hub stopped before {agent} replied",
        caller="The hub was shut down before the agent had answered.",
        owner="The hub was shut down.",
        advice=ASK_AGAIN,
        when="still open at the end of the drain",
        claim=ClaimState.LINGERS_CONNECTED,
    ),
    FailureReason(
        reason=TurnFailure.NOT_RECORDED,
        text="the hub could not record the answer",
        agent="the hub could not record the reply of {agent}",
        caller="The hub could not record the agent’s answer.",
        owner="The hub could not record the answer.",
        advice=ASK_AGAIN,
        when="the database stayed out of reach; the caller gets this failure, and the reaper ends the row as"
        " `timeout`",
        claim=ClaimState.UNTIL_RECORDED,
    ),
    FailureReason(
        reason=TurnFailure.CANCELED,
        text="canceled by its caller",
        agent="the question to {agent} was canceled",
        label="canceled",
        is_fault=False,
        caller="You canceled this.",
        owner="The caller canceled this.",
        when="the caller canceled the task; or an agent asked this in a turn that"
        " [ended](asking.md#questions-of-agents-to-other-agents) without an answer",
        claim=ClaimState.LINGERS,
    ),
    FailureReason(
        reason=TurnFailure.HALTED,
        text="halted before {agent} answered",
        agent="{agent} or the caller was halted before it replied",
        label="halted",
        is_fault=False,
        caller="The agent, or your account, was halted before it had answered.",
        owner="The agent, its owner or the caller was halted meanwhile.",
        advice="Its owner or the hub's administrators have to let it, or you, go on.",
        when="the agent, its owner or the caller was halted",
        claim=ClaimState.LINGERS_CONNECTED,
    ),
    FailureReason(
        reason=TurnFailure.ACCESS_ENDED,
        text="you may not ask {agent} any more",
        agent="the caller may not ask {agent} any more",
        label="access ended",
        is_fault=False,
        caller="You lost access to the agent before it had answered.",
        owner="The caller lost access to the agent meanwhile.",
        advice="Its owner, or a maintainer of its group, can give you access again.",
        when="the caller left a group, or the owner closed the agent to the caller",
        claim=ClaimState.LINGERS,
    ),
    FailureReason(
        reason=TurnFailure.AGENT_FAILED,
        text="the agent failed",
        agent="{agent} failed",
        caller="The agent said that it failed.",
        when="the agent reported a failure ([`task_status`](frames.md#more-than-text))",
        claim=ClaimState.FREED,
    ),
    FailureReason(
        reason=TurnFailure.REJECTED,
        text="the agent refused the question",
        agent="{agent} refused the question",
        label="declined",
        is_fault=False,
        caller="The agent declined to answer.",
        when="the agent refused to answer",
        claim=ClaimState.FREED,
    ),
    FailureReason(
        reason=TurnFailure.AGENT_CANCELED,
        text="the agent canceled the question",
        agent="{agent} canceled the question",
        label="canceled by the agent",
        is_fault=False,
        caller="The agent canceled this itself.",
        when="a [remote server](../howto/publish-a-remote-agent.md) canceled its task, and neither the caller nor"
        " the hub had asked for that",
        claim=ClaimState.FREED,
    ),
    FailureReason(
        reason=REMOVED,
        text="the agent was removed",
        agent="{agent} was removed",
        caller="The agent was removed before it had answered.",
        owner="The agent was removed.",
        when="the agent was removed from the database meanwhile",
        claim=ClaimState.FREED,
    ),
)
FAILURES: Mapping[str, FailureReason] = {entry.reason: entry for entry in _ENTRIES}


def find_failure(reason: str) -> FailureReason:
    """The entry of a stored reason; for an unknown reason the entry of a deleted agent."""
    return FAILURES.get(reason, FAILURES[REMOVED])


def failed(reason: TurnFailure, text: str = "") -> TurnEnding:
    """The ending of a turn that failed. `text`: the agent's own words, if it gave any."""
    return TurnEnding(outcome=Outcome.FAILED, reason=reason, text=text, keeps_claim=FAILURES[reason].claim.is_kept)
