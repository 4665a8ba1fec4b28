"""Publishes, unpublishes, halts and resumes several agents of an owner, and reports the result for each."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from accounts.models import User
from agents.core import directory, halt_rules
from agents.models import Agent, Halt

MAX_AT_ONCE = 200
Status = Agent.Status


class BulkAction(StrEnum):
    """The change to make to each agent."""

    PUBLISH = "publish"
    UNPUBLISH = "unpublish"
    HALT = "halt"
    RESUME = "resume"


class Result(StrEnum):
    """The result for one agent. `same`: no change was needed; `kept`: an administrator's halt stays."""

    CHANGED = "changed"
    SAME = "same"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class AgentResult:
    """The result of an action for one agent, or the result that the action would have."""

    agent: Agent
    result: Result


@dataclass(frozen=True, slots=True)
class BulkReport:
    """The result for each agent, by handle. `absent`: ids that are not of the owner's agents."""

    results: Sequence[AgentResult]
    absent: Sequence[int]

    @property
    def changed(self) -> int:
        """The number of agents that were, or would be, changed."""
        return sum(one.result is Result.CHANGED for one in self.results)


def preview_change(owner: User, agent_ids: Collection[int], action: BulkAction) -> BulkReport:
    """The report that `change_agents` would return now; nothing is written."""
    own = Agent.objects.kept().owned_by(owner).select_related("owner").filter(pk__in=agent_ids)
    agents = {agent.pk: agent for agent in own}
    halted = load_halted(agents)
    results = [
        AgentResult(agent, _foresee(agent, halted.get(agent.pk), action))
        for agent in sorted(agents.values(), key=lambda one: one.handle_key)
    ]
    return BulkReport(results, sorted(set(agent_ids) - agents.keys()))


def change_agents(owner: User, agent_ids: Collection[int], action: BulkAction) -> BulkReport:
    """Change the owner's agents among these, at most MAX_AT_ONCE, in one transaction for each agent.

    A repeated change has no effect.
    """
    report = preview_change(owner, agent_ids, action)
    done, gone = [], []
    for one in report.results:
        if one.result is not Result.CHANGED or _change(one.agent, action):
            done.append(one)
        else:
            gone.append(one.agent.pk)
    return BulkReport(done, sorted([*report.absent, *gone]))


def load_halted(agent_ids: Collection[int]) -> dict[int, bool]:
    """The halted agents among these, by id; True if an administrator halted the agent."""
    halted: dict[int, bool] = {}
    active = Halt.objects.active().filter(kind=Halt.Kind.AGENT, agent_id__in=agent_ids)
    for agent_id, by_staff in active.values_list("agent_id", "by_staff"):
        halted[agent_id] = halted.get(agent_id, False) or by_staff
    return halted


def _foresee(agent: Agent, halted_by_staff: bool | None, action: BulkAction) -> Result:
    is_done: Mapping[BulkAction, bool] = {
        BulkAction.PUBLISH: agent.status == Status.PUBLISHED,
        BulkAction.UNPUBLISH: agent.status == Status.DRAFT,
        BulkAction.HALT: halted_by_staff is not None,
        BulkAction.RESUME: halted_by_staff is None,
    }
    if action is BulkAction.RESUME and halted_by_staff:
        return Result.KEPT
    return Result.SAME if is_done[action] else Result.CHANGED


def _change(agent: Agent, action: BulkAction) -> bool:
    """Change the agent; returns False if the agent was deleted meanwhile."""
    match action:
        case BulkAction.HALT:
            halt_rules.halt_own_agent(agent)
        case BulkAction.RESUME:
            halt_rules.resume_own_agent(agent)
        case _:
            status = Status.PUBLISHED if action is BulkAction.PUBLISH else Status.DRAFT
            return directory.revise_agent(agent.pk, {"status": status}) is not None
    return True
