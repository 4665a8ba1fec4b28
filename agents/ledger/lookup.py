"""The read before admission: whose token is this, and is the agent in the path published?"""

from collections.abc import Sequence

from accounts import authn
from accounts.authn import Identity
from agents.types import AgentRef, Found
from kit import sql

_FIND = """
SELECT a.handle_key, a.id, a.session_id, a.handle FROM agents_agent a JOIN accounts_user u ON u.id = a.owner_id
WHERE a.handle_key IN ({marks}) AND a.deleted_at IS NULL AND a.status = 'published' AND u.is_active
"""

Wanted = tuple[str | None, str | None]  # a token's digest, a handle


def look_up(wanted: Sequence[Wanted]) -> list[Found]:
    """Identities and published agents for a whole batch, one round trip for all; nothing is ever cached."""
    digests = {digest for digest, _ in wanted if digest} or {""}
    handles = {handle.lower() for _, handle in wanted if handle} or {""}
    query = sql.Query(_FIND.format(marks=sql.marks(handles)), list(handles))
    callers, agents = sql.rows_of_each([authn.identity_query(digests), query])
    identities = authn.identities(callers)
    by_handle = {row[0]: AgentRef(*row[1:]) for row in agents}
    return [_found(digest, handle, identities, by_handle) for digest, handle in wanted]


def _found(
    digest: str | None, handle: str | None, identities: dict[str, Identity], agents: dict[str, AgentRef]
) -> Found:
    return Found(identities.get(digest or ""), agents.get((handle or "").lower()))
