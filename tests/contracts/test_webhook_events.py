"""Webhook events of asks, events and files: a delivery in the transaction that caused it, for who may hear."""

import json
from typing import Any

import pytest

from accounts.models import Credential
from accounts.tokens import mint
from agents.core.ledger.batch import commit
from agents.core.ledger.work import Admit, Record, Settle
from agents.core.presence import remove_connection
from agents.core.registration import AgentRegistration
from agents.core.types import OpenTurn, TurnEnding
from agents.models import Event, Share
from agents.models.choices import Outcome, TurnFailure
from agents.transcript import files, permissions
from agents.transcript.recording import NewEvent
from tests.contracts.rows import COMPLETED, HOME, Published, admitted, ask, end, live_process, published, user
from tests.native.rows import register_agent
from tests.webhooks.subscriptions import subscribed
from webhooks.models import Delivery

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]


def heard(login: str) -> list[tuple[str, dict[str, Any]]]:
    rows = Delivery.objects.filter(subscription__owner__login=login).order_by("pk")
    return [(row.type, json.loads(row.payload)) for row in rows]


def listening(login: str, **fields: Any) -> None:
    subscribed(user(login), **fields)


def owner_of(agent: Published) -> str:
    return str(agent.agent.owner.login)


def test_an_owner_hears_of_an_ask_and_its_answer() -> None:
    agent = published()
    listening(owner_of(agent))
    end(admitted(ask(agent)))
    types = [one[0] for one in heard(owner_of(agent))]
    assert sorted(types) == ["agent.dispatched", "agent.replied", "chat.event", "chat.event"]
    replied = dict(heard(owner_of(agent)))["agent.replied"]
    assert (replied["handle"], replied["askerLogin"], replied["reply"], replied["ok"]) == (
        agent.ref.handle,
        "alice",
        "so",
        True,
    )
    assert replied["routeId"] == agent.turns[0].chat_id


def test_an_owner_hears_of_a_refusal_and_of_a_failure_with_its_reason() -> None:
    agent = published(daily_budget=1)
    listening(owner_of(agent), events="agent.denied agent.replied")
    end(admitted(ask(agent)), TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.TIMEOUT, latency_ms=9))
    commit([Admit(ask(agent))], home=HOME)
    (_, failed), (_, denied) = heard(owner_of(agent))
    assert (failed["ok"], failed["deniedReason"]) == (False, "timeout")
    assert "reply" not in failed
    assert (denied["ok"], denied["deniedReason"]) == (False, "budget_exhausted")


def test_a_sharee_hears_of_the_session_but_not_of_the_agent_and_a_stranger_of_nothing() -> None:
    agent = published()
    listening("friend")
    listening("stranger")
    Share.objects.create(
        session=agent.agent.session, user=user("friend"), role="viewer", shared_by=agent.agent.owner
    )
    end(admitted(ask(agent)))
    assert [one[0] for one in heard("friend")] == ["chat.event", "chat.event"]
    assert heard("stranger") == []


def test_an_event_is_told_with_its_id_and_its_payload_as_it_came() -> None:
    agent = published()
    listening(owner_of(agent), events="tail.event")
    event = NewEvent(agent.ref.session_id, "tail", "PreToolUse", '{"tool_name": "Bash"}')
    commit([Record(event)], home=HOME)
    ((_, told),) = heard(owner_of(agent))
    assert told["event"]["payload"] == {"tool_name": "Bash"}
    assert told["event"]["id"] == Event.objects.get(type="PreToolUse").pk


def test_many_events_of_one_batch_keep_their_ids_apart() -> None:
    agent = published()
    listening(owner_of(agent), events="tail.event")
    commit([Record(NewEvent(agent.ref.session_id, "tail", f"T{n}", "{}")) for n in range(400)], home=HOME)
    shown = [payload["event"] for _, payload in heard(owner_of(agent))]
    assert [one["type"] for one in shown] == [f"T{n}" for n in range(400)]
    assert len({one["id"] for one in shown}) == 400


def test_a_file_is_told_of_when_it_comes_and_when_it_goes() -> None:
    agent = published()
    listening(owner_of(agent), events="file.uploaded file.deleted")
    upload = files.Upload(filename="a.txt", mime="text/plain", data=b"abc")
    files.delete(files.store(agent.agent.session, agent.agent.owner, upload))
    assert [(one[0], one[1]["bytes"]) for one in heard(owner_of(agent))] == [
        ("file.uploaded", 3),
        ("file.deleted", 3),
    ]


def test_an_agent_is_told_of_when_it_comes_and_when_it_goes() -> None:
    owner = user("owner")
    listening("owner", events="session.connected session.disconnected tail.event")
    live_process()
    token = mint(owner, Credential.Kind.CHANNEL, "test").credential
    bare = {"session_id": None, "host": "h", "os_user": "", "pid": 1, "channel_version": "", "cwd": "/srv/desk"}
    coming = AgentRegistration(user_id=owner.pk, credential_id=token.pk, routing_name=None, **bare)
    remove_connection(register_agent(coming, process_id=HOME).registered.connection_id)
    types = [(one[0], one[1].get("event", {}).get("type", "")) for one in heard("owner")]
    assert types == [
        ("tail.event", "SessionStart"),
        ("session.connected", ""),
        ("tail.event", "SessionEnd"),
        ("session.disconnected", ""),
    ]


def test_a_request_for_leave_and_its_decision_are_told_once() -> None:
    agent = published()
    listening(owner_of(agent), events="permission.requested permission.resolved")
    session_id = agent.ref.session_id
    permissions.request(session_id, "r1", tool="Bash", input_preview="ls")
    permissions.request(session_id, "r1", tool="Bash", input_preview="ls")
    permissions.decide(session_id, "r1", decision="allow", resolver_id=agent.agent.owner.pk)
    (first, requested), (second, resolved) = heard(owner_of(agent))
    assert (first, requested["tool"], second) == ("permission.requested", "Bash", "permission.resolved")
    assert (resolved["decision"], resolved["resolverLogin"]) == ("allow", owner_of(agent))


def test_what_is_rolled_back_is_not_told() -> None:
    agent = published()
    listening(owner_of(agent))
    turn = admitted(ask(agent))
    before = len(heard(owner_of(agent)))
    bad = Settle(turn, COMPLETED), Record(NewEvent(0, "tail", "ToNobody", "{}"))
    with pytest.raises(Exception, match=r"FOREIGN KEY|foreign key|KeyError|0"):
        commit(bad, home=HOME)
    assert isinstance(turn, OpenTurn)
    assert len(heard(owner_of(agent))) == before
