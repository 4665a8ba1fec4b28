"""Figures of the whole hub from the database, for `/metrics`: few queries, each indexed and bounded.

The health page shows the queues of this module.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import QuerySet

from a2a_bridge.models import Push
from agents.models import Process, Turn
from agents.models.session import alive_since
from agnt.models import Invoice
from agnt.service.figures import find_drift
from hub.models import JobRun
from kit.clock import db_now
from webhooks.models import Delivery, Sendable

MOST = 10_000
NEVER = float("inf")  # the age of a sweep that has never run


@dataclass(frozen=True, slots=True)
class Queue:
    """The rows that wait to be sent, and how long the longest due one is overdue."""

    pending: int
    overdue_s: float


class Figure(NamedTuple):
    """A figure of `/metrics`: a number, or with a `label` a number for each of its values."""

    name: str
    text: str
    number: float = 0.0
    label: str = ""
    by_label: Mapping[str, float] = {}


def hub_figures() -> list[Figure]:
    """The figures, which are the same in every process. Counts stop at MOST."""
    now = db_now()
    queues, drift = {"webhooks": queue_of(Delivery, now), "pushes": queue_of(Push, now)}, find_drift()
    pending = {name: queue.pending for name, queue in queues.items()}
    overdue = {name: queue.overdue_s for name, queue in queues.items()}
    drifts = {"uncharged": drift.uncharged, "unconfirmed": drift.unconfirmed}
    processes = Process.objects.filter(beat_at__gt=alive_since(now)).count()
    open_turns = count_of(Turn.objects.open())
    unsent = count_of(Invoice.objects.filter(state=Invoice.State.OPEN))
    return [
        Figure("clawbridge_open_turns", "Turns of the whole hub without an end, 10000 at most.", open_turns),
        Figure("clawbridge_processes", "Web processes whose heartbeat is recent.", processes),
        Figure(
            "clawbridge_sweep_age_seconds",
            "Since the sweep was done last; over 60 is an alarm.",
            _sweep_age_s(now),
        ),
        Figure("clawbridge_deliveries_pending", "What waits to be sent.", label="queue", by_label=pending),
        Figure(
            "clawbridge_deliveries_overdue_seconds", "How late the latest is.", label="queue", by_label=overdue
        ),
        Figure(
            "agnt_metering_drift",
            "Newest bookings without charge, charges without confirm.",
            label="kind",
            by_label=drifts,
        ),
        Figure("agnt_charges_last_hour", "Charges of the last hour, 10000 at most.", drift.charged_last_hour),
        Figure("agnt_unbilled_age_seconds", "Age of the oldest charge on no bill.", drift.oldest_unbilled_s),
        Figure("agnt_open_invoices", "Bills that were not sent.", unsent),
    ]


def pool_figures() -> dict[str, int]:
    """The figures of this process's database pool by name; empty on SQLite. The function makes no query."""
    pool = getattr(connection, "pool", None)
    stats: dict[str, int] = pool.get_stats() if pool is not None else {}
    wanted = {"pool_size": "open", "pool_available": "idle", "requests_waiting": "waiting", "pool_max": "most"}
    return {name: stats.get(key, 0) for key, name in wanted.items()} if stats else {}


def queue_of(rows: type[Sendable], now: datetime) -> Queue:
    """The number of these rows that wait, and the age of the oldest."""
    unsettled: Any = rows._default_manager.filter(status__in=Sendable.UNSETTLED)
    first = unsettled.order_by("next_attempt_at").values_list("next_attempt_at", flat=True).first()
    overdue = (now - first).total_seconds() if first else 0.0
    return Queue(count_of(unsettled), max(0.0, overdue))


def count_of(rows: QuerySet[Any]) -> int:
    """The number of rows, MOST at most."""
    return rows.order_by()[:MOST].count()


def _sweep_age_s(now: datetime) -> float:
    swept = JobRun.objects.filter(name=JobRun.SWEEP).values_list("ended_at", flat=True).first()
    return max(0.0, (now - swept).total_seconds()) if swept else NEVER
