"""Failures in groups: what is the same failure, what is counted, and the states of a group."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from agents.core import failure_groups
from agents.core.errors import REFUSALS
from agents.core.failure_groups import GROUPS_PER_AGENT, describe_group, group_failures, set_state
from agents.core.failure_shapes import MAX_READ_CHARS, find_shape
from agents.core.failures import FAILURES, REMOVED
from agents.core.reasons import RefusalKind
from agents.models import FailureCaller, FailureDay, FailureGroup, Turn
from agents.models.choices import GROUPED_REASONS
from tests.native.rows import Person, make_agent, make_turn
from tests.native.test_alerts import subscribe
from webhooks.models import Delivery

ENOUGH = timedelta(minutes=3)


def fail(agent: Any, caller: Any, text: str | None = None, **fields: Any) -> Turn:
    return make_turn(agent, caller, "failed", **{"reason": "agent_failed", "failure_text": text, **fields})


@pytest.mark.parametrize(
    "texts",
    [
        ("no route to https://a.example/x?y=1", "no route to http://b.example:80/"),
        ('file "a b" is missing', "file 'other' is missing"),
        ("cannot open /var/lib/a.db", "cannot open ./b/c.txt", r"cannot open C:\data\x"),
        ("timeout after 30 s", "timeout after 4.5 s", "Timeout after 1,000 s"),
        ("job 6f9619ff-8b86-d011-b42d-00c04fc964ff died", "job 00000000-0000-0000-0000-000000000000 died"),
        ("at 2026-01-02T03:04:05.678Z it broke", "at 2025-12-31 it broke"),
        ("request req_1a2b3c4d5e failed", "request 8badf00d77 failed"),
        ("no quota for a@example.org", "no quota for x.y@example.com"),
        ("@bob/helper is busy", "@alice is busy"),
        ("a\nb", "a  b"),
    ],
)
def test_texts_of_one_failure_have_one_shape(texts: tuple[str, ...]) -> None:
    assert len({find_shape(one).lower() for one in texts}) == 1, [find_shape(one) for one in texts]


def test_texts_of_different_failures_have_different_shapes() -> None:
    texts = ["no memory", "no disk", "exit status 1", "error 404 of the model", "can't start", "it isn't there"]
    assert len({find_shape(one) for one in texts}) == len(texts)


def test_a_shape_is_bounded_and_read_in_linear_time() -> None:
    for hostile in (
        "'" * 100_000,
        "a-" * 50_000,
        "/." * 50_000,
        "\x00\u202e" * 50_000,
        "1" * 100_000,
        "a@" * 50_000,
    ):
        assert len(find_shape(hostile)) <= 300
    assert find_shape("x" * MAX_READ_CHARS + "1") == "x" * 300


def test_the_reasons_that_are_grouped_are_those_of_the_registry() -> None:
    faults = {reason for reason, one in FAILURES.items() if one.is_fault and reason != REMOVED}
    kinds = {RefusalKind.OFFLINE, RefusalKind.BUSY, RefusalKind.SPENT}
    assert set(GROUPED_REASONS) == faults | {one.reason for one in REFUSALS if one.entry.kind in kinds}
    assert list(GROUPED_REASONS) == sorted(GROUPED_REASONS)


def test_failures_are_counted_by_shape_day_and_caller(alice: Person, bob: Person) -> None:
    agent, now = make_agent(alice.user), timezone.now()
    fail(agent, bob.user, "model gpt-5-2026 is away", settled_at=now - timedelta(days=1))
    fail(agent, bob.user, "model gpt-5-2027 is away")
    fail(agent, alice.user, "model gpt-5-2028 is away")
    fail(agent, None, "out of memory")
    make_turn(agent, bob.user, "failed", reason="canceled")
    make_turn(agent, bob.user, "denied", reason="blocked")
    make_turn(agent, bob.user)
    assert group_failures() == 4
    first, second = FailureGroup.objects.order_by("pk")
    assert (first.shape, first.count, second.shape, second.count) == ("model <id> is away", 3, "out of memory", 1)
    assert dict(FailureDay.objects.filter(group=first).values_list("day", "count")) == {
        (now - timedelta(days=1)).date(): 1,
        now.date(): 2,
    }
    assert dict(FailureCaller.objects.values_list("caller__login", "count")) == {"bob": 2, "alice": 1}
    assert first.last_at - first.first_at >= timedelta(hours=23)
    assert group_failures() == 0
    fail(agent, bob.user, "model gpt-6-2028 is away")
    assert group_failures() == 1
    first.refresh_from_db()
    assert (first.count, FailureGroup.objects.count()) == (4, 2)


def test_refusals_are_counted_once_no_other_can_join_their_row(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user)
    turn = make_turn(agent, bob.user, "denied", reason="offline")
    assert group_failures() == 0
    Turn.objects.filter(pk=turn.pk).update(repeats=7, settled_at=timezone.now() - ENOUGH)
    assert group_failures() == 1
    group = FailureGroup.objects.get()
    assert (group.count, describe_group(group)) == (7, "The agent was offline.")


def test_a_resolved_failure_opens_again_and_an_ignored_one_does_not(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user)
    subscribe(alice.user, {"url": "https://hooks.example.org", "events": "failure.opened failure.reopened"})
    before = fail(agent, bob.user, "broken")
    group_failures()
    group = FailureGroup.objects.get()
    set_state(group.pk, "resolved")
    fail(agent, bob.user, "broken", settled_at=before.settled_at)
    group_failures()
    group.refresh_from_db()
    assert (group.state, group.count, group.reopened_at) == ("resolved", 2, None), "it occurred before"
    fail(agent, bob.user, "broken")
    group_failures()
    group.refresh_from_db()
    assert (group.state, group.count, group.count_before, group.resolved_at) == ("open", 3, 2, None)
    assert group.reopened_at is not None
    set_state(group.pk, "ignored")
    fail(agent, bob.user, "broken")
    group_failures()
    group.refresh_from_db()
    assert (group.state, group.count) == ("ignored", 4)
    assert list(Delivery.objects.order_by("pk").values_list("type", flat=True)) == [
        "failure.opened",
        "failure.reopened",
    ]


def test_an_agent_has_a_bounded_number_of_groups(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user)
    letters = "abcdefghijklmnopqrst"
    for number in range(GROUPS_PER_AGENT + 30):
        fail(agent, bob.user, f"kind {letters[number // 20]}{letters[number % 20]}")
    assert group_failures() == GROUPS_PER_AGENT + 30
    assert FailureGroup.objects.count() == GROUPS_PER_AGENT + 1
    assert "too many to list" in describe_group(FailureGroup.objects.latest("pk"))
    assert FailureGroup.objects.latest("pk").count == 30


def test_a_batch_that_fails_counts_nothing(alice: Person, bob: Person) -> None:
    fail(make_agent(alice.user), bob.user, "broken")

    def refuse_days(execute: Any, statement: str, *args: Any) -> Any:
        if "agents_failureday" in statement:
            raise OperationalError("the disk is gone")
        return execute(statement, *args)

    with pytest.raises(OperationalError), connection.execute_wrapper(refuse_days):
        group_failures()
    assert not FailureGroup.objects.exists()
    assert group_failures() == 1
    assert FailureGroup.objects.get().count == 1


def test_turns_that_are_not_counted_yet_are_found_by_an_index(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user)
    fail(agent, bob.user, "broken")
    plan = failure_groups.find_uncounted(timezone.now()).filter(pk__gt=0).order_by("pk")[:9].explain()
    assert "turn_to_group" in plan
