"""Requests for approval: whose caller may decide them, what they make of a task, and what counts as a verdict."""

from typing import Any

import pytest
from django.db import connection

from a2a_bridge.service.approvals import ApprovalVerdict, read_verdict
from a2a_bridge.service.tasks.pieces import events_of
from a2a_bridge.wire.task import Message, Role, State, Task, after
from agents.models import PermissionRequest
from agents.transcript import permissions
from agents.transcript.permissions import AlreadyResolved, AmbiguousDecision, NoSuchRequest
from agents.transcript.pieces import ApprovalAsked, ApprovalDecided, Part, Piece, StatusNote
from kit.jsonrpc import RpcError
from tests.contracts.rows import Published, admitted, ask, end, published, user

ONE, TWO = ApprovalAsked("r1", "Bash", "ls"), ApprovalAsked("r2", "Write", "a.txt")
NO_DATA: Any = object()


def task_after(*pieces: Piece) -> Task:
    task = Task(
        id="task-1",
        caller_id=1,
        handle="a/b",
        context_id="c",
        chat_id="chat",
        home="home",
        state=State.WORKING,
        updated_at="",
        history=(),
    )
    for piece in pieces:  # as they come: each is kept before the next
        task = after(task, events_of(task, [piece], "now"))
    return task


def asked_of(task: Task) -> list[str]:
    assert task.message is not None
    return [part.data["requestId"] for part in task.message.parts if isinstance(part.data, dict)]


def test_a_task_asks_until_the_last_request_is_decided() -> None:
    task = task_after(ONE, TWO)
    assert (task.state, asked_of(task), task.is_running) == (State.INPUT_REQUIRED, ["r1", "r2"], True)
    task = task_after(ONE, TWO, ApprovalDecided("r1", "Bash", "allow"))
    assert (task.state, asked_of(task)) == (State.INPUT_REQUIRED, ["r2"])
    task = task_after(ONE, TWO, ApprovalDecided("r2", "Write", "deny"), ApprovalDecided("r1", "Bash", "expired"))
    assert (task.state, task.approvals) == (State.WORKING, ())


def test_a_note_and_a_chunk_meanwhile_answer_nothing() -> None:
    task = task_after(ONE, StatusNote("still here"), "a chunk", ONE)
    assert (task.state, asked_of(task), task.reply_text) == (State.INPUT_REQUIRED, ["r1"], "a chunk")


def test_a_verdict_is_data_or_one_word() -> None:
    for text, data, verdict in [
        ("approve", NO_DATA, ApprovalVerdict("r1", "allow", is_named=False)),
        (" Deny.\n", NO_DATA, ApprovalVerdict("r1", "deny", is_named=False)),
        ("Approve r1", NO_DATA, ApprovalVerdict("r1", "allow")),
        ("", {"decision": "approve"}, ApprovalVerdict("r1", "allow", is_named=False)),
        ("no", {"requestId": "r1", "decision": "deny", "message": "why?"}, ApprovalVerdict("r1", "deny", "why?")),
    ]:
        parts = (Part(text=text), *(() if data is NO_DATA else (Part(data=data),)))
        assert read_verdict(Message("m", Role.USER, parts), (ONE,)) == verdict, (text, data, verdict)


def test_of_several_requests_a_verdict_names_one() -> None:
    with pytest.raises(RpcError):
        read_verdict(Message("m", Role.USER, (Part(text="approve"),)), (ONE, TWO))
    assert read_verdict(Message("m", Role.USER, (Part(text="deny r2"),)), (ONE, TWO)) == ApprovalVerdict(
        "r2", "deny"
    )
    with pytest.raises(RpcError):
        read_verdict(Message("m", Role.USER, (Part(text="approve r3"),)), (ONE, TWO))
    named = Part(data={"decision": "approve", "requestId": "r2"})
    assert read_verdict(Message("m", Role.USER, (named,)), (ONE, TWO)).request_id == "r2"
    with pytest.raises(RpcError):
        read_verdict(Message("m", Role.USER, (named, named)), (ONE, TWO))


def requested(agent: Published, chat_id: str, preview: str = "ls") -> PermissionRequest:
    return permissions.request(
        agent.ref.session_id, f"r-{preview}-{chat_id}", tool="Bash", input_preview=preview, chat_id=chat_id
    )


@pytest.mark.django_db
@pytest.mark.ledger
def test_only_the_caller_of_the_open_turn_decides_and_is_recorded() -> None:
    agent = published(caller_approvals=True)
    turn = admitted(ask(agent))
    row = requested(agent, turn.ask.chat_id)
    assert permissions.find_requests_for_caller(row) == ApprovalAsked(row.request_id, "Bash", "ls")
    verdict: dict[str, Any] = {"decision": "allow", "caller_id": user("alice").pk}
    place = agent.ref.session_id, turn.ask.chat_id, row.request_id
    with pytest.raises(NoSuchRequest):
        permissions.decide_as_caller(*place, **verdict | {"caller_id": user("bob").pk})
    with pytest.raises(NoSuchRequest):
        permissions.decide_as_caller(place[0], "another", place[2], **verdict)
    decided = permissions.decide_as_caller(*place, **verdict)
    assert (decided.status, decided.resolver) == ("allowed", user("alice"))
    with pytest.raises(AlreadyResolved):
        permissions.decide_as_caller(*place, **verdict | {"decision": "deny"})


@pytest.mark.django_db
@pytest.mark.ledger
def test_it_is_the_owners_to_allow_at_any_time_and_over_with_the_turn() -> None:
    agent = published()
    turn = admitted(ask(agent))
    assert permissions.find_requests_for_caller(requested(agent, turn.ask.chat_id)) is None
    agent.agent.caller_approvals = True
    agent.agent.save()
    end(turn)
    turn = admitted(ask(agent))
    row = requested(agent, turn.ask.chat_id)
    end(turn)
    with pytest.raises(NoSuchRequest):
        permissions.decide_as_caller(
            agent.ref.session_id, turn.ask.chat_id, row.request_id, decision="allow", caller_id=user("alice").pk
        )
    assert permissions.find_requests_for_caller(requested(agent, turn.ask.chat_id + "-over")) is None


@pytest.mark.django_db
@pytest.mark.ledger
def test_a_verdict_that_waited_for_the_end_of_the_turn_comes_too_late() -> None:
    agent = published(caller_approvals=True)
    turn = admitted(ask(agent))
    row = requested(agent, turn.ask.chat_id)
    is_over: list[bool] = []

    def ends_before_the_lock(execute: Any, sql: str, *rest: Any) -> Any:
        """Another process holds the session, and ends the turn."""
        if not is_over and sql.startswith("SELECT") and 'FROM "agents_session"' in sql:
            is_over.append(True)
            end(turn)
        return execute(sql, *rest)

    with connection.execute_wrapper(ends_before_the_lock), pytest.raises(NoSuchRequest):
        permissions.decide_as_caller(
            agent.ref.session_id, turn.ask.chat_id, row.request_id, decision="allow", caller_id=user("alice").pk
        )
    row.refresh_from_db()
    assert (is_over, row.status) == ([True], "pending")


@pytest.mark.django_db
@pytest.mark.ledger
def test_a_word_decides_no_request_that_came_after_a_decided_one() -> None:
    agent = published(caller_approvals=True)
    turn = admitted(ask(agent))
    first, second = (requested(agent, turn.ask.chat_id, preview) for preview in ("ls", "rm -r /"))
    place = agent.ref.session_id, turn.ask.chat_id
    verdict: dict[str, Any] = {"decision": "allow", "caller_id": user("alice").pk}
    permissions.decide(place[0], first.request_id, decision="allow", resolver_id=agent.agent.owner_id)
    with pytest.raises(AmbiguousDecision):
        permissions.decide_as_caller(*place, second.request_id, **verdict, is_named=False)
    second.refresh_from_db()
    assert second.status == "pending"
    assert permissions.decide_as_caller(*place, second.request_id, **verdict).status == "allowed"
