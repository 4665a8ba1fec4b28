"""Requests that this hub knows and does not serve get an answer that says so. Permission requests are shown."""

import json

import pytest
from django.utils import timezone
from websockets.asyncio.client import connect as dial
from websockets.exceptions import InvalidStatus

from agents.models import Session
from lab.callers import bearer
from lab.hub_process import HubProcess
from tests.native.rows import Person, api, make_agent, make_session, names
from tests.native.transcripts import request_permission

NOT_HERE = {"error": "not_implemented", "message": "this hub does not manage desktops"}


def test_desktops_and_the_programs_of_sessions_are_not_managed_here(alice: Person, session: Session) -> None:
    assert api(alice.session).get("/api/v1/desktops").json() == {"items": []}
    steered = f"sessions/{session.public_id}"
    verbs = ("kill", "restart", "soft-restart", "input", "rotate-channel-token")
    for method, path in [
        ("delete", "desktops/m1"),
        ("post", "desktops/1/sessions"),
        ("get", "desktops/1/shares"),
        ("post", "desktops/1/shares"),
        ("delete", "desktops/1/shares/bob"),
        ("post", "sessions/preflight"),
        *(("post", f"{steered}/{verb}") for verb in verbs),
        ("get", f"{steered}/screenshot"),
    ]:
        answer = getattr(api(alice.session), method)(f"/api/v1/{path}")
        assert (answer.status_code, answer.json()) == (404, NOT_HERE), (method, path)


def test_a_session_may_be_patched_to_what_it_is(alice: Person, session: Session) -> None:
    path = f"/api/v1/sessions/{session.public_id}"
    for body, status in [
        ({}, 200),
        ({"autoStart": False}, 200),
        ({"managedByMachineId": None}, 200),
        ({"autoStart": True}, 400),
        ({"managedByMachineId": "m1"}, 400),
        ({"autoStart": "perhaps"}, 400),
        ({"managedByMachineId": {}}, 400),
        ([], 400),
    ]:
        answer = api(alice.session).patch(path, body, format="json")
        assert answer.status_code == status, (body, status)
        if status == 200:
            assert answer.json() == api(alice.session).get(path).json(), (body, status)
        else:
            assert answer.json()["error"] == "validation_failed", (body, status)


def test_an_agent_has_no_threads(alice: Person) -> None:
    path = f"/api/v1/agents/{make_agent(alice.user).pk}/threads"
    expected = {"summary": {"total": 0, "today": 0, "active": 0}, "items": []}
    assert api(alice.session).get(f"{path}?limit=200&status=active").json() == expected
    assert api(alice.session).get(f"{path}?limit=201").status_code == 400


def test_requests_for_leave_come_pending_first_then_newest_first(alice: Person, bob: Person) -> None:
    session = make_session(alice.user)
    decided = {"resolved_at": timezone.now(), "resolver": bob.user, "message": "fine"}
    request_permission(session, request_id="old", status="allowed", **decided)
    request_permission(session, request_id="waiting")
    request_permission(session, request_id="new", status="expired", resolved_at=timezone.now())
    request_permission(session, request_id="waits too")
    path = f"/api/v1/sessions/{session.public_id}/permissions"
    body = api(alice.session).get(path).json()
    assert names(body["items"], "requestId") == ["waits too", "waiting", "new", "old"]
    waiting, new, old = body["items"][1:]
    assert waiting.pop("requestedAt").endswith("Z")
    assert waiting == {
        "requestId": "waiting",
        "tool": "Bash",
        "inputPreview": "ls",
        "status": "pending",
        "resolvedAt": None,
        "resolverLogin": None,
        "resolvedMessage": None,
    }
    assert (old["status"], old["resolverLogin"], old["resolvedMessage"]) == ("allowed", "bob", "fine")
    assert (new["status"], new["resolverLogin"], new["resolvedMessage"]) == ("expired", None, None)
    assert old["resolvedAt"].endswith("Z")
    assert names(api(alice.session).get(f"{path}?limit=1&offset=2").json()["items"], "requestId") == ["new"]


async def test_the_upgrade_of_a_socket_that_is_not_there_is_refused(embedded_hub: HubProcess) -> None:
    for path in ["/supervisor", "/nothing", "/api/v1/sessions"]:
        url = embedded_hub.url.replace("http", "ws", 1) + path
        with pytest.raises(InvalidStatus) as refused:
            async with dial(url, additional_headers=bearer(embedded_hub.mint("alice", "app"))):
                pass
        answer = refused.value.response
        assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/json"), path
        assert json.loads(answer.body) == {"error": "not_found", "message": "no such socket here"}, path
        assert "handshake" not in embedded_hub.programs[0].output, path
