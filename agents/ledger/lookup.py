"""The read before admission: whose token is this, and is the agent in the path there for them?

Hooks ask here too, for their session and its connection.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from accounts import authn
from accounts.authn import Identity
from agents.ledger.database import Database, Row, Statement, of_thread, statement
from agents.types import Found, HookedSession, Target

MARKDOWN = "text/markdown"
_FIND = statement("""
SELECT a.handle_key, a.access, a.owner_id, a.id, a.session_id, a.handle, a.wait_s, a.agent_style, a.max_body_bytes,
       a.task_store, CAST(a.output_modes AS text)
FROM agents_agent a JOIN accounts_user u ON u.id = a.owner_id
WHERE a.handle_key = ANY(:handles) AND a.deleted_at IS NULL AND a.status = 'published' AND u.is_active
""")
_GRANTS = statement("SELECT agent_id, user_id FROM agents_agentgrant WHERE agent_id = ANY(:agents)")
_SESSIONS = statement("""
SELECT s.public_id, s.id, s.credential_id, c.id, c.process_id
FROM agents_session s LEFT JOIN agents_connection c ON c.session_id = s.id WHERE s.public_id = ANY(:sessions)
""")
_IDENTITIES = Statement(*(authn.identity_statement(vendor) for vendor in Statement._fields))


class Wanted(NamedTuple):
    """A token's digest, an agent's handle, a session's public id."""

    digest: str | None
    handle: str | None
    session: UUID | None = None


Grants = frozenset[tuple[int, int]]


def look_up(wanted: Sequence[Wanted]) -> list[Found]:
    """Identities and published agents for a whole batch; nothing is ever cached.

    One round trip for all, a second where an agent is not open to everybody.
    """
    database = of_thread()
    with database.django_errors:
        database.open()
        return _look_up(database, wanted)


def _look_up(database: Database, wanted: Sequence[Wanted]) -> list[Found]:
    digests = {one.digest for one in wanted if one.digest}
    handles = {one.handle.lower() for one in wanted if one.handle}
    session_ids = {one.session for one in wanted if one.session}
    callers = database.send(_IDENTITIES, {"digests": database.list_of(list(digests))})
    agents = database.send(_FIND, {"handles": database.list_of(list(handles))})
    hooked = database.send(_SESSIONS, {"sessions": _as_stored(database, session_ids)}) if session_ids else None
    identities = authn.identities(callers.fetchall())
    by_handle = {row[0]: row for row in agents.fetchall()}
    sessions = {UUID(str(row[0])): HookedSession(*row[1:]) for row in hooked.fetchall()} if hooked else {}
    grants = _grants(database, [row[3] for row in by_handle.values() if row[1] == "limited"])
    return [
        _found(
            identities.get(one.digest or ""),
            by_handle.get((one.handle or "").lower()),
            grants,
            sessions.get(one.session) if one.session else None,
        )
        for one in wanted
    ]


def _as_stored(database: Database, session_ids: Collection[UUID]) -> object:
    """SQLite keeps a UUID as its 32 digits."""
    return database.list_of([one if database.is_postgresql else one.hex for one in session_ids])


def _found(identity: Identity | None, row: Row | None, grants: Grants, session: HookedSession | None) -> Found:
    """What one asker gets; a session only with the token that it last registered with."""
    agent = _target(row) if row and _is_there_for(identity, row, grants) else None
    is_its_own = session is not None and identity is not None and session.credential_id == identity.credential_id
    return Found(identity, agent, session if is_its_own else None)


def _target(row: Row) -> Target:
    agent_id, session_id, handle, wait_s, style, max_body_bytes, task_store, modes = row[3:]
    text_type = text_type_of(modes)
    return Target(agent_id, session_id, handle, wait_s, style, max_body_bytes, task_store, text_type)


def text_type_of(output_modes: str) -> str:
    """The media type of an agent's texts, given its output modes as JSON: Markdown if it stands before plain."""
    markdown, plain = output_modes.find(f'"{MARKDOWN}"'), output_modes.find('"text/plain"')
    return MARKDOWN if markdown >= 0 and (plain < 0 or markdown < plain) else ""


def _is_there_for(identity: Identity | None, row: Row, grants: Grants) -> bool:
    _, access, owner_id, agent_id = row[:4]
    if access == "public":
        return True
    return identity is not None and (identity.user_id == owner_id or (agent_id, identity.user_id) in grants)


def _grants(database: Database, agent_ids: Sequence[int]) -> Grants:
    if not agent_ids:
        return frozenset()
    found = database.send(_GRANTS, {"agents": database.list_of(agent_ids)}).fetchall()
    return frozenset((row[0], row[1]) for row in found)
