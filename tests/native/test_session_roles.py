"""Every call on a session, by every kind of caller: its owner, those it is lent to in each role, strangers and
dead tokens.
"""

import itertools
import uuid
from typing import Any

import pytest

from accounts.models import Credential
from agents.models import Session
from agents.transcript.access import Role
from tests.native.rows import Person, api, make_session
from tests.native.transcripts import ROLES, lend

_numbers = itertools.count(1)
USAGE = {
    "capturedAt": "2026-01-01T00:00:00Z",
    "ccSessionId": "cc",
    "reason": "final",
    "models": [{"model": "m", "inputTokens": 1}],
}
CALLS: list[tuple[str, str, Any, Role, int]] = [
    ("get", "", None, Role.VIEWER, 200),
    ("get", "/events", None, Role.VIEWER, 200),
    ("get", "/op-messages", None, Role.VIEWER, 200),
    ("get", "/timeline", None, Role.VIEWER, 200),
    ("get", "/token-usage", None, Role.VIEWER, 200),
    ("get", "/permissions", None, Role.APPROVER, 200),
    ("get", "/shares", None, Role.OWNER, 200),
    ("post", "/shares", {"login": "dave", "role": "viewer"}, Role.OWNER, 201),
    ("delete", "/shares/dave", None, Role.OWNER, 200),
    ("post", "/archive", None, Role.OWNER, 200),
    ("post", "/token-usage", USAGE, Role.OWNER, 201),
    ("patch", "", {}, Role.OWNER, 200),
    ("delete", "?hard=true", None, Role.OWNER, 200),
    ("post", "/kill", {}, Role.VIEWER, 404),
    ("post", "/restart", {}, Role.VIEWER, 404),
    ("post", "/soft-restart", {}, Role.VIEWER, 404),
    ("post", "/input", {"bytes": "hi\r"}, Role.VIEWER, 404),
    ("post", "/rotate-channel-token", None, Role.VIEWER, 404),
    ("get", "/screenshot", None, Role.VIEWER, 404),
]


def call(token: str | None, session_id: object, method: str, path: str, body: Any) -> Any:
    kept = {"data": body, "format": "json"} if body is not None else {}
    return getattr(api(token), method)(f"/api/v1/sessions/{session_id}{path}", **kept)


def a_session(owner: Person) -> Session:
    """A session that no call has changed."""
    return make_session(owner.user, f"helper-{next(_numbers)}")


@pytest.mark.parametrize("kind", ["session", "app"])
def test_the_owner_may_do_all(alice: Person, dave: Person, kind: str, subtests: pytest.Subtests) -> None:
    for method, path, body, _, status in CALLS:
        with subtests.test(f"{method} {path}"):
            session = a_session(alice)
            assert call(getattr(alice, kind), session.public_id, method, path, body).status_code == status


@pytest.mark.parametrize("role", ROLES)
def test_a_sharee_may_do_what_their_role_reaches(
    alice: Person, carol: Person, dave: Person, role: str, subtests: pytest.Subtests
) -> None:
    for method, path, body, needed, status in CALLS:
        with subtests.test(f"{method} {path}"):
            session = a_session(alice)
            lend(session, carol.user, role)
            answer = call(carol.session, session.public_id, method, path, body)
            if Role[role.upper()] >= needed:
                assert answer.status_code == status
                continue
            assert answer.status_code == 403
            message = f"this takes the role {needed.word} of the session"
            assert answer.json() == {"error": "forbidden", "message": message}
            assert Session.objects.filter(pk=session.pk, archived_at=None).exists()


def test_to_strangers_a_session_is_as_absent_as_one_that_is_not(
    alice: Person, bob: Person, dave: Person, subtests: pytest.Subtests
) -> None:
    for method, path, body, _, _ in CALLS:
        with subtests.test(f"{method} {path}"):
            theirs = call(bob.session, a_session(alice).public_id, method, path, body)
            absent = call(bob.session, uuid.uuid4(), method, path, body)
            assert theirs.status_code == absent.status_code == 404
            assert theirs.json() == absent.json() == {"error": "not_found", "message": "no such session"}


def test_a_session_lent_by_a_suspended_owner_is_gone(
    alice: Person, carol: Person, dave: Person, subtests: pytest.Subtests
) -> None:
    alice.user.is_active = False
    alice.user.save()
    for method, path, body, _, _ in CALLS:
        with subtests.test(f"{method} {path}"):
            session = a_session(alice)
            lend(session, carol.user, "approver")
            assert call(carol.session, session.public_id, method, path, body).status_code == 404


@pytest.mark.parametrize("caller", ["anonymous", "revoked", "channel"])
def test_every_call_takes_a_live_operators_token(
    alice: Person, dave: Person, caller: str, subtests: pytest.Subtests
) -> None:
    Credential.objects.filter(prefix=alice.app[:14]).revoke()
    token = {"anonymous": None, "revoked": alice.app, "channel": alice.channel}[caller]
    for method, path, body, _, _ in CALLS:
        with subtests.test(f"{method} {path}"):
            answer = call(token, a_session(alice).public_id, method, path, body)
            if (caller, method, path) == ("channel", "post", "/token-usage"):
                assert answer.status_code == 404, "the session was not registered with this token"
                continue
            assert answer.status_code == 401
            assert answer["WWW-Authenticate"] == "Bearer"
            assert set(answer.json()) == {"error", "message"}
