"""May this ask go through now? The rules, over what the ledger read after its locks: plain and synchronous."""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from agents.errors import (
    AlreadyAsked,
    Blocked,
    Busy,
    Cycle,
    Denied,
    Ended,
    Halted,
    NotPublished,
    Offline,
    OverBudget,
    OverCallerBudget,
    OverCap,
    TooDeep,
)
from agents.types import Ask

MAX_DEPTH = 3
SESSION_CAP = 20


@dataclass(slots=True)
class AgentState:
    """One agent, or a session without, as the batch sees it; `spent` and the claims move as asks are admitted.

    `budget` None: asks to a session are not counted. `open_to_all`: else only its owner and the granted may ask.
    `is_remote`: a remote server that answers; it needs no connection. `halted`: it, its session or its owner is.
    """

    published: bool
    session_id: int
    owner_id: int
    connection_id: int | None
    process_id: str | None
    budget: int | None = None
    cap: int = SESSION_CAP
    isolated: bool = False
    open_to_all: bool = True
    spent: int = 0
    is_remote: bool = False
    halted: bool = False

    @property
    def is_online(self) -> bool:
        """Whether there is a way to it."""
        return self.is_remote or self.connection_id is not None


@dataclass(slots=True)
class CallerSpending:
    """The daily budget of one caller at one agent; `spent` moves as asks are admitted."""

    budget: int
    spent: int = 0

    @property
    def left(self) -> int:
        """How many questions are left."""
        return max(0, self.budget - self.spent)


@dataclass(slots=True)
class House:
    """All that decides about a batch: agents and sessions by id, live claims by session and caller.

    `granted` are pairs of agent and user, `blocked` of owner and caller; `halted` are callers, `ended` the turns
    among the parents of these asks that were canceled or failed.
    `callers`: by agent and caller, where the owner gave callers a budget.
    `open_asks`: by session, caller and message key, the chat id, task id and home of the turn that is open for it.
    """

    agents: Mapping[int, AgentState]
    sessions: Mapping[int, AgentState] = field(default_factory=dict)
    granted: Set[tuple[int, int]] = frozenset()
    blocked: Set[tuple[int, int]] = frozenset()
    halted: Set[int] = frozenset()
    ended: Set[str] = frozenset()
    callers: Mapping[tuple[int, int], CallerSpending] = field(default_factory=dict)
    claims: dict[int, Counter[int]] = field(default_factory=dict)
    open_asks: dict[tuple[int, int, str], tuple[str, str, str]] = field(default_factory=dict)

    def held(self, session_id: int) -> Counter[int]:
        """How many turns each caller holds of a session."""
        return self.claims.setdefault(session_id, Counter())

    def find_spending(self, ask: Ask) -> CallerSpending | None:
        """What the caller spent of a budget of their own at the agent; None when they have none."""
        return self.callers.get((ask.target.agent_id, ask.caller_id)) if ask.target.agent_id is not None else None

    def find(self, ask: Ask) -> AgentState | None:
        """What the ask is for, if it is there for its caller."""
        target = ask.target
        if target.agent_id is None:
            return self.sessions.get(target.session_id)
        agent = self.agents.get(target.agent_id)
        if agent is None or not agent.published or agent.session_id != target.session_id:
            return None
        is_open = agent.open_to_all or agent.owner_id == ask.caller_id
        return agent if is_open or (target.agent_id, ask.caller_id) in self.granted else None


def admit(ask: Ask, house: House) -> Denied | NotPublished | AlreadyAsked | None:
    """Decide one ask; the first refusal answers, and an admitted ask takes its claim and its unit of budget.

    Budgets are asked last because they are the only rules that spend: the agent's, then the caller's own.
    """
    asked = house.find(ask)
    if asked is None or not asked.published:
        return NotPublished()
    if refusal := _refuse_caller(ask, asked, house):
        return refusal
    if same := _find_same(ask, house):
        return same
    if not asked.is_online:
        return Offline()
    held = house.held(asked.session_id)
    if any(caller != ask.caller_id for caller in held):
        return Busy()
    if held[ask.caller_id] >= asked.cap:
        return OverCap(held[ask.caller_id])
    if asked.budget is not None and asked.spent >= asked.budget:
        return OverBudget(asked.budget)
    own = house.find_spending(ask)
    if own is not None and own.spent >= own.budget:
        return OverCallerBudget(own.budget)
    held[ask.caller_id] += 1
    asked.spent += 1
    if own is not None:
        own.spent += 1
    return None


def _find_same(ask: Ask, house: House) -> AlreadyAsked | None:
    """The open turn of an identical message (docs/adr/0062)."""
    session_id = ask.target.session_id
    found = house.open_asks.get((session_id, ask.caller_id, ask.message_key)) if ask.message_key else None
    if found is None:
        return None
    chat_id, task_id, home = found
    return AlreadyAsked(
        chat_id=chat_id, task_id=task_id, home=home, session_id=session_id, message_key=ask.message_key
    )


def _refuse_caller(ask: Ask, asked: AgentState, house: House) -> Denied | None:
    """Rules about who asks and how the ask came here."""
    if asked.halted or ask.caller_id in house.halted:
        return Halted(is_caller=not asked.halted)
    if (asked.owner_id, ask.caller_id) in house.blocked:
        return Blocked()
    if ask.parent in house.ended:
        return Ended()
    if ask.target.session_id in ask.chain:
        return Cycle()
    return TooDeep() if ask.depth > MAX_DEPTH else None
