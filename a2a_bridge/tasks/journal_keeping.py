"""How long and how many tasks the journal keeps. Deletes in small batches, each a transaction of its own."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet, Sum

from a2a_bridge.models import StoredEvent, StoredTask
from a2a_bridge.tasks import journal_rows
from a2a_bridge.tasks.record import OPEN, State
from a2a_bridge.tasks.store import MAY_RUN, may_run
from kit import batches
from kit.clock import db_now

TASKS_A_CALLER = 10_000
BYTES_A_CALLER = 256 * 1024 * 1024
DELETE_AT_ONCE = 200

_SIZE = F("snapshot_bytes") + F("events_bytes")


def forget_old(kept_days: int) -> int:
    """Delete tasks whose state was set longer ago than that; how many went."""
    old = StoredTask.objects.filter(updated_at__lte=db_now() - timedelta(days=kept_days))
    return sum(_delete(old, ids) for ids in batches.of(old.order_by("updated_at"), DELETE_AT_ONCE))


def trim(*, tasks_a_caller: int = TASKS_A_CALLER, bytes_a_caller: int = BYTES_A_CALLER) -> int:
    """Delete the oldest finished tasks of callers who have more than that; how many went."""
    sums = StoredTask.objects.values("caller_id").annotate(count=Count("pk"), held=Sum(_SIZE))
    crowded = sums.filter(Q(count__gt=tasks_a_caller) | Q(held__gt=bytes_a_caller))
    now = db_now()
    may_wait = Q(state=State.INPUT_REQUIRED, updated_at__gt=now - MAY_RUN)  # for an approval, see `may_run`
    ended = StoredTask.objects.exclude(Q(state__in=OPEN) | may_wait)
    gone = 0
    for caller_id in list(crowded.values_list("caller_id", flat=True)):
        spent = list(_spent(caller_id, tasks_a_caller, bytes_a_caller, now))
        for start in range(0, len(spent), DELETE_AT_ONCE):
            gone += _delete(ended, spent[start : start + DELETE_AT_ONCE])
    return gone


def _spent(caller_id: int, most: int, most_bytes: int, now: datetime) -> Iterator[str]:
    """A caller's tasks beyond the newest that fit, but for those an agent works on."""
    mine = StoredTask.objects.filter(caller_id=caller_id).annotate(held=_SIZE).order_by("-updated_at", "-pk")
    count = size_bytes = 0
    for task_id, state, at, held in mine.values_list("pk", "state", "updated_at", "held").iterator():
        count, size_bytes = count + 1, size_bytes + held
        if (count > most or size_bytes > most_bytes) and not may_run(state, at, now):
            yield task_id


def _delete(meant: QuerySet[StoredTask], task_ids: list[str]) -> int:
    """How many of these tasks went, each with its events; those go first, a batch at a time.

    One that was taken further meanwhile, and is not meant any more, stays.
    """
    tasks = meant.filter(pk__in=task_ids)
    for events in batches.of(StoredEvent.objects.filter(task__in=tasks)):
        StoredEvent.objects.filter(pk__in=events).delete()
    with transaction.atomic():
        held = list(journal_rows.locked(tasks).values_list("pk", flat=True))
        deleted = StoredTask.objects.filter(pk__in=held).delete()[1]
    return deleted.get(StoredTask._meta.label, 0)
