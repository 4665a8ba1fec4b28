"""Permission requests: stored, decided once, expired; an agent that is offline is told later."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from accounts.models import User
from agents.core.post import Message
from agents.models import Attachment, Connection, PermissionRequest, Session
from agents.transcript import permissions
from agents.transcript.announcements import LiveFrame, PermissionOutcome, Resolution
from agents.transcript.permissions import AlreadyResolved, NoSuchRequest, TooManyPending
from agents.transcript.pieces import ApprovalDecided
from kit.clock import db_now
from tests.carrying import carrying
from tests.contracts.rows import admitted, live_process, published, user
from tests.contracts.rows import ask as question

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.ledger]


@pytest.fixture
def told() -> Iterator[list[Message]]:
    """The messages to sockets, in order."""
    heard: list[Message] = []
    with carrying(lambda addressed: heard.extend(message for _, message in addressed)):
        yield heard


@pytest.fixture
def session() -> Session:
    """A session whose agent is connected and which its owner watches."""
    agent = published().agent
    Attachment.objects.create(session=agent.session, process=live_process("desk"), user=agent.owner)
    return agent.session


def ask(session: Session, request_id: str = "r1", tool: str = "Bash", preview: str = "ls") -> PermissionRequest:
    return permissions.request(session.pk, request_id, tool=tool, input_preview=preview)


def decide(session: Session, request_id: str = "r1", decision: Any = "allow", **how: Any) -> PermissionRequest:
    resolver = {"resolver_id": session.owner_id, **how}
    return permissions.decide(session.pk, request_id, decision=decision, **resolver)


def overdue(row: PermissionRequest) -> None:
    PermissionRequest.objects.filter(pk=row.pk).update(expires_at=db_now() - timedelta(seconds=1))


def shown(heard: list[Message]) -> list[dict[str, Any]]:
    """The frames to operators."""
    return [json.loads(bytes(one.frame)) for one in heard if isinstance(one, LiveFrame)]


def decisions(heard: list[Message]) -> list[Resolution]:
    """The decisions that the agent got."""
    return [one.resolution for one in heard if isinstance(one, PermissionOutcome)]


def test_a_request_is_shown_and_a_decision_reaches_agent_and_operators(
    session: Session, told: list[Message]
) -> None:
    asked = ask(session)
    (request,) = shown(told)
    assert (request["type"], request["requestId"], request["tool"]) == ("permission_request", "r1", "Bash")
    row = decide(session, message="go on")
    assert (row.pk, row.status, row.message) == (asked.pk, "allowed", "go on")
    assert row.told_at is not None
    assert decisions(told) == [Resolution("r1", "allow", "go on")]
    resolved = shown(told)[-1]
    assert (resolved["decision"], resolved["resolverLogin"]) == ("allow", session.owner.login)


def test_the_first_decision_stands(session: Session, told: list[Message]) -> None:
    ask(session)
    decide(session)
    with pytest.raises(AlreadyResolved) as refused:
        decide(session, decision="deny", resolver_id=user("bob").pk)
    assert (refused.value.row.status, refused.value.row.resolver_id) == ("allowed", session.owner_id)
    assert len(decisions(told)) == 1


def test_what_ran_out_cannot_be_decided_whether_or_not_the_beat_came(
    session: Session, told: list[Message]
) -> None:
    overdue(ask(session))
    with pytest.raises(AlreadyResolved):
        decide(session)
    overdue(ask(session, "r2"))
    assert permissions.expire_due() == 1
    assert permissions.expire_due() == 0
    assert [one.decision for one in decisions(told)] == ["expired", "expired"]
    assert {one["resolverLogin"] for one in shown(told) if "decision" in one} == {None}


def test_the_task_of_its_caller_hears_what_ran_out(told: list[Message]) -> None:
    agent = published(caller_approvals=True)
    chat_id = admitted(question(agent)).ask.chat_id
    session_id = agent.ref.session_id
    row = permissions.request(session_id, "r1", tool="Bash", input_preview="ls", chat_id=chat_id)
    assert permissions.find_requests_for_caller(row)
    overdue(row)
    told.clear()
    assert permissions.expire_due() == 1
    tells = [(one.chat_id, one.piece) for one in told if isinstance(one, PermissionOutcome)]
    assert tells == [(chat_id, ApprovalDecided("r1", "Bash", "expired"))]
    row.refresh_from_db()
    assert permissions.find_requests_for_caller(row) is None


def test_a_decision_while_the_agent_is_away_waits_for_it(session: Session, told: list[Message]) -> None:
    ask(session)
    Connection.objects.filter(session=session).delete()
    assert decide(session, decision="deny").told_at is None
    assert decisions(told) == []
    (resolution,) = permissions.take_unsent_decisions(session.pk)
    assert resolution.decision == "deny"


def test_what_was_told_long_ago_is_not_told_again(session: Session) -> None:
    ask(session)
    row = decide(session)
    assert len(permissions.take_unsent_decisions(session.pk)) == 1  # it may have been lost with the old socket
    PermissionRequest.objects.filter(pk=row.pk).update(told_at=db_now() - timedelta(minutes=11))
    assert permissions.take_unsent_decisions(session.pk) == []


def test_asked_again_it_is_shown_again_and_once_decided_answered(session: Session, told: list[Message]) -> None:
    assert ask(session).pk == ask(session).pk
    assert len(shown(told)) == 2
    decide(session)
    ask(session)
    assert [one.decision for one in decisions(told)] == ["allow", "allow"]


def test_an_id_used_for_something_else_is_denied_and_changes_nothing(
    session: Session, told: list[Message]
) -> None:
    ask(session)
    decide(session)
    ask(session, preview="rm -rf /")
    assert decisions(told)[-1].decision == "deny"
    assert PermissionRequest.objects.get().input_preview == "ls"


def test_a_preview_is_cut_and_mended(session: Session) -> None:
    row = ask(session, tool="B\0\ud800", preview="x" * 9000)
    assert (row.tool, len(row.input_preview), row.input_preview[-2:]) == ("B\ufffd\ufffd", 8192, "x…")


def test_a_session_may_have_so_many_waiting(session: Session) -> None:
    for number in range(permissions.MAX_PENDING):
        ask(session, f"r{number}")
    with pytest.raises(TooManyPending):
        ask(session, "one more")
    decide(session, "r0")
    assert ask(session, "one more").status == "pending"
    assert permissions.pending(session.pk).count() == permissions.MAX_PENDING


def test_ids_are_each_session_s_own_and_absent_ones_are_no_session_s(session: Session) -> None:
    ask(session)
    other = published().agent.session
    with pytest.raises(NoSuchRequest):
        decide(other)
    with pytest.raises(NoSuchRequest):
        permissions.request(0, "r1", tool="", input_preview="")
    assert decide(session).status == "allowed"
    assert User.objects.count() > 1
