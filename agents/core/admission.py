"""The admission rules: pure functions over the state that the ledger loaded under its locks."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct, field

from agents.core.errors import (
    AlreadyAsked,
    Blocked,
    Busy,
    Cycle,
    Denied,
    Ended,
    Halted,
    MustWait,
    NotPublished,
    Offline,
    OverBudget,
    OverCallerBudget,
    OverCallerCostLimit,
    OverCap,
    OverCostLimit,
    OverGroupBudget,
    TooDeep,
    Unavailable,
    WaitAbandoned,
)
from agents.core.trust import is_progress
from agents.core.types import Ask
from agents.models.agent import MAX_BUDGET
from agents.models.choices import CHANNEL_LINK

MAX_DEPTH = 3
SESSION_CAP = 20


class AgentState(Struct):
    """The state of one agent, or of a session without an agent; `spent` grows as asks of the batch are admitted.

    The fields are in the order of the columns that `agents.core.ledger.state` reads.

    `budget` None: asks to a session are not counted. `open_to_all`: if not, only its owner, members of the group
    that owns it, and granted users may ask. `link`: the link that delivers to the agent. `is_reachable`: the link
    needs no connection. `halted`: the agent, its session or its owner is halted. `queue_max`, `queue_wait_s`: how
    many asks may wait for the agent, and how long. `limit_microusd`: the cost at which a day's asks are refused;
    None: no limit. `cost_microusd`: the cost of the day's ended turns.
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
    queue_max: int = 0
    queue_wait_s: int = 0
    halted: bool = False
    limit_microusd: int | None = None
    cost_microusd: int = 0


class QueuePosition(NamedTuple):
    """An ask that waits for a session."""

    chat_id: str
    caller_id: int


class CallerSpending(Struct):
    """The daily limits of one caller at one agent; `spent` grows as asks are admitted.

    `budget` None: only the budget of the agent limits the caller. `limit_microusd`, `cost_microusd`: see
    `AgentState`.
    """

    budget: int | None
    spent: int = 0
    limit_microusd: int | None = None
    cost_microusd: int = 0

    @property
    def has_reached_cost_limit(self) -> bool:
        """True if the cost of earlier questions has reached the limit, so that no further question is admitted."""
        return self.limit_microusd is not None and self.cost_microusd >= self.limit_microusd

    @property
    def left(self) -> int:
        """The number of questions that may still be asked today."""
        if self.has_reached_cost_limit:
            return 0
        return MAX_BUDGET if self.budget is None else max(0, self.budget - self.spent)


class AdmissionState(Struct):
    """The rows that admission needs for a batch; `agents` and `sessions` are by id.

    `granted`: pairs of agent and user. `blocked`: pairs of owner and caller. `halted`: callers. `ended`: the
    parents of these asks that were canceled or failed. `callers`: limits of single callers, by agent and caller.
    `groups`: the groups of a caller that have a budget at an agent, by agent and caller; these budgets are in
    `callers`, by agent and group.
    `claims`: the number of live claims, by session and caller. `open_asks`: chat id, task id and home of the open
    turn or waiting ask, by session, caller and message key. `queues`: the waiting asks by session, first to last.
    """

    agents: dict[int, AgentState] = field(default_factory=dict)
    sessions: dict[int, AgentState] = field(default_factory=dict)
    granted: set[tuple[int, int]] = field(default_factory=set)
    blocked: set[tuple[int, int]] = field(default_factory=set)
    halted: set[int] = field(default_factory=set)
    ended: frozenset[str] = frozenset()
    callers: dict[tuple[int, int], CallerSpending] = field(default_factory=dict)
    groups: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    claims: dict[int, dict[int, int]] = field(default_factory=dict)
    open_asks: dict[tuple[int, int, str], tuple[str, ...]] = field(default_factory=dict)
    queues: dict[int, list[QueuePosition]] = field(default_factory=dict)


def decide_ask(
    ask: Ask, state: AdmissionState, *, in_queue: bool = False
) -> AgentState | Denied | NotPublished | Unavailable | AlreadyAsked | MustWait:
    """Decide one ask; returns the first refusal, or the agent or session that takes an admitted ask.

    The function counts the claim and the unit of budget of an admitted ask in `state`.

    If the agent is busy and has a queue, an ask that may wait gets a position in the queue instead of a refusal.
    `in_queue`: the ask has a position already. An ask that may not wait is refused while others wait.

    Budgets are checked last, because they are the only rules that spend: the agent's, then those of the caller's
    groups, then the caller's own. A cost limit is compared with the cost of ended turns, so asks that run at the
    same time may exceed the limit (docs/howto/limit-costs.md).
    """
    target, caller_id, own = ask.target, ask.caller_id, None
    agent_id, session_id = target.agent_id, target.session_id
    groups: Sequence[CallerSpending] = ()
    if agent_id is None:
        asked = state.sessions.get(session_id)
    else:
        asked = state.agents.get(agent_id)
        own = state.callers.get((agent_id, caller_id)) if state.callers else None
        if state.groups:
            groups = [state.callers[agent_id, one] for one in state.groups.get((agent_id, caller_id), ())]
    if asked is None or not asked.published:
        return NotPublished()
    if asked.session_id != session_id:
        return Unavailable()  # the agent moved after it was looked up: the next look-up finds its session
    if not (asked.open_to_all or asked.owner_id == caller_id or (agent_id, caller_id) in state.granted):
        return NotPublished()
    if refusal := _caller_denial(ask, asked, state):
        return refusal
    if ask.message_key and (key := (session_id, caller_id, ask.message_key)) in state.open_asks:
        chat_id, task_id, home = state.open_asks[key]
        if chat_id != ask.chat_id:  # otherwise this is the ask's own position in the queue
            return AlreadyAsked(chat_id=chat_id, task_id=task_id, home=home)  # docs/adr/0089
    now = _denial_for_now(ask, asked, own, groups, state)
    if not asked.queue_max:
        decided: Denied | MustWait | None = now
    elif ask.queues:
        decided = _decide_queued(ask, asked, own, groups, state, now, in_queue=in_queue)
    else:  # an ask that may not wait does not overtake waiting asks, unless it continues its task
        is_passing = state.queues.get(session_id) and not ask.continues_task
        decided = now or (Busy() if is_passing else None)
    if decided is not None:
        return decided
    held = state.claims.setdefault(session_id, {})
    held[caller_id] = held.get(caller_id, 0) + 1
    asked.spent += 1
    if own is not None:
        own.spent += 1
    for group in groups:
        group.spent += 1
    return asked


def _denial_for_now(
    ask: Ask,
    asked: AgentState,
    own: CallerSpending | None,
    groups: Sequence[CallerSpending],
    state: AdmissionState,
) -> Denied | None:
    """Check the present state of the agent: online, claims, cap, budgets. `own`: the caller's own limits.

    `groups`: the limits of the caller's groups.
    """
    if not (asked.is_reachable or asked.connection_id is not None):
        return Offline()
    if held := state.claims.get(asked.session_id):
        own_turns = held.get(ask.caller_id, 0)
        if len(held) > bool(own_turns):
            return Busy()
        # SESSION_CAP does not apply to messages to a session: the sender's rate and open messages are limited.
        is_message_to_session = ask.credential_id is not None and ask.target.agent_id is None
        if own_turns >= asked.cap and not is_message_to_session:
            return OverCap(own_turns)
    return _spent_denial(asked, own, groups)


def _spent_denial(
    asked: AgentState, own: CallerSpending | None, groups: Sequence[CallerSpending]
) -> Denied | None:
    """Check the budget and the limit on costs: the agent's, then the budgets of the caller's groups, then the
    caller's own.
    """
    if asked.budget is not None and asked.spent >= asked.budget:
        return OverBudget(asked.budget)
    if asked.limit_microusd is not None and asked.cost_microusd >= asked.limit_microusd:
        return OverCostLimit()
    for group in groups:
        if group.budget is not None and group.spent >= group.budget:
            return OverGroupBudget(group.budget)
    if own is None:
        return None
    if own.budget is not None and own.spent >= own.budget:
        return OverCallerBudget(own.budget)
    return OverCallerCostLimit() if own.has_reached_cost_limit else None


def _decide_queued(
    ask: Ask,
    asked: AgentState,
    own: CallerSpending | None,
    groups: Sequence[CallerSpending],
    state: AdmissionState,
    refusal: Denied | None,
    *,
    in_queue: bool,
) -> Denied | MustWait | None:
    """Decide an ask that may wait: it does not overtake asks that wait already.

    The agent must be online when the wait begins, and may reconnect during it. A caller has at most as many
    positions as turns. An ask whose position is deleted is refused: its time was over, or its caller was
    suspended.
    """
    queue = state.queues.setdefault(asked.session_id, [])
    chat_ids = [position.chat_id for position in queue]
    ahead = chat_ids.index(ask.chat_id) if ask.chat_id in chat_ids else len(queue)
    has_position = ahead < len(queue)
    if in_queue and not has_position:
        return WaitAbandoned()
    if isinstance(refusal, Offline) and not has_position:
        return refusal
    if spent := _spent_denial(asked, own, groups):
        return spent
    if refusal is None and not ahead:
        if has_position:
            del queue[ahead]
        return None
    why = refusal or Busy()
    if not has_position:
        own_positions = sum(position.caller_id == ask.caller_id for position in queue)
        if len(queue) >= asked.queue_max or own_positions >= asked.cap:
            return why
        queue.append(QueuePosition(ask.chat_id, ask.caller_id))
    return MustWait(wait_s=asked.queue_wait_s, refusal=why, is_new=not has_position)


def _caller_denial(ask: Ask, asked: AgentState, state: AdmissionState) -> Denied | None:
    """Check the caller and the chain of sessions that the ask came through."""
    if asked.halted or ask.caller_id in state.halted:
        return Halted(is_caller=not asked.halted)
    if (asked.owner_id, ask.caller_id) in state.blocked:
        return Blocked()
    if ask.parent in state.ended:
        return Ended()
    if not ask.chain or is_progress(ask, asked.owner_id):
        return None
    if ask.target.session_id in ask.chain:
        return Cycle()
    return TooDeep() if ask.depth > MAX_DEPTH else None
