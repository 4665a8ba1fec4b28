"""Reads: a request's caller and agent (`look_up`), and what decides about a batch, behind its locks."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from accounts.authn import TOUCH_EVERY, Identity
from agents.core.admission import SESSION_CAP, AdmissionState, AgentState, CallerSpending, QueuePosition
from agents.core.ledger.database import Database, Row, StatementResult, thread_database
from agents.core.ledger.statements import DecisionTime
from agents.core.ledger.texts import Statement, statement
from agents.core.ledger.work import Admit, Deny
from agents.core.types import AskTarget, HookedSession, LookUpResult
from agents.models.choices import AGENTS_OWN_WORDS, Outcome
from kit import sql

MARKDOWN = "text/markdown"
_FIND = statement("""
SELECT a.handle_key, a.access, a.owner_id, a.id, a.session_id, a.handle, a.wait_s, a.agent_style, a.max_body_bytes,
       a.task_store, CAST(a.output_modes AS text),
       EXISTS (SELECT 1 FROM agents_followup f WHERE f.agent_id = a.id AND f.shown_at IS NULL)
FROM agents_agent a JOIN accounts_user u ON u.id = a.owner_id
WHERE a.handle_key = ANY(:handles) AND a.deleted_at IS NULL AND a.status = 'published' AND u.is_active
""")
_GRANTED = statement("SELECT agent_id, user_id FROM agents_agentgrant WHERE agent_id = ANY(:agents)")
_HOOKED = statement("""
SELECT s.public_id, s.id, s.credential_id, c.id, c.process_id
FROM agents_session s LEFT JOIN agents_connection c ON c.session_id = s.id WHERE s.public_id = ANY(:sessions)
""")
# The query of `accounts.authn.find_holder`, here in one round trip with the agent. The query reads the clock: a
# look-up has no transaction, and so no moment of a batch.
_CLOCK = sql.NOW["sqlite"].replace("%%", "%")  # SQLite's driver takes `%` in statements with named values as it is
_IDENTITIES = statement(
    """
SELECT c.digest, c.id, c.kind, c.name, u.id, u.login, u.is_staff,
       c.last_used_at IS NULL OR c.last_used_at < {stale}, c.scopes, c.only_agent
FROM accounts_credential c JOIN accounts_user u ON u.id = c.user_id
WHERE c.digest = ANY(:digests) AND c.revoked_at IS NULL AND u.is_active
  AND (c.expires_at IS NULL OR c.expires_at > {now})
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
_AGENTS = statement(
    """
SELECT a.id, a.status = 'published' AND a.deleted_at IS NULL AND u.is_active, a.session_id, a.owner_id,
       c.id, c.process_id, a.daily_budget, a.concurrency_cap, a.isolated, a.access = 'public',
       COALESCE(d.queries, 0), s.link, s.reachable_from <= {now}, a.queue_max, a.queue_wait_s,
       a.caller_budget IS NOT NULL OR a.caller_limit_microusd IS NOT NULL OR EXISTS (
         SELECT 1 FROM agents_callerbudget b WHERE b.agent_id = a.id AND b.daily_budget IS NOT NULL
       ), """
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
       NULL, {SESSION_CAP}, 0, 1, 0, s.link, s.reachable_from <= {{now}}, 0, 0, 0,
       {_HALTED.format(session="s.id", owner="s.owner_id")}, NULL, 0
FROM agents_session s JOIN accounts_user u ON u.id = s.owner_id
"""
    + _LIVE
    + "WHERE s.id = ANY(:sessions)"
)
_CLAIMS = statement("""
SELECT session_id, caller_id, chat_id, task_id, home, CASE WHEN outcome IS NULL THEN message_key ELSE '' END
FROM agents_turn
WHERE released_at IS NULL AND claim_until > {now} AND session_id = ANY(:held)
""")
_BLOCKS = statement("""
SELECT owner_id, caller_id FROM agents_callerblock WHERE caller_id = ANY(:callers)
UNION ALL SELECT NULL, user_id FROM agents_halt
WHERE lifted_at IS NULL AND kind = 'caller' AND user_id = ANY(:callers)
""")
_QUEUED_ASKS = statement("""
SELECT q.session_id, q.caller_id, q.chat_id, q.task_id, q.home, q.message_key
FROM agents_queuedask q JOIN agents_process p ON p.id = q.home AND p.beat_at > {alive}
JOIN accounts_user u ON u.id = q.caller_id AND u.is_active
WHERE q.waits_until > {now} AND q.session_id = ANY(:lines) ORDER BY q.id
""")
_GRANTS = statement("""
SELECT g.agent_id, g.user_id FROM agents_agentgrant g JOIN agents_agent a ON a.id = g.agent_id
WHERE a.access = 'limited' AND a.id = ANY(:agents)
""")

_CALLERS = statement("""
SELECT a.id, u.id, COALESCE(b.daily_budget, a.caller_budget), CASE WHEN b.day = {day} THEN b.queries ELSE 0 END,
       a.caller_limit_microusd, CASE WHEN b.day = {day} THEN b.cost_microusd ELSE 0 END
FROM agents_agent a CROSS JOIN accounts_user u
LEFT JOIN agents_callerbudget b ON b.agent_id = a.id AND b.caller_id = u.id
WHERE a.id = ANY(:agents) AND u.id = ANY(:callers)
  AND COALESCE(b.daily_budget, a.caller_budget, a.caller_limit_microusd) IS NOT NULL
""")
# Turns that are open, were answered, or that the agent itself failed or rejected. Not those that were canceled,
# failed otherwise or were deleted.
_PARENTS_THAT_GO_ON = statement(f"""
SELECT chat_id FROM agents_turn
WHERE chat_id = ANY(:parents)
  AND (outcome IS NULL OR outcome = '{Outcome.COMPLETED}' OR reason IN ({_OWN_WORDS}))
""")


BuildAsk = Callable[[LookUpResult], Admit | Deny]


class LookUp(NamedTuple):
    """A token's digest, an agent's handle, a session's public id, to look up. Result: LookUpResult.

    `then`: makes an ask of what was found, that is decided in the same batch; its result is that of this work, or
    what `then` raises. The function is called once, in the ledger's thread, and must be quick.
    """

    digest: str | None
    handle: str | None
    session: UUID | None = None
    then: BuildAsk | None = None


Grants = frozenset[tuple[int, int]]


def look_up(wanted: Sequence[LookUp]) -> list[LookUpResult]:
    """Identities and published agents for a whole batch; nothing is ever cached.

    The function makes one round trip for all, and a second one for the grants of limited agents.
    """
    database = thread_database()
    digests, handles, session_ids = set(), set(), set()
    for one in wanted:
        digests.add(one.digest)
        handles.add(one.handle and one.handle.lower())
        if one.session:
            session_ids.add(one.session)
    limited: list[int] = []
    with database.django_errors:
        database.open()
        callers = database.send(_IDENTITIES, {"digests": database.list_of(digests - {None})})
        agents = database.send(_FIND, {"handles": database.list_of(handles - {None})})
        hooked = database.send(_HOOKED, {"sessions": _as_stored(database, session_ids)}) if session_ids else None
        identities: dict[str | None, Identity] = {}
        for digest, *columns in callers.fetchall():
            identities[digest] = Identity(*columns)
        by_handle: dict[str | None, Row] = {}
        for row in agents.fetchall():
            by_handle[row[0]] = row
            if row[1] == "limited":
                limited.append(row[3])
        sessions = {UUID(str(row[0])): HookedSession(*row[1:]) for row in hooked.fetchall()} if hooked else {}
        grants = _grants(database, limited) if limited else frozenset()
    results: list[LookUpResult] = []
    for one in wanted:
        session = sessions.get(one.session) if one.session else None
        agent = by_handle.get(one.handle and one.handle.lower())
        results.append(_found(identities.get(one.digest), agent, grants, session))
    return results


def _as_stored(database: Database, session_ids: Collection[UUID]) -> object:
    """SQLite keeps a UUID as its 32 digits."""
    return database.list_of([one if database.is_postgresql else one.hex for one in session_ids])


def _found(
    identity: Identity | None, row: Row | None, grants: Grants, session: HookedSession | None
) -> LookUpResult:
    """The result for one request; a session only with the token that it last registered with."""
    agent = _target(row) if row and (row[1] == "public" or _may_see(identity, row, grants)) else None
    is_its_own = session is not None and identity is not None and session.credential_id == identity.credential_id
    return LookUpResult(identity, agent, session if is_its_own else None)


def _target(row: Row) -> AskTarget:
    agent_id, session_id, handle, wait_s, style, max_body_bytes, task_store, modes, has_follow_ups = row[3:]
    return AskTarget(
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


def text_type_of(output_modes: str) -> str:
    """The media type of an agent's texts, given its output modes as JSON: Markdown if it stands before plain."""
    markdown, plain = output_modes.find(f'"{MARKDOWN}"'), output_modes.find('"text/plain"')
    return MARKDOWN if markdown >= 0 and (plain < 0 or markdown < plain) else ""


def _may_see(identity: Identity | None, row: Row, grants: Grants) -> bool:
    """True if an agent that is not public exists for this caller: its owner, and the users it was opened to."""
    _, _, owner_id, agent_id = row[:4]
    return identity is not None and (identity.user_id == owner_id or (agent_id, identity.user_id) in grants)


def _grants(database: Database, agent_ids: Sequence[int]) -> Grants:
    found = database.send(_GRANTED, {"agents": database.list_of(agent_ids)}).fetchall()
    return frozenset((row[0], row[1]) for row in found)


class StateReader:
    """Reads what decides about these asks: sends the statements at once, and takes the answers in `read`."""

    def __init__(self, database: Database, admits: Collection[Admit], moment: DecisionTime) -> None:
        self._database = database
        self._values = moment.values
        self._caller_ids: set[int] = set()
        self._parents: set[str] = set()
        agent_ids, plain, asked = set(), set(), set()
        for admit in admits:
            ask, target = admit.ask, admit.ask.target
            asked.add(target.session_id)
            self._caller_ids.add(ask.caller_id)
            if target.agent_id is None:
                plain.add(target.session_id)
            else:
                agent_ids.add(target.agent_id)
            if ask.parent:
                self._parents.add(ask.parent)
        self._agents = self._send(_AGENTS, "agents", agent_ids) if agent_ids else None
        self._sessions = self._send(_SESSIONS, "sessions", plain) if plain else None
        self._claims = self._send(_CLAIMS, "held", asked)
        self._blocks = self._send(_BLOCKS, "callers", self._caller_ids)

    def read(self) -> AdmissionState:
        """Limited agents, budgets of callers, queues, and asks that agents pass on cost one more query each."""
        agents, sessions = {}, {}
        limited, budgeting, waited_for = [], [], []
        for row in self._agents.fetchall() if self._agents else ():
            agent = agents[row[0]] = _state(row)
            if not agent.open_to_all:
                limited.append(row[0])
            if row[15]:
                budgeting.append(row[0])
            if agent.queue_max:
                waited_for.append(agent.session_id)
        for row in self._sessions.fetchall() if self._sessions else ():
            sessions[row[0]] = _state(row)
        blocked: set[tuple[int, int]] = set()
        halted: set[int] = set()
        for owner_id, caller_id in self._blocks.fetchall():
            if owner_id is None:
                halted.add(caller_id)
            else:
                blocked.add((owner_id, caller_id))
        state = AdmissionState(
            agents=agents,
            sessions=sessions,
            granted=self._granted(limited) if limited else frozenset(),
            callers=self._callers(budgeting) if budgeting else {},
            blocked=blocked,
            halted=halted,
            ended=_ended(self._database, self._parents) if self._parents else frozenset(),
        )
        for session_id, caller_id, chat_id, task_id, home, message_key in self._claims.fetchall():
            state.held(session_id)[caller_id] += 1
            if message_key:
                state.open_asks[session_id, caller_id, message_key] = chat_id, task_id, home
        if waited_for:
            self._read_queues(state, waited_for)
        return state

    def _send(
        self, statement: Statement, name: str, values: Collection[object], **more: Collection[object]
    ) -> StatementResult:
        lists = {name: self._database.list_of(values)}
        if more:
            lists |= {other: self._database.list_of(those) for other, those in more.items()}
        return self._database.send(statement, {**self._values, **lists})

    def _read_queues(self, state: AdmissionState, session_ids: Sequence[int]) -> None:
        """Add the asks that wait for these sessions."""
        found = self._send(_QUEUED_ASKS, "lines", session_ids).fetchall()
        for session_id, caller_id, chat_id, task_id, home, message_key in found:
            state.queue(session_id).append(QueuePosition(chat_id, caller_id))
            if message_key:
                state.open_asks[session_id, caller_id, message_key] = chat_id, task_id, home

    def _callers(self, agent_ids: Sequence[int]) -> dict[tuple[int, int], CallerSpending]:
        """The spending of these callers at agents that give callers a budget, by agent and caller."""
        found = self._send(_CALLERS, "agents", agent_ids, callers=self._caller_ids).fetchall()
        return {(row[0], row[1]): CallerSpending(*row[2:]) for row in found}

    def _granted(self, agent_ids: Sequence[int]) -> frozenset[tuple[int, int]]:
        return frozenset((row[0], row[1]) for row in self._send(_GRANTS, "agents", agent_ids).fetchall())


def ended_parents(chat_ids: Collection[str]) -> frozenset[str]:
    """The canceled, failed or deleted ones of these turns: no caller waits for the asks made in them."""
    database = thread_database()
    with database.django_errors:
        database.open()
        return _ended(database, chat_ids)


def _ended(database: Database, chat_ids: Collection[str]) -> frozenset[str]:
    if not chat_ids:
        return frozenset()
    going_on = database.send(_PARENTS_THAT_GO_ON, {"parents": database.list_of(chat_ids)}).fetchall()
    return frozenset(chat_ids) - {row[0] for row in going_on}


def _state(row: Row) -> AgentState:
    """A row of agents or of sessions; SQLite has no booleans of its own."""
    published, isolated, open_to_all = bool(row[1]), bool(row[8]), bool(row[9])
    _, _, session_id, owner_id, connection_id, process_id, budget, cap, _, _, spent, link = row[:12]
    is_reachable, queue_max, queue_wait_s, _, halted, limit_microusd, cost_microusd = row[12:]
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
        link=link,
        is_reachable=bool(is_reachable),
        halted=bool(halted),
        queue_max=queue_max,
        queue_wait_s=queue_wait_s,
        limit_microusd=limit_microusd,
        cost_microusd=cost_microusd,
    )
