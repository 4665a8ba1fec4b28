"""Task ends that no process sent: the process died and the reaper ended the task. Also deletes old rows."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q

from a2a_bridge import settings
from a2a_bridge.models import Push, PushConfig
from a2a_bridge.service.pushes.push_rows import payload_of
from a2a_bridge.service.tasks.pieces import end_of
from a2a_bridge.service.tasks.store import ASKING_TTL_S, ENDED_TTL_S, OPEN_TTL_S
from a2a_bridge.wire.task import State, Task, after, timestamp
from agents.core.types import SettledTurn
from agents.models import Turn
from agents.models.choices import Outcome
from kit import batches
from kit.clock import db_now

AT_ONCE = 500
FORGOTTEN_AT_ONCE = 100
ENDED_KEPT = timedelta(seconds=ENDED_TTL_S)
KEPT = timedelta(seconds=ASKING_TTL_S + OPEN_TTL_S)


def sweep() -> int:
    """Tell the failure of turns that ended without their process; how many addresses.

    A turn whose process lives is settled in one transaction with what its addresses are told.
    """
    failed = Turn.objects.filter(chat_id=OuterRef("chat_id"), outcome=Outcome.FAILED)
    lost = PushConfig.objects.filter(Exists(failed), ended_seq=None).order_by("pk")[:AT_ONCE]
    turns = {turn.chat_id: turn for turn in Turn.objects.filter(chat_id__in=[one.chat_id for one in lost])}
    return sum(_end(config, turns[config.chat_id]) for config in lost if config.chat_id in turns)


def forget() -> int:
    """Delete the addresses of tasks that are gone, once nothing waits to be sent there; how many."""
    now = db_now()
    waiting = Push.objects.filter(config=OuterRef("pk"), status__in=Push.UNSETTLED)
    ended = Q(ended_seq__isnull=False, touched_at__lt=now - ENDED_KEPT) & ~Exists(waiting)
    over = PushConfig.objects.filter(ended | Q(touched_at__lt=now - KEPT))
    gone = 0
    for ids in batches.key_batches(over, FORGOTTEN_AT_ONCE):
        batches.delete(Push.objects.filter(config__in=ids))
        gone += PushConfig.objects.filter(pk__in=ids).delete()[1].get(PushConfig._meta.label, 0)
    return gone


@transaction.atomic
def _end(lost: PushConfig, turn: Turn) -> bool:
    """False when its task's end was told in this moment."""
    config = PushConfig.objects.select_for_update(no_key=True).filter(pk=lost.pk, ended_seq=None).first()
    if config is None:
        return False
    known: int = Push.objects.filter(config=config).aggregate(last=Max("seq"))["last"] or 0
    task = Task(
        id=config.task_id,
        caller_id=config.caller_id,
        handle="",
        context_id=config.context_id,
        chat_id=config.chat_id,
        home="",
        state=State.WORKING,
        updated_at="",
        history=(),
        seq=known,
    )
    end = SettledTurn(Outcome.FAILED, turn.reason)
    [event] = end_of(task, end, wait_s=settings.REPLY_WAIT_S, at=timestamp())
    now = db_now()
    config.ended_seq, config.touched_at = event.seq, now
    config.save(update_fields=["ended_seq", "touched_at"])
    payload = payload_of(after(task, [event]), event)
    Push.objects.create(
        config=config,
        seq=event.seq,
        payload=payload,
        queued_at=now,
        next_attempt_at=now,
        traceparent=turn.traceparent,
    )
    return True
