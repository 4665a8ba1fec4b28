"""May this ask go through now? The rules, over what the ledger read after its locks: plain and synchronous."""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from agents.core.errors import (
    AlreadyAsked,
    Blocked,
    Busy,
    Cycle,
    Denied,
    Ended,
    GaveUp,
    Halted,
    NotPublished,
    Offline,
    OverBudget,
    OverCallerBudget,
    OverCap,
    TooDeep,
    Waits,
)
from agents.core.types import Ask
from agents.models.choices import CHANNEL_LINK

MAX_DEPTH = 3
SESSION_CAP = 20


@dataclass(slots=True)
class AgentState:
    """One agent, or a session without, as the batch sees it; `spent` and the claims move as asks are admitted.

    `budget` None: asks to a session are not counted. `open_to_all`: else only its owner and the granted may ask.
    `link`: delivers to it. `is_reachable`: the link reaches it without a connection. `halted`: it, its session or
    its owner is.
    `queue_max`, `queue_wait_s`: how many asks may wait for it, and how long.
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
    link: str = CHANNEL_LINK
    is_reachable: bool = False
    halted: bool = False
    queue_max: int = 0
    queue_wait_s: int = 0

    @property
    def is_online(self) -> bool:
        """Whether there is a way to it."""
        return self.is_reachable or self.connection_id is not None


class Place(NamedTuple):
    """An ask that waits for a session."""

    chat_id: str
    caller_id: int


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
class AdmissionState:
    """All that decides about a batch: agents and sessions by id, live claims by session and caller.

    `granted` are pairs of agent and user, `blocked` of owner and caller; `halted` are callers, `ended` the turns
    among the parents of these asks that were canceled or failed.
    `callers`: by agent and caller, where the owner gave callers a budget.
    `open_asks`: by session, caller and message key, the chat id, task id and home of the turn, or the waiting ask,
    that is open for it. `lines`: who waits, by session, first to last.
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
    lines: dict[int, list[Place]] = field(default_factory=dict)

    def held(self, session_id: int) -> Counter[int]:
        """How many turns each caller holds of a session."""
        return self.claims.setdefault(session_id, Counter())

    def line(self, session_id: int) -> list[Place]:
        """Who waits for a session."""
        return self.lines.setdefault(session_id, [])

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


def admit(
    ask: Ask, state: AdmissionState, *, in_line: bool = False
) -> Denied | NotPublished | AlreadyAsked | Waits | None:
    """Decide one ask; the first refusal answers, and an admitted ask takes its claim and its unit of budget.

    Where the agent has a line, an ask that queues waits in it instead of being refused because others are at it.
    `in_line`: it does already. An ask that does not queue is refused while others wait.

    Budgets are asked last because they are the only rules that spend: the agent's, then the caller's own.
    """
    asked = state.find(ask)
    if asked is None or not asked.published:
        return NotPublished()
    if refusal := _refuse_caller(ask, asked, state):
        return refusal
    if same := _find_same(ask, state):
        return same
    now = _refuse_now(ask, asked, state)
    if ask.queues and asked.queue_max:
        decided = _decide_in_line(ask, asked, state, now, in_line=in_line)
    else:
        decided = now or _refuse_passing(ask, asked, state)
    if decided is None:
        state.held(asked.session_id)[ask.caller_id] += 1
        asked.spent += 1
        if own := state.find_spending(ask):
            own.spent += 1
    return decided


def _refuse_now(ask: Ask, asked: AgentState, state: AdmissionState) -> Denied | None:
    """Rules about how the agent is at this moment."""
    if not asked.is_online:
        return Offline()
    held = state.held(asked.session_id)
    if any(caller != ask.caller_id for caller in held):
        return Busy()
    if held[ask.caller_id] >= asked.cap:
        return OverCap(held[ask.caller_id])
    return _refuse_spent(ask, asked, state)


def _refuse_spent(ask: Ask, asked: AgentState, state: AdmissionState) -> OverBudget | OverCallerBudget | None:
    if asked.budget is not None and asked.spent >= asked.budget:
        return OverBudget(asked.budget)
    own = state.find_spending(ask)
    if own is not None and own.spent >= own.budget:
        return OverCallerBudget(own.budget)
    return None


def _decide_in_line(
    ask: Ask, asked: AgentState, state: AdmissionState, refusal: Denied | None, *, in_line: bool
) -> Denied | Waits | None:
    """What becomes of an ask that may wait: it does not pass those that wait already.

    Its agent may reconnect while it waits; to begin to wait it must be there. A caller has no more places than it
    may have turns. A place that is gone does not come back: its time was over, or its caller was suspended.
    """
    line = state.line(asked.session_id)
    chat_ids = [place.chat_id for place in line]
    ahead = chat_ids.index(ask.chat_id) if ask.chat_id in chat_ids else len(line)
    has_place = ahead < len(line)
    if in_line and not has_place:
        return GaveUp()
    if isinstance(refusal, Offline) and not has_place:
        return refusal
    if spent := _refuse_spent(ask, asked, state):
        return spent
    if refusal is None and not ahead:
        if has_place:
            del line[ahead]
        return None
    why = refusal or Busy()
    if not has_place:
        own = sum(place.caller_id == ask.caller_id for place in line)
        if len(line) >= asked.queue_max or own >= asked.cap:
            return why
        line.append(Place(ask.chat_id, ask.caller_id))
    return Waits(wait_s=asked.queue_wait_s, refusal=why, is_new=not has_place)


def _refuse_passing(ask: Ask, asked: AgentState, state: AdmissionState) -> Busy | None:
    """An ask that does not queue does not pass those that do, but for one that goes on with its task."""
    return Busy() if asked.queue_max and state.line(asked.session_id) and not ask.goes_on else None


def _find_same(ask: Ask, state: AdmissionState) -> AlreadyAsked | None:
    """The open turn of an identical message (docs/adr/0089)."""
    session_id = ask.target.session_id
    found = state.open_asks.get((session_id, ask.caller_id, ask.message_key)) if ask.message_key else None
    if found is None or found[0] == ask.chat_id:  # its own place in the line
        return None
    chat_id, task_id, home = found
    return AlreadyAsked(chat_id=chat_id, task_id=task_id, home=home)


def _refuse_caller(ask: Ask, asked: AgentState, state: AdmissionState) -> Denied | None:
    """Rules about who asks and how the ask came here."""
    if asked.halted or ask.caller_id in state.halted:
        return Halted(is_caller=not asked.halted)
    if (asked.owner_id, ask.caller_id) in state.blocked:
        return Blocked()
    if ask.parent in state.ended:
        return Ended()
    if ask.target.session_id in ask.chain:
        return Cycle()
    return TooDeep() if ask.depth > MAX_DEPTH else None
