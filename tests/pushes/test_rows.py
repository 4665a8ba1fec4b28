"""The life of push configs and pushes as rows, on each database."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from a2a_bridge.limits import PUSH_CONFIGS_OF_TASK
from a2a_bridge.models import Push, PushConfig
from a2a_bridge.service import push_configs, push_delivery
from a2a_bridge.service.push_configs import queue_pushes, return_to_turn
from a2a_bridge.service.push_delivery import RETRY_AFTER_S
from a2a_bridge.service.tasks.pieces import end_of
from a2a_bridge.wire.requests import PushTarget
from a2a_bridge.wire.task import State, StatusEvent, Task, TaskEvent, after
from accounts.quotas import QuotaExceeded
from agents.core.types import SettledTurn
from agents.models import Turn
from agents.models.choices import Outcome
from kit import sql
from kit.outbox import AttemptResult
from lab.receivers import receiving
from tests.native.rows import Person, make_agent, make_turn
from tests.pushes.client import bodies, states
from tests.pushes.rows import config_of, end_lease, lease_due, make_due, push_of, send_due

pytestmark = [pytest.mark.deliveries, pytest.mark.django_db]
AT = "2026-01-01T00:00:00.000Z"


def task_of(whose: Person, seq: int = 0, **fields: Any) -> Task:
    made = {"id": "task-1", "handle": "o/s", "context_id": "c", "chat_id": "chat of task-1", "home": "here"}
    made |= {"state": State.WORKING, "updated_at": AT, "history": (), "seq": seq, "caller_id": whose.user.pk}
    return Task(**(made | fields))


def ending(task: Task, text: str = "done") -> tuple[Task, list[TaskEvent]]:
    events = end_of(task, SettledTurn(Outcome.COMPLETED, "", text), wait_s=60, at=AT)
    return after(task, events), events


def tell(task: Task, *events: TaskEvent) -> None:
    with transaction.atomic():
        sql.rows_of_each(queue_pushes(task, events))


def queued(config: PushConfig) -> list[int]:
    return list(Push.objects.filter(config=config).order_by("seq").values_list("seq", flat=True))


def leased() -> list[int]:
    """The pushes that a sender begins to send now, by event."""
    return [one.row.seq for one in lease_due()]


def test_the_end_is_queued_for_every_config_and_once(alice: Person) -> None:
    first, second, other = config_of(alice), config_of(alice), config_of(alice, task_id="task-2")
    ended, events = ending(task_of(alice, 4))
    for _ in range(2):
        tell(ended, *events)
    assert [queued(one) for one in (first, second, other)] == [[5, 6], [5, 6], []]
    first.refresh_from_db()
    assert first.ended_seq == 6


def test_after_its_end_nothing_more_is_told(alice: Person) -> None:
    config = config_of(alice, ended_seq=3)
    tell(*(lambda task, events: (task, *events))(*ending(task_of(alice, 4))))
    tell(task_of(alice, 5), StatusEvent(5, AT, State.WORKING))
    assert queued(config) == []


def test_what_comes_later_waits_for_what_is_under_way_or_failed(alice: Person) -> None:
    config, other = config_of(alice), config_of(alice)
    for _ in range(3):
        push_of(config)
    push_of(other, seq=9)
    assert sorted(leased()) == [1, 9]
    assert leased() == []
    make_due()
    assert sorted(leased()) == [1, 9], "its sender died"
    Push.objects.filter(seq=1).update(status="pending")
    assert leased() == []
    Push.objects.filter(seq=1).update(status="failed", next_attempt_at=None)
    assert leased() == [2]


def test_a_push_is_given_up_after_its_retries(alice: Person) -> None:
    push = push_of(config_of(alice))
    for _ in range(len(RETRY_AFTER_S) + 1):
        make_due()
        [one] = lease_due()
        assert end_lease(one, AttemptResult(is_success=False, status=500))
    push.refresh_from_db()
    assert (push.status, push.attempts, push.last_status) == ("failed", 6, 500)


def test_a_suspended_callers_receivers_hear_nothing(alice: Person) -> None:
    push_of(config_of(alice))
    alice.user.is_active = False
    alice.user.save()
    assert leased() == []


def test_what_is_secret_is_sealed_and_can_be_sealed_anew(alice: Person, settings: Any) -> None:
    target = PushTarget(url="https://push.invalid/", token="t0ken", scheme="Bearer", credentials="cr3d")
    push_configs.keep(task_of(alice), target)
    row = PushConfig.objects.get()
    assert not {"t0ken", "cr3d", "Bearer"} & {str(value) for value in row.__dict__.values()}
    assert "t0ken" not in row.sealed
    settings.WEBHOOK_KEYS = ("k" * 32,)
    assert push_configs.reseal_all() == (1, 0)
    row.refresh_from_db()
    assert push_configs.unseal(row.sealed) == push_configs.Secrets("t0ken", "Bearer", "cr3d")
    settings.SECRET_KEY, settings.WEBHOOK_KEYS = "another" * 8, ()
    push_of(row)
    assert push_configs.reseal_all() == (0, 1)
    assert send_due() == 1
    assert "cannot be read" in Push.objects.get().last_error
    found = push_configs.find("task-1", row.config_id)
    assert found is not None
    assert (found.url, found.token) == ("https://push.invalid/", "")


def test_a_task_and_a_caller_have_so_many_configs(alice: Person, settings: Any) -> None:
    target = PushTarget(url="https://push.invalid/")
    for number in range(PUSH_CONFIGS_OF_TASK.most):
        push_configs.keep(task_of(alice), PushTarget(url=target.url, config_id=f"n{number}"))
    with pytest.raises(QuotaExceeded):
        push_configs.keep(task_of(alice), target)
    push_configs.keep(task_of(alice), PushTarget(url="https://push.invalid/2", config_id="n3"))
    settings.PUSH_CONFIGS_PER_CALLER = PUSH_CONFIGS_OF_TASK.most
    with pytest.raises(QuotaExceeded):
        push_configs.keep(task_of(alice, id="task-2"), target)
    assert PushConfig.objects.count() == PUSH_CONFIGS_OF_TASK.most


def test_the_failure_of_a_message_that_was_not_sent_is_no_end_of_its_task(alice: Person) -> None:
    agent = make_agent(alice.user)
    asked, unsent = (make_turn(agent, alice.user, outcome) for outcome in ("completed", "failed"))
    config = config_of(alice, chat_id=unsent.chat_id)
    sql.rows_of_each([return_to_turn(task_of(alice, id=config.task_id, chat_id=asked.chat_id))])
    assert push_delivery.queue_missed_ends() == 0


def test_the_failure_of_a_dead_process_is_told_once_and_last(alice: Person) -> None:
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    agent = make_agent(alice.user)
    died = make_turn(agent, alice.user, "failed", reason="process_died", traceparent=trace)
    config = config_of(alice, chat_id=died.chat_id)
    others = [
        config_of(alice, task_id=f"task-{outcome}", chat_id=make_turn(agent, alice.user, outcome).chat_id)
        for outcome in ("completed", "denied", None)
    ]
    push_of(config, seq=7)
    assert [push_delivery.queue_missed_ends(), push_delivery.queue_missed_ends()] == [1, 0]
    assert queued(config) == [7, 8]
    assert [queued(one) for one in others] == [[], [], []]
    last = Push.objects.get(seq=8)
    assert '"TASK_STATE_FAILED"' in last.payload
    assert last.traceparent == trace
    ended, events = ending(task_of(alice, 8, chat_id=died.chat_id))
    tell(ended, *events)
    assert queued(config) == [7, 8], "its process lived after all, but the end is told"


def test_configs_go_with_their_tasks_once_nothing_waits(alice: Person) -> None:
    now = config_of(alice).touched_at
    half_an_hour, two_days = now - timedelta(minutes=31), now - timedelta(days=2)
    waiting = config_of(alice, ended_seq=1, touched_at=half_an_hour)
    push_of(waiting)
    config_of(alice, ended_seq=1, touched_at=half_an_hour)
    config_of(alice, touched_at=two_days)
    kept = [config_of(alice, touched_at=half_an_hour), config_of(alice, ended_seq=1), waiting]
    assert push_delivery.forget_configs() == 2
    assert set(PushConfig.objects.values_list("pk", flat=True)) > {one.pk for one in kept}
    alice.user.delete()
    assert (PushConfig.objects.count(), Push.objects.count()) == (0, 0)


def test_a_deleted_config_takes_what_waits_with_it(alice: Person) -> None:
    gone, kept = config_of(alice), config_of(alice)
    push_of(gone)
    push_of(kept)
    [taken, _] = lease_due()
    push_configs.drop("task-1", gone.config_id)
    assert list(Push.objects.values_list("config", flat=True)) == [kept.pk]
    assert end_lease(taken, AttemptResult(is_success=True, status=204)) is False


@pytest.mark.django_db(transaction=True)
def test_a_config_kept_while_a_turn_ends_is_seen_by_the_end_or_sees_it(alice: Person) -> None:
    turn = make_turn(make_agent(alice.user), alice.user, None)
    task = task_of(alice, 1, chat_id=turn.chat_id)
    kept: list[bool] = []

    def keep() -> None:
        kept.append(push_configs.keep(task, PushTarget(url="https://push.invalid/"))[1])
        connection.close()

    keeping = threading.Thread(target=keep)
    with transaction.atomic():
        Turn.objects.filter(pk=turn.pk).update(outcome="completed", settled_at=turn.asked_at)
        ended, events = ending(task)
        sql.rows_of_each(queue_pushes(ended, events))
        keeping.start()
        keeping.join(0.5)
        assert keeping.is_alive(), "it waits for the end to be durable"
    keeping.join(10)
    assert kept == [True]
    assert Push.objects.count() == 0


def test_all_of_it_arrives_in_order(alice: Person) -> None:
    with receiving() as receiver:
        config_of(alice, receiver.url)
        tell(task_of(alice, 1), StatusEvent(1, AT, State.WORKING))
        ended, events = ending(task_of(alice, 1), "the end")
        tell(ended, *events)
        assert send_due() == 3
        assert states(bodies(receiver)) == ["WORKING", "reply-1", "COMPLETED"]
