"""The read before admission: whose token is this, and is the agent in the path there for them?"""

from collections.abc import Collection, Sequence

from accounts import authn
from accounts.authn import Identity
from agents.types import Found, Target
from kit import sql

_FIND = """
SELECT a.handle_key, a.access, a.owner_id, a.id, a.session_id, a.handle
FROM agents_agent a JOIN accounts_user u ON u.id = a.owner_id
WHERE a.handle_key IN ({marks}) AND a.deleted_at IS NULL AND a.status = 'published' AND u.is_active
"""
_GRANTS = "SELECT agent_id, user_id FROM agents_agentgrant WHERE agent_id IN ({marks})"

Wanted = tuple[str | None, str | None]  # a token's digest, a handle
Grants = frozenset[tuple[int, int]]


def look_up(wanted: Sequence[Wanted]) -> list[Found]:
    """Identities and published agents for a whole batch; nothing is ever cached.

    One round trip for all, a second where an agent is not open to everybody.
    """
    digests = {digest for digest, _ in wanted if digest} or {""}
    handles = {handle.lower() for _, handle in wanted if handle} or {""}
    query = sql.Query(_FIND.format(marks=sql.marks(handles)), list(handles))
    callers, agents = sql.rows_of_each([authn.identity_query(digests), query])
    identities = authn.identities(callers)
    by_handle = {row[0]: row for row in agents}
    grants = _grants([row[3] for row in agents if row[1] == "limited"])
    return [
        _found(identities.get(digest or ""), by_handle.get((handle or "").lower()), grants)
        for digest, handle in wanted
    ]


def _found(identity: Identity | None, row: sql.Row | None, grants: Grants) -> Found:
    return Found(identity, Target(*row[3:]) if row and _is_there_for(identity, row, grants) else None)


def _is_there_for(identity: Identity | None, row: sql.Row, grants: Grants) -> bool:
    _, access, owner_id, agent_id = row[:4]
    if access == "public":
        return True
    return identity is not None and (identity.user_id == owner_id or (agent_id, identity.user_id) in grants)


def _grants(agent_ids: Collection[int]) -> Grants:
    if not agent_ids:
        return frozenset()
    found = sql.rows(_GRANTS.format(marks=sql.marks(agent_ids)), list(agent_ids))
    return frozenset((row[0], row[1]) for row in found)
