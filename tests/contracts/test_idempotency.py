"""Keys of sends that failed: waiting requests are told so, and later another send may use the key."""

from datetime import timedelta

import pytest

from a2a_bridge.models import SendKey
from a2a_bridge.service.repeats import ABANDONED_AFTER, ADMITTED_WITHIN, KeyClaim, RepeatedSend, release_key, take
from a2a_bridge.wire.task import State, Task, timestamp
from accounts.models import User
from accounts.tokens import get_or_create_local_user
from agents.core.errors import Unavailable
from agents.core.types import SettledTurn
from agents.models import Session, Turn
from agents.models.choices import Outcome, TurnFailure
from kit import sql
from kit.async_db import db_call
from kit.clock import db_now
from kit.ids import unguessable

pytestmark = [pytest.mark.django_db(transaction=True)]
BODY = b"\x01" * 16
SECOND = timedelta(seconds=1)


def caller() -> User:
    return get_or_create_local_user("ann")


async def taken() -> KeyClaim:
    user = await db_call(caller)()
    return await take(user.pk, "bob/a", "k", BODY, task_id=unguessable("task-"))


def make_older(claim: KeyClaim, by: timedelta) -> None:
    SendKey.objects.filter(pk=claim.pk).update(created_at=db_now() - by)


def end_turn(claim: KeyClaim, outcome: str) -> None:
    session = Session.objects.create(owner=caller(), routing_name="a")
    now = db_now()
    Turn.objects.create(
        chat_id=claim.chat_id, session=session, caller=caller(), surface="a2a", question="hi", asked_at=now,
        outcome=outcome, reason="busy", settled_at=now,
    )  # fmt: skip


async def not_waiting(_: str) -> None:
    raise AssertionError("none of these waits for its agent")


def task_of(claim: KeyClaim) -> Task:
    return Task(
        id=claim.task_id, caller_id=1, handle="bob/a", context_id="c", chat_id=claim.chat_id, home="p",
        state=State.SUBMITTED, updated_at=timestamp(), history=(),
    )  # fmt: skip


def repeat_of(claim: KeyClaim) -> RepeatedSend:
    return RepeatedSend(claim, task_of(claim), wait_s=60, keep_place=not_waiting)


async def test_while_the_first_may_still_be_admitted_the_second_waits() -> None:
    claim = await taken()
    assert not await repeat_of(claim).answered(0)


async def test_when_the_first_was_refused_and_let_go_the_second_is_told_to_ask_again() -> None:
    claim = await taken()
    await release_key(claim)
    with pytest.raises(Unavailable):
        await repeat_of(claim).answered(0)


@pytest.mark.parametrize("is_denied", [False, True])
async def test_when_the_first_died_before_it_could_let_go_the_key_is_free_in_time(is_denied: bool) -> None:
    claim = await taken()
    if is_denied:
        await db_call(end_turn)(claim, "denied")
    await db_call(make_older)(claim, ADMITTED_WITHIN + SECOND)
    with pytest.raises(Unavailable):
        await repeat_of(claim).answered(0)
    assert not (await taken()).is_new
    await db_call(make_older)(claim, ABANDONED_AFTER + SECOND)
    second = await taken()
    assert second.is_new
    assert second.chat_id != claim.chat_id
    await release_key(claim)  # it was only slow: what is not its own any more stays
    assert not (await taken()).is_new


@pytest.mark.parametrize("is_unsent", [True, False])
async def test_a_failure_is_kept_unless_nothing_was_sent(*, is_unsent: bool) -> None:
    """A lost connection may have carried the question, so its failure is kept."""
    claim = await taken()
    reason = TurnFailure.NOT_DELIVERED if is_unsent else TurnFailure.CHANNEL_LOST
    settled = SettledTurn(Outcome.FAILED, reason, is_unsent=is_unsent)
    await db_call(sql.rows_of_each)(claim.writes(task_of(claim), settled, is_plain=False))
    if is_unsent:
        with pytest.raises(Unavailable):
            await repeat_of(claim).answered(0)
    else:
        assert await repeat_of(claim).answered(0)
    assert (await taken()).is_new is is_unsent


async def test_the_key_of_an_ask_that_failed_is_never_free() -> None:
    claim = await taken()
    await db_call(end_turn)(claim, "failed")
    await db_call(make_older)(claim, 2 * ABANDONED_AFTER)
    assert not (await taken()).is_new
    assert await repeat_of(claim).answered(0)
