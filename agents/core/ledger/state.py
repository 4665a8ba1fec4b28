"""Reads the caller and the agent of a request, and under a batch's locks the state that admission needs."""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from uuid import UUID

from msgspec import Struct

from accounts.authn import TOUCH_EVERY, Identity
from agents.core.admission import SESSION_CAP, AdmissionState, AgentState, CallerSpending, QueuePosition
from agents.core.ledger.database import Database, Row, thread_database
from agents.core.ledger.texts import Statement, statement
from agents.core.ledger.work import Admit, Deny
from agents.core.types import AskTarget, HookedSession, LookUpResult
from agents.models.choices import AGENTS_OWN_WORDS, Outcome
from kit import sql

MARKDOWN = "text/markdown"
_FIND = statement("""
SELECT a.handle_key, a.access, a.owner_id, a.id, a.session_id, a.handle, a.wait_s, a.agent_style, a.max_body_bytes,
       a.task_store, CAST(a.output_modes AS text), u.is_group,
       EXISTS (SELECT 1 FROM agents_followup f WHERE f.agent_id = a.id AND f.shown_at IS NULL)
FROM agents_agent a JOIN accounts_user u ON u.id = a.owner_id
WHERE a.handle_key = ANY(:handles) AND a.deleted_at IS NULL AND a.status = 'published' AND u.is_active
""")
# Pairs of agent and user: users whom a limited agent names; members of groups that it names; and members of the
# group that owns the agent. A grant names a group by the group's account (docs/adr/0190).
_GRANTS = statement("""
SELECT g.agent_id, g.user_id FROM agents_agentgrant g JOIN agents_agent a ON a.id = g.agent_id
WHERE a.access = 'limited' AND a.id = ANY(:agents) AND g.user_id = ANY(:users)
UNION ALL
SELECT g.agent_id, m.user_id FROM agents_agentgrant g JOIN agents_agent a ON a.id = g.agent_id
JOIN accounts_membership m ON m.group_id = g.user_id JOIN accounts_user u ON u.id = m.group_id
WHERE a.access = 'limited' AND a.id = ANY(:agents) AND m.user_id = ANY(:users)
  AND m.role <> 'auditor' AND u.is_active
UNION ALL
SELECT a.id, m.user_id FROM agents_agent a JOIN accounts_membership m ON m.group_id = a.owner_id
WHERE a.id = ANY(:agents) AND m.user_id = ANY(:users) AND m.role <> 'auditor'
""")
_HOOKED = statement("""
SELECT s.public_id, s.id, s.credential_id, c.id, c.process_id
FROM agents_session s LEFT JOIN agents_connection c ON c.session_id = s.id WHERE s.public_id = ANY(:sessions)
""")
# The query of `accounts.authn.find_holder`, here in one round trip with the agent's. The query reads the clock,
# because a look-up has no transaction, and so no time of a batch.
_CLOCK = sql.NOW["sqlite"].replace("%%", "%")  # with named values, SQLite's driver does not unescape `%%`
_IDENTITIES = statement(
    """
SELECT c.digest, c.id, c.kind, c.name, u.id, u.login, u.is_staff,
       c.last_used_at IS NULL OR c.last_used_at < {stale}, c.scopes, c.only_agent, u.is_group
FROM accounts_credential c JOIN accounts_user u ON u.id = c.user_id
WHERE c.digest = ANY(:digests) AND c.revoked_at IS NULL AND u.is_active
  AND (c.expires_at IS NULL OR c.expires_at > {now})
  AND (c.minted_by_id IS NULL OR EXISTS (
    SELECT 1 FROM accounts_user p WHERE p.id = c.minted_by_id AND p.is_active))
""",
    now=Statement(_CLOCK, sql.NOW["postgresql"]),
    stale=Statement(
        _CLOCK.removesuffix(")") + f", '-{TOUCH_EVERY.total_seconds()} seconds')",
        f"{sql.NOW['postgresql']} - interval '{TOUCH_EVERY.total_seconds()} seconds'",
    ),
)

_LIVE = """
LEFT JOIN agents_connection c ON c.session_id = s.id
  AND EXISTS (SELECT 1 FROM agents_process p WHERE p.id = c.process_id AND p.beat_at > {alive})
"""
_OWN_WORDS = ", ".join(f"'{reason}'" for reason in sorted(AGENTS_OWN_WORDS))
_HALTED = """(
  EXISTS (SELECT 1 FROM agents_halt h JOIN agents_agent ha ON ha.id = h.agent_id
          WHERE h.lifted_at IS NULL AND h.kind = 'agent' AND ha.session_id = {session} AND ha.deleted_at IS NULL)
  OR EXISTS (SELECT 1 FROM agents_halt h
             WHERE h.lifted_at IS NULL AND h.kind = 'owner' AND h.user_id = {owner}))
"""
# Columns: the agent's id, whether callers have budgets of their own, then the fields of `AgentState`.
_AGENTS = statement(
    """
SELECT a.id, a.caller_budget IS NOT NULL OR a.caller_limit_microusd IS NOT NULL OR EXISTS (
         SELECT 1 FROM agents_callerbudget b WHERE b.agent_id = a.id AND b.daily_budget IS NOT NULL),
       a.status = 'published' AND a.deleted_at IS NULL AND u.is_active, a.session_id, a.owner_id,
       c.id, c.process_id, a.daily_budget, a.concurrency_cap, a.isolated, a.access = 'public',
       COALESCE(d.queries, 0), s.link, s.reachable_from <= {now}, a.queue_max, a.queue_wait_s, """
    + _HALTED.format(session="a.session_id", owner="a.owner_id")
    + """, a.daily_limit_microusd, COALESCE(d.cost_microusd, 0)
FROM agents_agent a JOIN accounts_user u ON u.id = a.owner_id JOIN agents_session s ON s.id = a.session_id
"""
    + _LIVE
    + "LEFT JOIN agents_dailyusage d ON d.agent_id = a.id AND d.day = {day} WHERE a.id = ANY(:agents)"
)
_SESSIONS = statement(
    f"""
SELECT s.id, s.archived_at IS NULL AND u.is_active, s.id, s.owner_id, c.id, c.process_id,
       NULL, {SESSION_CAP}, 0, 1, 0, s.link, s.reachable_from <= {{now}}, 0, 0,
       {_HALTED.format(session="s.id", owner="s.owner_id")}, NULL, 0
FROM agents_session s JOIN accounts_user u ON u.id = s.owner_id
"""
    + _LIVE
    + "WHERE s.id = ANY(:sessions)"
)
# The claims of sessions, and their open asks. Rows without a chat id are blocks: of owner and caller; a block of a
# halted caller has no owner.
_CLAIMS_AND_BLOCKS = statement("""
SELECT session_id, caller_id, chat_id, task_id, home, CASE WHEN outcome IS NULL THEN message_key ELSE '' END
FROM agents_turn
WHERE released_at IS NULL AND claim_until > {now} AND session_id = ANY(:held)
UNION ALL SELECT owner_id, caller_id, NULL, NULL, NULL, NULL FROM agents_callerblock
WHERE caller_id = ANY(:callers)
UNION ALL SELECT NULL, user_id, NULL, NULL, NULL, NULL FROM agents_halt
WHERE lifted_at IS NULL AND kind = 'caller' AND user_id = ANY(:callers)
""")
_QUEUED_ASKS = statement("""
SELECT q.session_id, q.caller_id, q.chat_id, q.task_id, q.home, q.message_key
FROM agents_queuedask q JOIN agents_process p ON p.id = q.home AND p.beat_at > {alive}
JOIN accounts_user u ON u.id = q.caller_id AND u.is_active
WHERE q.waits_until > {now} AND q.session_id = ANY(:lines) ORDER BY q.id
""")
# Columns: agent, caller, the caller's group (null: the caller's own budget), then the fields of `CallerSpending`.
_CALLERS = statement("""
SELECT a.id, u.id, NULL, COALESCE(b.daily_budget, a.caller_budget),
       CASE WHEN b.day = {day} THEN b.queries ELSE 0 END,
       a.caller_limit_microusd, CASE WHEN b.day = {day} THEN b.cost_microusd ELSE 0 END
FROM agents_agent a CROSS JOIN accounts_user u
LEFT JOIN agents_callerbudget b ON b.agent_id = a.id AND b.caller_id = u.id
WHERE a.id = ANY(:agents) AND u.id = ANY(:callers)
  AND COALESCE(b.daily_budget, a.caller_budget, a.caller_limit_microusd) IS NOT NULL
UNION ALL
SELECT b.agent_id, m.user_id, b.caller_id, b.daily_budget,
       CASE WHEN b.day = {day} THEN b.queries ELSE 0 END, NULL, 0
FROM agents_callerbudget b JOIN accounts_membership m ON m.group_id = b.caller_id AND m.role <> 'auditor'
WHERE b.agent_id = ANY(:agents) AND m.user_id = ANY(:callers) AND b.daily_budget IS NOT NULL
""")
# Turns that are open, that were answered, or that the agent itself failed or rejected; not turns that were
# canceled, that failed for another reason, or that were deleted.
_PARENTS_THAT_GO_ON = statement(f"""
SELECT chat_id FROM agents_turn
WHERE chat_id = ANY(:parents)
  AND (outcome IS NULL OR outcome = '{Outcome.COMPLETED}' OR reason IN ({_OWN_WORDS}))
""")
# The lock makes the closing of an account wait: its erasure finds every row that was written before.
_OPEN_ACCOUNTS = statement(
    "SELECT id FROM accounts_user WHERE id = ANY(:ids) AND closed_at IS NULL",
    postgresql_lock="ORDER BY id FOR SHARE",
)


BuildAsk = Callable[[LookUpResult], Admit | Deny]


class LookUp(Struct, frozen=True):
    """Look up a token by its digest, an agent by its handle, a session by its public id. Result: LookUpResult.

    `then`: builds an ask from the LookUpResult. The same batch decides the ask; the result of this work is then
    the result of the ask, or the exception that `then` raised. The ledger's thread calls `then` once, so it must
    be quick.
    """

    digest: str | None
    handle: str | None
    session: UUID | None = None
    then: BuildAsk | None = None


def look_up(wanted: Sequence[LookUp]) -> list[LookUpResult]:
    """Look up identities, published agents and sessions for a whole batch; nothing is cached.

    The function makes one round trip for all, and a second one for the grants of limited agents, and of private
    agents of groups.
    """
    database = thread_database()
    digests = {one.digest for one in wanted if one.digest}
    handles = {one.handle.lower() for one in wanted if one.handle}
    # SQLite keeps a UUID as its 32 digits.
    session_ids = {one.session if database.is_postgresql else one.session.hex for one in wanted if one.session}
    identities: dict[str | None, Identity] = {}
    agents: dict[str, Row] = {}
    sessions: dict[UUID | None, HookedSession] = {}
    limited: list[int] = []
    granted: Collection[tuple[int, int]] = ()
    with database.django_errors:
        callers, found = database.send(_IDENTITIES, digests=digests), database.send(_FIND, handles=handles)
        hooked = database.send(_HOOKED, sessions=session_ids) if session_ids else None
        for digest, *columns in callers.fetchall():
            identities[digest] = Identity(*columns)
        for row in found.fetchall():
            agents[row[0]] = row
            if row[1] == "limited" or (row[1] == "private" and row[11]):
                limited.append(row[3])
        for row in hooked.fetchall() if hooked else ():
            sessions[UUID(str(row[0]))] = HookedSession(*row[1:])
        if limited and identities:
            users = {one.user_id for one in identities.values()}
            granted = {(row[0], row[1]) for row in database.send(_GRANTS, agents=limited, users=users).fetchall()}
    results: list[LookUpResult] = []
    for one in wanted:
        identity, session = identities.get(one.digest), sessions.get(one.session) if sessions else None
        if session is not None and (identity is None or session.credential_id != identity.credential_id):
            session = None  # the session last registered with another token
        target = None
        if one.handle and (agent := agents.get(one.handle.lower())):
            _, access, owner_id, agent_id, session_id, handle, *settings, modes, _, has_follow_ups = agent
            user_id = identity.user_id if identity is not None else None
            if access == "public" or user_id == owner_id or (agent_id, user_id) in granted:
                wait_s, style, max_body_bytes, task_store = settings
                target = AskTarget(
                    agent_id,
                    session_id,
                    handle,
                    wait_s,
                    style,
                    max_body_bytes,
                    task_store,
                    text_type_of(modes),
                    bool(has_follow_ups),
                )
        results.append(LookUpResult(identity, target, session))
    return results


@lru_cache(maxsize=128)  # few values are in use; this is the only column of a look-up that is parsed
def text_type_of(output_modes: str) -> str:
    """The media type of Markdown if an agent's output modes (JSON) name Markdown before plain text; else empty."""
    markdown, plain = output_modes.find(f'"{MARKDOWN}"'), output_modes.find('"text/plain"')
    return MARKDOWN if markdown >= 0 and (plain < 0 or markdown < plain) else ""


def read_state(database: Database, admits: Collection[Admit]) -> AdmissionState:
    """Read the state that admission needs for these asks, under the locks of their sessions.

    The statements for all asks are sent before a result is fetched. Limited agents, budgets of callers, queues,
    and asks that agents pass on cost one more statement each.
    """
    caller_ids = {one.ask.caller_id for one in admits}
    session_ids = {one.ask.target.session_id for one in admits}
    asked_ids = {one.ask.target.agent_id for one in admits}
    parents = {one.ask.parent for one in admits} - {""}
    agent_ids = asked_ids - {None}
    plain: Collection[int] = ()
    if None in asked_ids:
        plain = {one.ask.target.session_id for one in admits if one.ask.target.agent_id is None}
    asked_agents = database.send(_AGENTS, agents=agent_ids) if agent_ids else None
    asked_sessions = database.send(_SESSIONS, sessions=plain) if plain else None
    claims = database.send(_CLAIMS_AND_BLOCKS, held=session_ids, callers=caller_ids)

    state = AdmissionState()
    limited, budgeting, waited_for = [], [], []
    for agent_id, has_caller_budgets, *columns in asked_agents.fetchall() if asked_agents else ():
        agent = state.agents[agent_id] = AgentState(*columns)
        if not agent.open_to_all:
            limited.append(agent_id)
        if has_caller_budgets:
            budgeting.append(agent_id)
        if agent.queue_max:
            waited_for.append(agent.session_id)
    for session_id, *columns in asked_sessions.fetchall() if asked_sessions else ():
        state.sessions[session_id] = AgentState(*columns)
    for session_id, caller_id, *open_ask, message_key in claims.fetchall():
        if open_ask[0] is None:
            if session_id is None:
                state.halted.add(caller_id)
            else:
                state.blocked.add((session_id, caller_id))
            continue
        held = state.claims.setdefault(session_id, {})
        held[caller_id] = held.get(caller_id, 0) + 1
        if message_key:
            state.open_asks[session_id, caller_id, message_key] = tuple(open_ask)
    if limited:
        state.granted.update(database.send(_GRANTS, agents=limited, users=caller_ids).fetchall())
    if budgeting:
        spending = database.send(_CALLERS, agents=budgeting, callers=caller_ids)
        for agent_id, caller_id, group_id, *columns in spending.fetchall():
            if group_id is None:
                state.callers[agent_id, caller_id] = CallerSpending(*columns)
                continue
            state.callers.setdefault((agent_id, group_id), CallerSpending(*columns))
            state.groups.setdefault((agent_id, caller_id), []).append(group_id)
    if waited_for:
        queued = database.send(_QUEUED_ASKS, lines=waited_for)
        for session_id, caller_id, *open_ask, message_key in queued.fetchall():
            state.queues.setdefault(session_id, []).append(QueuePosition(open_ask[0], caller_id))
            if message_key:
                state.open_asks[session_id, caller_id, message_key] = tuple(open_ask)
    if parents:
        state.ended = _ended(database, parents)
    return state


def ended_parents(chat_ids: Collection[str]) -> frozenset[str]:
    """The turns among these that were canceled, failed or deleted: no caller waits for asks made in them."""
    database = thread_database()
    with database.django_errors:
        return _ended(database, chat_ids)


def _ended(database: Database, chat_ids: Collection[str]) -> frozenset[str]:
    if not chat_ids:
        return frozenset()
    going_on = database.send(_PARENTS_THAT_GO_ON, parents=chat_ids).fetchall()
    return frozenset(chat_ids) - {row[0] for row in going_on}


def lock_open_accounts(database: Database, user_ids: Collection[int]) -> set[int]:
    """The accounts among these that are not closed. The lock keeps them so until the transaction ends."""
    return {row[0] for row in database.send(_OPEN_ACCOUNTS, ids=user_ids).fetchall()}
