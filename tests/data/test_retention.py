"""Old rows are deleted, and no request waits meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from a2a_bridge import jobs as bridge_jobs
from a2a_bridge.models import Push, PushConfig, SendKey, StoredEvent, StoredTask
from accounts.models import LoginAttempt, User
from agents import jobs
from agents.models import Event, Session, Turn
from gateway import jobs as gateway_jobs
from gateway.models import Proposal, Vote
from kit import batches
from tests.data.rows import stored_task
from tests.native.rows import Person, api, browser, make_agent, make_session, make_turn
from webhooks import jobs as webhook_jobs
from webhooks.models import Delivery, Subscription

pytestmark = pytest.mark.django_db

MANY = 1_100


def ago(days: float) -> datetime:
    return timezone.now() - timedelta(days=days)


@contextmanager
def small_batches(total: int) -> Iterator[None]:
    """Batches are small: a statement locks its rows until its transaction ends."""
    counts: list[int] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        if sql.startswith(("UPDATE", "DELETE")):
            counts.append(context["cursor"].rowcount)
        return result

    with connection.execute_wrapper(note):
        yield
    assert sum(counts) >= total
    assert max(counts) <= batches.AT_ONCE


def old_turns(count: int, owner: User, caller: User, **fields: Any) -> Session:
    """Settled turns of a session, without an agent unless one is given."""
    session = fields.pop("session", None) or make_session(owner)
    defaults = {"asked_at": ago(500), "settled_at": ago(500), "released_at": ago(500), "outcome": "completed"}
    made = [
        Turn(chat_id=f"{session.pk}-{n}", session=session, caller=caller, surface="a2a", question="?", **defaults)
        for n in range(count)
    ]
    for turn in made:
        for name, value in fields.items():
            setattr(turn, name, value)
    Turn.objects.bulk_create(made)
    return session


def test_turns_go_in_batches(alice: Person, bob: Person) -> None:
    old_turns(MANY, alice.user, bob.user)
    kept = make_turn(make_agent(alice.user), bob.user)
    with small_batches(MANY):
        assert jobs.retain(400) == MANY
    assert list(Turn.objects.all()) == [kept]


def test_a_question_that_is_still_open_is_not_deleted(alice: Person, bob: Person) -> None:
    turn = make_turn(make_agent(alice.user), bob.user, outcome=None, asked_at=ago(500))
    assert jobs.retain(400) == 0
    assert list(Turn.objects.all()) == [turn]


def test_questions_are_blanked_in_batches_and_the_audit_stays(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user)
    old_turns(MANY, alice.user, bob.user, agent=agent, session=agent.session, asked_at=ago(91))
    new = make_turn(agent, bob.user, asked_at=ago(89))
    with small_batches(MANY):
        assert jobs.blank_questions(90) == MANY
    assert Turn.objects.filter(question="", caller=bob.user, outcome="completed").count() == MANY
    new.refresh_from_db()
    assert new.question
    assert jobs.blank_questions(90) == 0


def test_each_owner_says_how_long(alice: Person, bob: Person, carol: Person) -> None:
    User.objects.filter(pk=alice.user.pk).update(questions_kept_days=7)
    User.objects.filter(pk=bob.user.pk).update(questions_kept_days=200)
    turns = {
        (who.user.login, days): make_turn(agent, carol.user, asked_at=ago(days))
        for who in (alice, bob, carol)
        for agent in [make_agent(who.user)]
        for days in (3, 50, 100, 300)
    }
    jobs.blank_questions(90)
    blank = {name for name, turn in turns.items() if not Turn.objects.get(pk=turn.pk).question}
    gone_of = {"alice": {50, 100, 300}, "bob": {300}, "carol": {100, 300}}
    assert blank == {(login, days) for login, gone in gone_of.items() for days in gone}


def test_who_wants_them_shorter_loses_them_with_the_next_run(alice: Person, bob: Person) -> None:
    old = make_turn(make_agent(alice.user), bob.user, asked_at=ago(50))
    assert jobs.blank_questions(90) == 0
    User.objects.filter(pk=alice.user.pk).update(questions_kept_days=10)
    assert jobs.blank_questions(90) == 1
    assert Turn.objects.get(pk=old.pk).question == ""


def test_questions_to_sessions_themselves_are_their_owners_too(alice: Person, bob: Person) -> None:
    old_turns(3, alice.user, bob.user, asked_at=ago(91))
    assert jobs.blank_questions(90) == 3


def test_an_open_question_is_left_alone(alice: Person, bob: Person) -> None:
    turn = make_turn(make_agent(alice.user), bob.user, outcome=None, asked_at=ago(100))
    assert jobs.blank_questions(90) == 0
    Turn.objects.filter(pk=turn.pk).update(outcome="failed", settled_at=timezone.now())
    User.objects.update(questions_blanked_to=None)
    assert jobs.blank_questions(90) == 1


def test_events_go_in_batches(alice: Person) -> None:
    session = make_session(alice.user)
    Event.objects.bulk_create(
        Event(session=session, kind="tail", type="t", payload="{}", ts=ago(age)) for age in [91] * MANY + [89, 0]
    )
    with small_batches(MANY):
        assert jobs.forget_events(90) == MANY
    assert Event.objects.count() == 2


def test_decided_proposals_go_in_batches_with_their_votes(alice: Person) -> None:
    def make(number: int, **fields: Any) -> Proposal:
        given = {"key": f"p-{number}", "proposer": "steward", "text": "?", "members": ["alpha"]}
        return Proposal(owner=alice.user, created_at=ago(100), deadline=ago(99), **given, **fields)

    old = Proposal.objects.bulk_create(make(n, state="rejected", decided_at=ago(99)) for n in range(MANY))
    Vote.objects.bulk_create(Vote(proposal=one, voter="alpha", vote="reject", voted_at=ago(99)) for one in old)
    kept = [make(MANY, state="pending"), make(MANY + 1, state="approved", decided_at=ago(80))]
    for one in kept:
        one.save()
    with small_batches(2 * MANY):
        assert gateway_jobs.forget_proposals(90) == MANY
    assert set(Proposal.objects.values_list("pk", flat=True)) == {one.pk for one in kept}


def test_deliveries_go_in_batches(alice: Person) -> None:
    hook = Subscription.objects.create(owner=alice.user, url="https://a.example", events="*", secret="s")
    Delivery.objects.bulk_create(
        Delivery(subscription=hook, event_id=f"e{n}", type="t", payload="{}", status="failed", queued_at=ago(40))
        for n in range(MANY)
    )
    with small_batches(MANY):
        assert webhook_jobs.retain(30) == MANY


def test_tasks_go_in_batches_with_their_events(alice: Person) -> None:
    task = stored_task(alice.user, "t1", "alice/helper", "x")
    StoredTask.objects.update(updated_at=ago(8))
    StoredEvent.objects.bulk_create(StoredEvent(task=task, seq=n, body="{}") for n in range(MANY))
    with small_batches(MANY):
        assert bridge_jobs.forget_tasks(7) == 1
    assert not StoredEvent.objects.exists()


def test_pushes_go_in_batches(alice: Person) -> None:
    config = PushConfig.objects.create(
        task_id="t", config_id="c", caller=alice.user, url="https://a.example", touched_at=ago(9), ended_seq=1
    )
    Push.objects.bulk_create(
        Push(config=config, seq=n, payload="{}", status="delivered", queued_at=ago(9)) for n in range(MANY)
    )
    with small_batches(MANY):
        assert bridge_jobs.forget_pushes() == 1
    assert not Push.objects.exists()


def test_keys_and_attempts_go_in_batches(alice: Person) -> None:
    SendKey.objects.bulk_create(
        SendKey(caller=alice.user, handle="a/b", key=f"{n}", body="b", task_id="t", chat_id="c", created_at=ago(2))
        for n in range(MANY)
    )
    LoginAttempt.objects.bulk_create(
        LoginAttempt(state_digest=f"{n}", browser_digest="b", expires_at=ago(3)) for n in range(MANY)
    )
    with small_batches(2 * MANY):
        assert bridge_jobs.forget_keys() == MANY
        jobs.retain(400)
    assert not LoginAttempt.objects.exists()


def test_an_owner_chooses_over_rest(alice: Person) -> None:
    address = "/api/v1/me/retention"
    assert api(alice.app).get(address).json() == {"questionsKeptDays": None, "hubsQuestionsKeptDays": 90}
    assert api(alice.app).put(address, {"questionsKeptDays": 7}, format="json").json()["questionsKeptDays"] == 7
    for wrong in (0, -1, 36_501, 2**70, "x", [], {}, "1\0"):
        refused = api(alice.app).put(address, {"questionsKeptDays": wrong}, format="json")
        assert (refused.status_code, refused.json()["error"]) == (400, "validation_failed"), wrong
    assert api(None).put(address, {"questionsKeptDays": 7}, format="json").status_code == 401
    assert api(alice.app).get(address).json()["questionsKeptDays"] == 7
    assert api(alice.app).put(address, {"questionsKeptDays": None}, format="json").json() == {
        "questionsKeptDays": None,
        "hubsQuestionsKeptDays": 90,
    }


def test_the_account_page_says_how_long(alice: Person, bob: Person) -> None:
    page = browser(alice.session)
    assert page.post("/account/retention", {"days": "30"}).status_code == 302
    assert 'value="30"' in page.get("/account").content.decode()
    for wrong in ("0", "x", "99999999999", "-1", "1\0", "٣"):
        assert page.post("/account/retention", {"days": wrong}).status_code == 400, wrong
    alice.user.refresh_from_db()
    bob.user.refresh_from_db()
    assert (alice.user.questions_kept_days, bob.user.questions_kept_days) == (30, None)
    page.post("/account/retention", {"days": ""})
    alice.user.refresh_from_db()
    assert alice.user.questions_kept_days is None
    assert browser(None).post("/account/retention", {"days": "1"}).status_code == 302
