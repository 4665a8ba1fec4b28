"""A restored copy of a hub sends nothing until its operator says so."""

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction

from kit.clock import db_now
from lab.receivers import receiving
from tests.native.rows import Person
from tests.pushes.rows import config_of, push_of, send_due
from tests.webhooks.subscriptions import deliver, happen, only_delivery, subscribed
from webhooks.models import SendingPause
from webhooks.service.outbox import find_pause, pause_sending

pytestmark = [pytest.mark.deliveries, pytest.mark.django_db]


def test_a_restored_copy_sends_nothing_until_it_is_told_to(
    alice: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    with receiving() as receiver:
        subscribed(alice.user, receiver.url)
        happen(alice.user)
        push = push_of(config_of(alice, receiver.url))
        call_command("pause_sending", reason="a copy of Monday")
        assert (deliver(), send_due()) == (0, 0)
        assert receiver.received == []
        push.refresh_from_db()
        assert {(one.status, one.attempts) for one in (only_delivery(), push)} == {("pending", 0)}
        call_command("resume_sending")
        assert (deliver(), send_due()) == (1, 1)
        assert len(receiver.received) == 2
    assert capsys.readouterr().out.splitlines() == ["sending is paused", "sending goes on"]


def test_a_pause_is_kept_as_it_was_made(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("resume_sending")
    pause_sending("first")
    call_command("pause_sending", reason="second")
    pause = find_pause()
    assert pause is not None
    assert pause.reason == "first"
    said = ["sending was not paused", f"sending is paused since {pause.paused_at:%F %T}"]
    assert capsys.readouterr().out.splitlines() == said


def test_there_is_one_pause() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        SendingPause.objects.create(pk=2, paused_at=db_now())
