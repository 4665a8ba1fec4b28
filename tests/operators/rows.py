"""Rows that tests put into a running hub's database."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from lab.hub_process import HubProcess
from tests.channel.agents import sql

OF_SESSION = "FROM agents_session s, accounts_user u WHERE s.public_id = ? AND u.login = ?"
SHARE = f"""
INSERT INTO agents_share (session_id, user_id, role, shared_by_id, created_at)
SELECT s.id, u.id, ?, s.owner_id, CURRENT_TIMESTAMP {OF_SESSION}
ON CONFLICT (session_id, user_id) DO UPDATE SET role = excluded.role
"""
REQUEST = """
INSERT INTO agents_permissionrequest (session_id, request_id, tool, input_preview, status, message, requested_at,
expires_at)
SELECT id, ?, 'Bash', 'ls', 'pending', '', CURRENT_TIMESTAMP, ? FROM agents_session WHERE public_id = ?
"""
SESSION = """
INSERT INTO agents_session (owner_id, public_id, routing_name, host, cwd, os_user, channel_version, started_at,
last_seen_at)
SELECT id, ?, ?, '', '', '', '', CURRENT_TIMESTAMP, CURRENT_TIMESTAMP FROM accounts_user WHERE login = ?
"""


def stored(hub: HubProcess, public_id: Any) -> str:
    """The public id of a session as the hub's database holds it."""
    return str(public_id) if hub.home.is_grown else str(public_id).replace("-", "")


def share(hub: HubProcess, session_id: str | None, **roles: str) -> None:
    """Lend a session to users, `login="role"`."""
    for login, role in roles.items():
        hub.mint(login, "session")  # the user is there
        sql(hub, SHARE, role, stored(hub, session_id), login)


def archive(hub: HubProcess, session_id: str | None) -> None:
    statement = "UPDATE agents_session SET archived_at = CURRENT_TIMESTAMP WHERE public_id = ?"
    sql(hub, statement, stored(hub, session_id))


def request_permission(hub: HubProcess, session_id: str | None, *request_ids: str) -> None:
    """Let the agent of a session ask for permissions."""
    for request_id in request_ids:
        sql(hub, REQUEST, request_id, datetime.now(UTC) + timedelta(minutes=10), stored(hub, session_id))


def revoke(hub: HubProcess, login: str) -> None:
    """Revoke all tokens of a user."""
    of_user = "(SELECT id FROM accounts_user WHERE login = ?)"
    sql(hub, f"UPDATE accounts_credential SET revoked_at = CURRENT_TIMESTAMP WHERE user_id = {of_user}", login)


def suspend(hub: HubProcess, login: str) -> None:
    sql(hub, "UPDATE accounts_user SET is_active = ? WHERE login = ?", False, login)


def add_sessions(hub: HubProcess, login: str, count: int) -> None:
    hub.mint(login, "session")
    for number in range(count):
        sql(hub, SESSION, stored(hub, uuid4()), f"s-{number}", login)
