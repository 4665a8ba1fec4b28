"""Limits of one owner: more is refused on every surface in the same words, and for that owner alone."""

import base64
import hashlib
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.errors import InvalidGrant
from accounts.models import LoginCode
from accounts.oauth import grants
from accounts.oauth.clients import AuthorizationRequest
from accounts.quotas import MEBIBYTE, QuotaExceeded
from agents import limits
from agents.models import Agent, Event, Session
from agents.transcript.storage import StorageMeter
from kit.async_db import db_call
from kit.clock import db_now
from tests.native.desk import FIELDS
from tests.native.rows import (
    Person,
    api,
    browser,
    connect,
    make_agent,
    make_session,
    person,
    register_agent,
    registration,
)

pytestmark = pytest.mark.django_db
VERIFIER = "v" * 43


def check_refused(answer: Any, what: str) -> None:
    assert (answer.status_code, answer.json()["error"]) == (429, "quota_exceeded"), answer.content
    assert what in answer.json()["message"]


def test_one_agent_too_many_is_refused_everywhere_until_one_is_deleted(
    alice: Person, bob: Person, settings: Any
) -> None:
    settings.AGENTS_PER_OWNER = 1
    make_agent(alice.user, "first", status="draft")
    spare = make_session(alice.user, "spare")
    body = {"sessionId": str(spare.public_id), "name": "x", "slug": "x"}
    check_refused(api(alice.session).post("/api/v1/agents", body, format="json"), "1 agents, and 1 are the most")
    fields = FIELDS | {"session": spare.pk, "slug": "x"}
    page = browser(alice.session).post("/desk/publish", fields)
    assert page.status_code == 429, page.content.decode()
    assert "1 agents, and 1 are the most" in page.content.decode()
    admin = browser(alice.session).post("/admin/agents/agent/add/", fields, follow=True)
    assert "1 agents, and 1 are the most" in admin.content.decode()
    assert Agent.objects.count() == 1
    theirs = {**body, "sessionId": str(make_session(bob.user).public_id)}
    assert api(bob.session).post("/api/v1/agents", theirs, format="json").status_code == 201
    Agent.objects.get(owner=alice.user).soft_delete()
    assert api(alice.session).post("/api/v1/agents", body, format="json").status_code == 201


def test_one_token_too_many_is_refused_everywhere(alice: Person, settings: Any) -> None:
    settings.TOKENS_PER_OWNER = alice.user.credentials.exclude(kind="session").count() + 1
    client = api(alice.session)
    made = client.post("/api/v1/tokens/channel", {"name": "last"}, format="json")
    assert made.status_code == 201
    for path in ("/api/v1/tokens/channel", "/api/v1/auth/apps/mint"):
        check_refused(client.post(path, {"name": "more"}, format="json"), "live tokens")
    for path in ("/desk/connect", "/account"):
        page = browser(alice.session).post(path, {"name": "more"})
        assert page.status_code == 429
        assert "live tokens" in page.content.decode()
    client.delete(f"/api/v1/tokens/{made.json()['id']}")
    assert client.post("/api/v1/tokens/channel", {"name": "room"}, format="json").status_code == 201


def test_a_code_is_spent_by_a_try_that_finds_no_room(alice: Person, settings: Any) -> None:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
    asked = AuthorizationRequest(
        redirect_uri="", state="", code_challenge=challenge, machine_id="", app_name="an app"
    )
    code = grants.issue_code(alice.user, LoginCode.Purpose.APP, asked)
    settings.TOKENS_PER_OWNER = 1
    with pytest.raises(QuotaExceeded):
        grants.exchange_code(code, VERIFIER, LoginCode.Purpose.APP, user_agent="")
    settings.TOKENS_PER_OWNER = 0
    with pytest.raises(InvalidGrant):
        grants.exchange_code(code, VERIFIER, LoginCode.Purpose.APP, user_agent="")


def test_sessions_and_connections_are_counted_when_an_agent_registers(alice: Person, settings: Any) -> None:
    settings.SESSIONS_PER_OWNER, settings.SOCKETS_PER_OWNER = 2, 1
    known, other = make_session(alice.user, "known"), make_session(alice.user, "other")
    with pytest.raises(QuotaExceeded, match="2 sessions") as refused:
        register_agent(registration(alice), process_id="p")
    assert refused.value.code == "quota_exceeded"
    connect(other)
    process = other.connection.process_id
    with pytest.raises(QuotaExceeded, match="1 agents connected"):
        register_agent(registration(alice, known), process_id=process)
    register_agent(registration(alice, other), process_id=process)  # it takes its own place
    assert Session.objects.count() == 2


def test_a_file_that_does_not_fit_is_refused(alice: Person, bob: Person, settings: Any) -> None:
    settings.STORAGE_PER_OWNER_MB = 1
    session = make_session(alice.user)
    Event.objects.create(session=session, kind="tail", type="x", payload='"é"' + "x" * 600_000, ts=db_now())

    def upload(size: int) -> Any:
        file = SimpleUploadedFile("a.txt", b"x" * size, content_type="text/plain")
        return api(alice.session).post(f"/api/v1/sessions/{session.public_id}/files", {"file": file})

    assert upload(400_000).status_code == 201
    check_refused(upload(100_000), "over 1 MiB")
    assert (limits.FILES.count(alice.user.pk), limits.EVENTS.count(alice.user.pk)) == (400_000, 600_004)
    assert limits.FILES.count(bob.user.pk) == limits.EVENTS.count(bob.user.pk) == 0


@pytest.mark.django_db(transaction=True)
async def test_the_meter_asks_now_and_then_and_opens_again() -> None:
    alice = await db_call(person)("alice")
    session = await db_call(make_session)(alice.user)
    now = 0.0
    meter = StorageMeter(1, lambda: now)
    kept = 0
    while await meter.takes(alice.user.pk, 50_000):
        await db_call(Event.objects.create)(
            session=session, kind="tail", type="x", payload="x" * 50_000, ts=await db_call(db_now)()
        )
        kept += 50_000
    assert MEBIBYTE - 50_000 <= kept <= MEBIBYTE * 1.01
    await db_call(Event.objects.all().delete)()
    assert not await meter.takes(alice.user.pk, 1)
    now = 61.0
    assert await meter.takes(alice.user.pk, 1)
