"""Alerts of owners: raised once, ended once, told by webhook and mail, by the job of every minute."""

import json
from datetime import timedelta
from email import message_from_bytes
from typing import Any

import pytest
from django.core import mail as outbox_mail
from django.utils import timezone

from accounts.models import User
from agents import jobs
from agents.core import alerts
from agents.core.alerts import MIN_ASKS, WatchedAgent, find_conditions
from agents.core.failure_groups import group_failures
from agents.core.halt_rules import HaltSubject, halt_subject
from agents.core.mail import MailOutbox, queue_mails
from agents.models import Agent, Alert, AlertAddress, AlertRule, Connection, Halt, Mail, RemoteServer
from kit.outbox import AttemptResult, SendLimits, lease, settle
from tests.native.desk import text
from tests.native.rows import Person, browser, connect, make_agent, make_turn, spend
from webhooks.models import Delivery
from webhooks.service.outbox import pause_sending, resume_sending
from webhooks.service.subscriptions import subscribe

pytestmark = pytest.mark.usefixtures("mails_are_sent")

HEADERS_OF_A_MAIL = ["Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From"]
HEADERS_OF_A_MAIL += ["MIME-Version", "Message-ID", "Subject", "To"]


def warn(owner: User, kind: str, threshold: int) -> None:
    AlertRule.objects.update_or_create(owner=owner, kind=kind, defaults={"threshold": threshold})


def mail_to(owner: User, email: str = "alice@example.org") -> None:
    AlertAddress.objects.create(owner=owner, email=email, confirmed_at=timezone.now())


def listen(owner: User) -> None:
    subscribe(owner, {"url": "https://hooks.example.org", "events": "alert.raised alert.ended"})


def seen(agent: Agent, *, minutes_ago: int) -> None:
    agent.session.last_seen_at = timezone.now() - timedelta(minutes=minutes_ago)
    agent.session.save()


def told() -> list[tuple[str, Any]]:
    rows = Delivery.objects.order_by("pk")
    return [(row.type, json.loads(row.payload)) for row in rows]


def types() -> list[str]:
    return [event for event, _ in told()]


def fail(agent: Agent, failed: int, answered: int) -> None:
    for outcome, count in (("failed", failed), ("completed", answered)):
        for _ in range(count):
            make_turn(agent, agent.owner, outcome, latency_ms=1)


# Offline.


def test_an_offline_agent_is_told_of_once_and_once_more_when_it_is_back(alice: Person, agent: Agent) -> None:
    warn(alice.user, "offline", 10)
    listen(alice.user)
    mail_to(alice.user)
    seen(agent, minutes_ago=9)
    assert jobs.watch() == 0
    seen(agent, minutes_ago=11)
    assert (jobs.watch(), jobs.watch()) == (1, 0)
    [(event, payload)] = told()
    assert event == "alert.raised"
    assert {
        "handle": "alice/helper",
        "agentId": agent.pk,
        "alert": "offline",
        "threshold": 10,
    }.items() <= payload.items()
    assert payload["value"] == 11
    assert "endedAt" not in payload
    connect(agent.session)
    assert (jobs.watch(), jobs.watch()) == (1, 0)
    assert types() == ["alert.raised", "alert.ended"]
    assert "endedAt" in told()[1][1]
    assert jobs.send_mails() == 2
    assert [one.subject for one in outbox_mail.outbox] == [
        "[Clawbridge] @alice/helper is offline",
        "[Clawbridge] @alice/helper is no longer offline",
    ]
    Connection.objects.all().delete()
    seen(agent, minutes_ago=30)
    assert jobs.watch() == 1
    assert types() == ["alert.raised", "alert.ended", "alert.raised"]


def test_who_is_back_in_time_raises_no_alert(alice: Person, agent: Agent) -> None:
    warn(alice.user, "offline", 10)
    seen(agent, minutes_ago=5)
    jobs.watch()
    connect(agent.session)
    jobs.watch()
    assert not Alert.objects.exists()


def test_a_remote_server_is_offline_while_it_fails(alice: Person, agent: Agent) -> None:
    long_ago = timezone.now() - timedelta(hours=5)
    agent.session.link, agent.session.reachable_from = "remote", long_ago
    agent.session.save()
    server = RemoteServer.objects.create(session=agent.session, retry_at=long_ago)
    warn(alice.user, "offline", 10)
    assert jobs.watch() == 0, "since when is not known: since it was found"
    Alert.objects.update(since=timezone.now() - timedelta(minutes=11))
    assert jobs.watch() == 1
    RemoteServer.objects.filter(pk=server.pk).update(retry_at=None)
    assert jobs.watch() == 1
    assert Alert.objects.get().ended_at is not None


# Budget and failures.


def test_a_budget_alert_ends_with_its_day_or_a_higher_budget(alice: Person) -> None:
    agent = make_agent(alice.user, daily_budget=10)
    connect(agent.session)
    warn(alice.user, "budget", 80)
    listen(alice.user)
    spend(agent, 7)
    assert jobs.watch() == 0
    agent.usage.update(queries=8)
    assert (jobs.watch(), jobs.watch()) == (1, 0)
    assert told()[0][1]["value"] == 80
    Agent.objects.update(daily_budget=1000)
    assert jobs.watch() == 1
    assert types() == ["alert.raised", "alert.ended"]


def test_a_share_that_goes_up_and_down_makes_one_alert(alice: Person, agent: Agent) -> None:
    warn(alice.user, "failures", 50)
    fail(agent, MIN_ASKS - 1, 0)
    make_turn(agent, alice.user, "denied", repeats=100)
    assert jobs.watch() == 0, "too few to say"
    fail(agent, 1, 4)
    assert jobs.watch() == 1
    fail(agent, 0, 5)
    assert jobs.watch() == 0, "below the threshold, but not below half of it"
    fail(agent, 0, 7)
    assert jobs.watch() == 1
    alert = Alert.objects.get()
    assert (alert.value, alert.ended_at is not None) == (55, True)


# Whom it is about, and who is told.


@pytest.mark.parametrize("what", ["unpublished", "deleted", "halted", "owner_halted", "switched_off"])
def test_an_alert_ends_when_the_agent_is_not_watched_any_more(alice: Person, what: str, agent: Agent) -> None:
    seen(agent, minutes_ago=60)
    warn(alice.user, "offline", 10)
    listen(alice.user)
    assert jobs.watch() == 1
    match what:
        case "unpublished":
            Agent.objects.update(status="draft")
        case "deleted":
            agent.soft_delete()
        case "halted":
            halt_subject(HaltSubject(Halt.Kind.AGENT, agent=agent), by=alice.user, by_staff=False)
        case "owner_halted":
            halt_subject(HaltSubject(Halt.Kind.OWNER, user=alice.user), by=None, by_staff=True)
        case "switched_off":
            AlertRule.objects.all().delete()
    assert (jobs.watch(), jobs.watch()) == (1, 0)
    assert types() == ["alert.raised", "alert.ended"]


def test_only_its_owner_is_told(alice: Person, bob: Person, agent: Agent) -> None:
    seen(agent, minutes_ago=60)
    for owner in (alice.user, bob.user):
        warn(owner, "offline", 10)
        listen(owner)
    mail_to(bob.user, "bob@example.org")
    jobs.watch()
    assert [row.subscription.owner for row in Delivery.objects.all()] == [alice.user]
    assert not Mail.objects.exists()


def test_no_mail_goes_to_an_address_that_is_not_confirmed(alice: Person, settings: Any) -> None:
    agents = [make_agent(alice.user, name) for name in ("one", "two")]
    for agent in agents:
        seen(agent, minutes_ago=60)
    AlertAddress.objects.create(owner=alice.user, email="alice@example.org")
    warn(alice.user, "offline", 10)
    assert jobs.watch() == 2
    assert not Mail.objects.exists()


def test_a_second_process_that_saw_the_same_tells_nothing(alice: Person, agent: Agent) -> None:
    seen(agent, minutes_ago=60)
    warn(alice.user, "offline", 10)
    listen(alice.user)
    now = timezone.now()
    watched = [WatchedAgent(agent.pk, alice.user.pk, agent.session_id, agent.daily_budget)]
    conditions = find_conditions(watched, now, set())
    for _ in range(2):  # each has read before the other has written
        alerts._begin(conditions, now)
    assert [alerts._raise(conditions, now) for _ in range(2)] == [1, 0]
    ids = list(Alert.objects.values_list("pk", flat=True))
    assert [alerts._end(ids, now) for _ in range(2)] == [1, 0]
    assert types() == ["alert.raised", "alert.ended"]


def test_an_agent_that_is_deleted_meanwhile_does_not_hold_up_the_others(alice: Person) -> None:
    """Between the look at the agents and the look at their sessions."""
    warn(alice.user, "offline", 10)
    kept, gone = make_agent(alice.user, "kept"), make_agent(alice.user, "gone")
    seen(kept, minutes_ago=60)
    watched = [WatchedAgent(one.pk, alice.user.pk, one.session_id, one.daily_budget) for one in (kept, gone)]
    gone.session.delete()
    assert set(find_conditions(watched, timezone.now(), ())) == {(kept.pk, "offline", None)}
    assert alerts._compare(watched, timezone.now()) == 1


def test_many_agents_take_as_many_queries_as_one(alice: Person, django_assert_max_num_queries: Any) -> None:
    for kind, threshold in (("offline", 10), ("budget", 80), ("failures", 50)):
        warn(alice.user, kind, threshold)
    listen(alice.user)
    mail_to(alice.user)
    seen(make_agent(alice.user, "first"), minutes_ago=60)
    with django_assert_max_num_queries(100) as of_one:
        assert jobs.watch() == 1
    for number in range(20):
        agent = make_agent(alice.user, f"a{number}", daily_budget=10)
        seen(agent, minutes_ago=60)
        spend(agent, 9)
    with django_assert_max_num_queries(len(of_one)):
        assert jobs.watch() == 40


def test_a_hub_without_rules_asks_little(db: None, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(5):
        assert jobs.watch() == 0


# Mails.


@pytest.mark.deliveries
def test_a_mail_that_fails_is_tried_again_under_the_same_id_and_given_up(
    alice: Person, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1  # refused
    seen(make_agent(alice.user), minutes_ago=60)
    warn(alice.user, "offline", 10)
    mail_to(alice.user)
    jobs.watch()
    assert (jobs.send_mails(), jobs.send_mails()) == (1, 0)
    row = Mail.objects.get()
    assert (row.attempts, row.next_attempt_at > timezone.now()) == (1, True)
    for _ in range(5):
        Mail.objects.update(next_attempt_at=timezone.now())
        assert jobs.send_mails() == 1
    assert not Mail.objects.exists()
    assert AlertAddress.objects.get().failed_at is not None


@pytest.mark.deliveries
def test_a_mail_that_cannot_be_written_does_not_stop_the_others(
    alice: Person, bob: Person, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    queue_mails([(alice.user.pk, '"a\x0cBcc: x"@example.org', "subject", "text")])
    queue_mails([(bob.user.pk, "bob@example.org", "subject", "text")])
    assert (jobs.send_mails(), jobs.send_mails()) == (2, 0)
    assert "To: bob@example.org" in capsys.readouterr().out
    row = Mail.objects.get()
    assert (row.owner_id, row.attempts, row.next_attempt_at > timezone.now()) == (alice.user.pk, 1, True)


def test_the_words_of_an_agent_add_no_header_and_no_html_to_a_mail(alice: Person, bob: Person) -> None:
    said = "no disk\r\nBcc: eve\r\nContent-Type: text/html\r\n\r\n<script>run()<b>\v\x85\u2028X: y"
    make_turn(make_agent(alice.user), bob.user, "failed", reason="agent_failed", failure_text=said)
    assert group_failures() == 1
    warn(alice.user, "new_failure", 1)
    mail_to(alice.user)
    assert (jobs.watch(), jobs.send_mails()) == (1, 1)
    [sent] = outbox_mail.outbox
    read = message_from_bytes(sent.message().as_bytes())
    assert sorted(read.keys()) == HEADERS_OF_A_MAIL
    assert (read.get_content_type(), sent.recipients()) == ("text/plain", ["alice@example.org"])
    shown = "no disk Bcc: eve Content-Type: text/html <script>run()<b> X: y"
    assert sent.subject == f"[Clawbridge] @alice/helper fails in a new way: {shown}"
    assert shown in str(sent.body).splitlines()[0]
    # No text of a mail has a line break where a header would begin; if one had, it would not be sent.
    queue_mails([(alice.user.pk, "alice@example.org", "subject\r\nBcc: eve@example.org", "text")])
    assert (jobs.send_mails(), Mail.objects.get().attempts, len(outbox_mail.outbox)) == (1, 1, 1)


@pytest.mark.deliveries
def test_a_mail_whose_lease_ran_out_is_left_to_the_process_that_leased_it_again(alice: Person) -> None:
    outbox, sent = MailOutbox(), AttemptResult(is_success=True)
    queue_mails([(alice.user.pk, "alice@example.org", "subject", "text")])
    [slow] = lease(outbox, SendLimits(outbox))
    assert lease(outbox, SendLimits(outbox)) == []
    Mail.objects.update(next_attempt_at=timezone.now())
    [again] = lease(outbox, SendLimits(outbox))
    assert not settle(outbox, slow, sent)
    assert Mail.objects.get().attempts == 2
    assert settle(outbox, again, sent)
    assert not Mail.objects.exists()


@pytest.mark.deliveries
def test_what_waits_is_sent_once_and_not_while_sending_is_paused(alice: Person) -> None:
    seen(make_agent(alice.user), minutes_ago=60)
    warn(alice.user, "offline", 10)
    mail_to(alice.user)
    jobs.watch()
    pause_sending()
    assert jobs.send_mails() == 0
    resume_sending()
    assert (jobs.send_mails(), jobs.send_mails()) == (1, 0)
    [sent] = outbox_mail.outbox
    assert (sent.to, sent.from_email) == (["alice@example.org"], "hub@example.org")
    assert str(sent.extra_headers["Message-ID"]).endswith("@example.org>")
    assert "/desk/alerts" in sent.body


def test_ended_alerts_are_kept_as_long_as_events(alice: Person) -> None:
    long_ago = timezone.now() - timedelta(days=91)
    dates = {"since": long_ago, "raised_at": long_ago}
    for kind, ended_at in (("offline", long_ago), ("budget", timezone.now()), ("failures", None)):
        Alert.objects.create(
            agent=make_agent(alice.user, kind), kind=kind, threshold=1, value=1, ended_at=ended_at, **dates
        )
    jobs.forget_events(90)
    assert sorted(Alert.objects.values_list("kind", flat=True)) == ["budget", "failures"]


def test_alerts_are_shown_to_their_owner(alice: Person, bob: Person) -> None:
    seen(make_agent(alice.user, "away"), minutes_ago=60)
    warn(alice.user, "offline", 10)
    jobs.watch()
    for path in ("/desk", "/desk/alerts"):
        assert "@alice/away is offline" in text(browser(alice.session), path)
        assert "away" not in text(browser(bob.session), path)
    Agent.objects.update(status="draft")
    jobs.watch()
    assert "is offline" not in text(browser(alice.session), "/desk")
    assert "@alice/away was offline" in text(browser(alice.session), "/desk/alerts")
