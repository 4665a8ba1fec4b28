"""The read before admission: whose token is this, and is the agent in the path published?"""

from collections.abc import Collection, Sequence

from accounts.authn import Identity, identify
from agents.types import AgentRef, Found
from kit import sql

_FIND = """
SELECT a.handle_key, a.id, a.session_id, a.handle FROM agents_agent a JOIN accounts_user u ON u.id = a.owner_id
WHERE a.handle_key IN ({marks}) AND a.deleted_at IS NULL AND a.status = 'published' AND u.is_active
"""

Wanted = tuple[str | None, str | None]  # a token's digest, a handle


def look_up(wanted: Sequence[Wanted]) -> list[Found]:
    """Identities and published agents for a whole batch, two queries for all; credentials are never cached."""
    identities = identify({digest for digest, _ in wanted if digest})
    agents = find_agents({handle.lower() for _, handle in wanted if handle})
    return [_found(digest, handle, identities, agents) for digest, handle in wanted]


def find_agents(handle_keys: Collection[str]) -> dict[str, AgentRef]:
    """The published agents among these handles (in lower case)."""
    if not handle_keys:
        return {}
    found = sql.rows(_FIND.format(marks=sql.marks(handle_keys)), list(handle_keys))
    return {row[0]: AgentRef(*row[1:]) for row in found}


def _found(
    digest: str | None, handle: str | None, identities: dict[str, Identity], agents: dict[str, AgentRef]
) -> Found:
    return Found(identities.get(digest or ""), agents.get((handle or "").lower()))
