"""`POST /sessions/{id}/permissions/{requestId}/resolve`: who may, and what they are told."""

import pytest

from agents.models import PermissionRequest, Session
from agents.transcript import permissions
from tests.native.rows import Person, api, make_session


@pytest.fixture
def session(alice: Person) -> Session:
    """A session of alice's with a request that waits."""
    session = make_session(alice.user)
    permissions.request(session.pk, "r/1", tool="Bash", input_preview="ls")
    return session


def resolve(session: Session, token: str | None, request_id: str = "r/1", **body: object) -> tuple[int, str]:
    path = f"/api/v1/sessions/{session.public_id}/permissions/{request_id}/resolve"
    answer = api(token).post(path, {"decision": "deny"} | body, format="json")
    return answer.status_code, answer.json().get("error", "")


def test_the_second_decision_is_a_conflict(session: Session, alice: Person) -> None:
    assert resolve(session, alice.session, message="no \N{SNOWMAN}") == (200, "")
    assert resolve(session, alice.session, decision="allow") == (409, "conflict")
    row = PermissionRequest.objects.get()
    assert (row.status, row.message, row.resolver_id) == ("denied", "no \N{SNOWMAN}", alice.user.pk)


def test_a_request_of_another_session_is_absent(session: Session, alice: Person) -> None:
    other = make_session(alice.user, "other")
    assert resolve(other, alice.session) == (404, "not_found")
    assert resolve(session, alice.session, request_id="r%2F1") == (200, "")
