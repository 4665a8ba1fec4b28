"""May this ask go through now? The rules, over what the ledger read after its locks: plain and synchronous."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.errors import Busy, Denied, NotPublished, Offline, OverBudget, OverCap
from agents.types import Ask


@dataclass(slots=True)
class AgentState:
    """One agent as the batch sees it; `spent` and the claims move as asks of the batch are admitted."""

    published: bool
    session_id: int
    budget: int
    cap: int
    connection_id: int | None
    process_id: str | None
    spent: int = 0


@dataclass(slots=True)
class House:
    """All that decides about a batch: agents by id, live claims by session and caller."""

    agents: Mapping[int, AgentState]
    claims: dict[int, Counter[int]] = field(default_factory=dict)

    def held(self, session_id: int) -> Counter[int]:
        """How many turns each caller holds of a session."""
        return self.claims.setdefault(session_id, Counter())


def admit(ask: Ask, house: House) -> Denied | NotPublished | None:
    """Decide one ask; the first refusal answers, and an admitted ask takes its claim and its unit of budget.

    The budget is asked last because it is the only rule that spends.
    """
    agent = house.agents.get(ask.agent.agent_id)
    if agent is None or not agent.published or agent.session_id != ask.agent.session_id:
        return NotPublished()
    if agent.connection_id is None:
        return Offline()
    held = house.held(agent.session_id)
    if any(caller != ask.caller_id for caller in held):
        return Busy()
    if held[ask.caller_id] >= agent.cap:
        return OverCap(held[ask.caller_id])
    if agent.spent >= agent.budget:
        return OverBudget(agent.budget)
    held[ask.caller_id] += 1
    agent.spent += 1
    return None
