"""What decides about a batch, read after its locks."""

from collections.abc import Collection, Sequence
from datetime import datetime

from agents.admission import SESSION_CAP, AgentState, CallerSpending, House, Place
from agents.ledger import statements
from agents.models.presence import alive_since
from agents.types import Ask
from kit import sql

_LIVE = """
LEFT JOIN (agents_connection c JOIN agents_process p ON p.id = c.process_id AND p.beat_at > %s)
  ON c.session_id = {session}
LEFT JOIN agents_remoteserver r ON r.session_id = {session} AND (r.retry_at IS NULL OR r.retry_at <= %s)
"""
_HALTED = """(
  EXISTS (SELECT 1 FROM agents_halt h JOIN agents_agent ha ON ha.id = h.agent_id
          WHERE h.lifted_at IS NULL AND h.kind = 'agent' AND ha.session_id = {session} AND ha.deleted_at IS NULL)
  OR EXISTS (SELECT 1 FROM agents_halt h
             WHERE h.lifted_at IS NULL AND h.kind = 'owner' AND h.user_id = {owner}))
"""
_AGENTS = (
    """
SELECT a.id, a.status = 'published' AND a.deleted_at IS NULL AND u.is_active, a.session_id, a.owner_id,
       c.id, c.process_id, a.daily_budget, a.concurrency_cap, a.isolated, a.access = 'public',
       COALESCE(d.queries, 0), r.id IS NOT NULL, a.queue_max, a.queue_wait_s,
       a.caller_budget IS NOT NULL OR EXISTS (
         SELECT 1 FROM agents_callerbudget b WHERE b.agent_id = a.id AND b.daily_budget IS NOT NULL
       ), """
    + _HALTED.format(session="a.session_id", owner="a.owner_id")
    + """
FROM agents_agent a JOIN accounts_user u ON u.id = a.owner_id
"""
    + _LIVE.format(session="a.session_id")
    + "LEFT JOIN agents_dailyusage d ON d.agent_id = a.id AND d.day = %s WHERE a.id IN ({marks})"
)
_SESSIONS = (
    f"""
SELECT s.id, s.archived_at IS NULL AND u.is_active, s.id, s.owner_id, c.id, c.process_id,
       NULL, {SESSION_CAP}, 0, 1, 0, r.id IS NOT NULL, 0, 0, 0,
       {_HALTED.format(session="s.id", owner="s.owner_id")}
FROM agents_session s JOIN accounts_user u ON u.id = s.owner_id
"""
    + _LIVE.format(session="s.id")
    + "WHERE s.id IN ({marks})"
)
_CLAIMS = """
SELECT session_id, caller_id, chat_id, task_id, home, CASE WHEN outcome IS NULL THEN message_key ELSE '' END
FROM agents_turn
WHERE released_at IS NULL AND claim_until > %s AND session_id IN ({marks})
"""
_BLOCKS = """
SELECT owner_id, caller_id FROM agents_callerblock WHERE caller_id IN ({marks})
UNION ALL SELECT NULL, user_id FROM agents_halt
WHERE lifted_at IS NULL AND kind = 'caller' AND user_id IN ({marks})
"""
_LINES = """
SELECT q.session_id, q.caller_id, q.chat_id, q.task_id, q.home, q.message_key
FROM agents_queuedask q JOIN agents_process p ON p.id = q.home AND p.beat_at > %s
JOIN accounts_user u ON u.id = q.caller_id AND u.is_active
WHERE q.waits_until > %s AND q.session_id IN ({marks}) ORDER BY q.id
"""
_GRANTS = """
SELECT g.agent_id, g.user_id FROM agents_agentgrant g JOIN agents_agent a ON a.id = g.agent_id
WHERE a.access = 'limited' AND a.id IN ({marks})
"""

_CALLERS = """
SELECT a.id, u.id, COALESCE(b.daily_budget, a.caller_budget), CASE WHEN b.day = %s THEN b.queries ELSE 0 END
FROM agents_agent a CROSS JOIN accounts_user u
LEFT JOIN agents_callerbudget b ON b.agent_id = a.id AND b.caller_id = u.id
WHERE a.id IN ({agents}) AND u.id IN ({callers}) AND COALESCE(b.daily_budget, a.caller_budget) IS NOT NULL
"""


def read_house(asks: Collection[Ask], now: datetime, day: object) -> House:
    """All that decides about these asks: one round trip, and one more each where an agent is not open to all,
    gives callers budgets of their own, asks on, or has a line.
    """
    agent_ids = list({ask.target.agent_id for ask in asks if ask.target.agent_id is not None})
    plain = list({ask.target.session_id for ask in asks if ask.target.agent_id is None})
    agents, sessions, claims, blocks = _read(asks, agent_ids, plain, now, day)
    house = House(
        agents={row[0]: _state(row) for row in agents},
        sessions={row[0]: _state(row) for row in sessions},
        granted=_granted([row[0] for row in agents if not row[9]]),
        callers=_callers([row[0] for row in agents if row[14]], {ask.caller_id for ask in asks}, day),
        blocked=frozenset((row[0], row[1]) for row in blocks if row[0] is not None),
        halted=frozenset(row[1] for row in blocks if row[0] is None),
        ended=frozenset(statements.ended_parents({ask.parent for ask in asks if ask.parent})),
    )
    for session_id, caller_id, chat_id, task_id, home, message_key in claims:
        house.held(session_id)[caller_id] += 1
        if message_key:
            house.open_asks[session_id, caller_id, message_key] = chat_id, task_id, home
    if waited_for := [agent.session_id for agent in house.agents.values() if agent.queue_max]:
        _read_lines(house, waited_for, now)
    return house


def _read_lines(house: House, session_ids: Sequence[int], now: datetime) -> None:
    """Add who waits for these sessions."""
    values = [sql.moment(alive_since(now)), sql.moment(now), *session_ids]
    for session_id, caller_id, chat_id, task_id, home, message_key in sql.rows(
        _LINES.format(marks=sql.marks(session_ids)), values
    ):
        house.line(session_id).append(Place(chat_id, caller_id))
        if message_key:
            house.open_asks[session_id, caller_id, message_key] = chat_id, task_id, home


def _read(
    asks: Collection[Ask], agent_ids: Sequence[int], plain: Sequence[int], now: datetime, day: object
) -> list[list[sql.Row]]:
    """Rows of agents, of sessions without, of claims and of blocks; what nobody asked for is not queried."""
    alive = sql.moment(alive_since(now))
    stored = sql.moment(now)
    held = list({ask.target.session_id for ask in asks})
    callers = list({ask.caller_id for ask in asks})
    queries = [
        sql.Query(_AGENTS.format(marks=sql.marks(agent_ids)), [alive, stored, day, *agent_ids])
        if agent_ids
        else None,
        sql.Query(_SESSIONS.format(marks=sql.marks(plain)), [alive, stored, *plain]) if plain else None,
        sql.Query(_CLAIMS.format(marks=sql.marks(held)), [stored, *held]),
        sql.Query(_BLOCKS.format(marks=sql.marks(callers)), [*callers, *callers]),
    ]
    found = iter(sql.rows_of_each([query for query in queries if query]))
    return [next(found) if query else [] for query in queries]


def _state(row: sql.Row) -> AgentState:
    """A row of agents or of sessions; SQLite has no booleans of its own."""
    published, isolated, open_to_all = bool(row[1]), bool(row[8]), bool(row[9])
    _, _, session_id, owner_id, connection_id, process_id, budget, cap, _, _, spent, is_remote = row[:12]
    queue_max, queue_wait_s, _, halted = row[12:]
    return AgentState(
        published=published,
        session_id=session_id,
        owner_id=owner_id,
        connection_id=connection_id,
        process_id=process_id,
        budget=budget,
        cap=cap,
        isolated=isolated,
        open_to_all=open_to_all,
        spent=spent,
        is_remote=bool(is_remote),
        halted=bool(halted),
        queue_max=queue_max,
        queue_wait_s=queue_wait_s,
    )


def _callers(
    agent_ids: Sequence[int], caller_ids: Collection[int], day: object
) -> dict[tuple[int, int], CallerSpending]:
    """What these callers spent at agents that give callers a budget, by agent and caller."""
    if not agent_ids:
        return {}
    statement = _CALLERS.format(agents=sql.marks(agent_ids), callers=sql.marks(caller_ids))
    return {
        (row[0], row[1]): CallerSpending(row[2], row[3])
        for row in sql.rows(statement, [day, *agent_ids, *caller_ids])
    }


def _granted(agent_ids: Sequence[int]) -> frozenset[tuple[int, int]]:
    if not agent_ids:
        return frozenset()
    return frozenset((row[0], row[1]) for row in sql.rows(_GRANTS.format(marks=sql.marks(agent_ids)), agent_ids))
