"""Work that must be done whatever process lives: the reaper and retention. Every job may run twice, or late."""

from datetime import timedelta

from celery import shared_task
from django.db import transaction
from django.db.models import F, Q

from accounts.models import Credential
from accounts.oauth import flows
from agents import presence
from agents.ledger.statements import PROCESS_DEAD_S
from agents.models import Connection, Event, Process, RemoteName, Turn
from agents.transcript import files
from agents.types import NO_CONNECTION, Failure, Outcome
from kit.clock import db_now

DELETE_AT_ONCE = 1_000
CREDENTIALS_KEPT = timedelta(days=90)


@shared_task(name="agents.reap", ignore_result=True)
def reap() -> dict[str, int]:
    """End what dead processes left open, free claims that ran out, forget the dead. Counts of each."""
    with transaction.atomic():
        now = db_now()
        alive = now - timedelta(seconds=PROCESS_DEAD_S)
        dead = presence.forget(Process.objects.filter(beat_at__lte=alive))  # first: it locks sessions
        living = Process.objects.filter(beat_at__gt=alive).values("pk")
        ended = {"outcome": Outcome.FAILED, "settled_at": now, "released_at": now}
        orphans = Turn.objects.open().exclude(home__in=living).update(reason=Failure.PROCESS_DIED, **ended)
        overdue = Turn.objects.open().filter(claim_until__lt=now).update(reason=Failure.TIMEOUT, **ended)
        lingering = Turn.objects.holding().exclude(outcome=None)
        gone = lingering.exclude(connection_id=NO_CONNECTION).exclude(
            connection_id__in=Connection.objects.values("pk")
        )
        released = lingering.filter(claim_until__lt=now).update(released_at=F("claim_until"))
        released += gone.update(released_at=now)
    return {"orphans": orphans, "overdue": overdue, "released": released, "dead": dead}


@shared_task(name="agents.retain", ignore_result=True)
def retain(turns_kept_days: int) -> int:
    """Delete turns older than that, and credentials long revoked or expired; how many turns went."""
    now = db_now()
    flows.forget()
    RemoteName.objects.filter(used_at__lt=now - timedelta(days=turns_kept_days)).delete()
    Credential.objects.spent_before(now - CREDENTIALS_KEPT).filter(connections=None).delete()
    old = Turn.objects.filter(asked_at__lt=now - timedelta(days=turns_kept_days)).exclude(Q(outcome=None))
    gone = 0
    while ids := list(old.values_list("pk", flat=True)[:DELETE_AT_ONCE]):
        gone += Turn.objects.filter(pk__in=ids).delete()[0]
    return gone


@shared_task(name="agents.forget_events", ignore_result=True)
def forget_events(events_kept_days: int) -> int:
    """Delete events older than that, oldest first and in batches; how many went. Ids grow with time."""
    before = db_now() - timedelta(days=events_kept_days)
    gone = 0
    while True:
        oldest = list(Event.objects.order_by("pk").values_list("pk", "ts")[:DELETE_AT_ONCE])
        old = [pk for pk, ts in oldest if ts < before]
        gone += Event.objects.filter(pk__in=old).delete()[0] if old else 0
        if len(old) < DELETE_AT_ONCE:
            return gone


@shared_task(name="agents.expire_files", ignore_result=True)
def expire_files() -> int:
    """Delete files whose time is up, and bytes that no file names; how many files went."""
    return files.expire()
