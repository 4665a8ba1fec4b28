"""Tokens written straight into the database of a hub under test, without a start of Django for each."""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from kit.ids import unguessable
from lab.statements import Run, writing

PREFIXES = {"session": "cw_sess_", "channel": "ck_live_", "app": "cw_app_"}
SESSION_LIFETIME = timedelta(days=30)
NEW_USER = """
INSERT INTO accounts_user (login, password, avatar_url, is_active, is_staff, is_superuser, created_at)
VALUES (?, '', '', ?, ?, ?, ?)
"""
NEW_CREDENTIAL = """
INSERT INTO accounts_credential (user_id, kind, name, prefix, digest, user_agent, created_at, expires_at)
SELECT id, ?, 'minted by a test', ?, ?, '', ?, ? FROM accounts_user WHERE lower(login) = lower(?)
"""
Wanted = tuple[str, str, bool]


def mint_tokens(env: Mapping[str, str], wanted: Iterable[Wanted]) -> dict[Wanted, str]:
    """A new token of each (login, kind, is of the staff), with the rows that `manage.py mint_token` writes.

    `env`: the hub's environment; its database has all tables. Columns that are not named here have a default in
    the database, as every column must that the release before does not know.
    """
    with writing(env) as run:
        return {each: _mint(run, *each) for each in wanted}


def _mint(run: Run, login: str, kind: str, is_staff: bool) -> str:
    token, now = unguessable(PREFIXES[kind]), datetime.now(UTC)
    if not run("SELECT id FROM accounts_user WHERE lower(login) = lower(?)", login).fetchone():
        run(NEW_USER, login, True, False, False, now)
    if is_staff:
        run("UPDATE accounts_user SET is_staff = ?, is_superuser = ? WHERE login = ?", True, True, login)
    digest = hashlib.sha256(token.encode()).hexdigest()
    expires_at = now + SESSION_LIFETIME if kind == "session" else None
    run(NEW_CREDENTIAL, kind, token[:14], digest, now, expires_at, login)
    return token
