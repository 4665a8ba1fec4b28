"""Figures of the whole hub from the database, for `/metrics`: few queries, each indexed and bounded.

The health page takes its queues from here.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from a2a_bridge.models import Push
from agents.models import Process, Turn
from agents.models.session import alive_since
from agnt.models import Invoice
from agnt.service.metering import Drift, find_drift
from hub.models import JobRun
from kit.clock import db_now
from webhooks.models import Delivery, Sendable

MOST = 10_000
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Queue:
    """The rows that wait to be sent, and how long the longest due one is overdue."""

    pending: int
    overdue_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFigures:
    """As every process sees them. Counts stop at MOST; `sweep_age_s` is infinite when no sweep has ever run."""

    open_turns: int
    processes: int
    sweep_age_s: float
    deliveries: Queue
    pushes: Queue
    drift: Drift
    open_invoices: int


def hub_figures() -> HubFigures:
    """Look once."""
    now = db_now()
    return HubFigures(
        open_turns=count_of(Turn.objects.open()),
        processes=Process.objects.filter(beat_at__gt=alive_since(now)).count(),
        sweep_age_s=_sweep_age_s(now),
        deliveries=queue_of(Delivery, now),
        pushes=queue_of(Push, now),
        drift=find_drift(),
        open_invoices=count_of(Invoice.objects.filter(state=Invoice.State.OPEN)),
    )


def pool_figures() -> dict[str, int]:
    """The database pool of this process, by what is counted; nothing on SQLite. No query is made."""
    pool = getattr(connection, "pool", None)
    stats: dict[str, int] = pool.get_stats() if pool is not None else {}
    wanted = {"pool_size": "open", "pool_available": "idle", "requests_waiting": "waiting", "pool_max": "most"}
    return {name: stats.get(key, 0) for key, name in wanted.items()} if stats else {}


def queue_of(rows: type[Sendable], now: datetime) -> Queue:
    """The number and age of the waiting ones of these rows."""
    unsettled: Any = rows._default_manager.filter(status__in=Sendable.UNSETTLED)
    first = unsettled.order_by("next_attempt_at").values_list("next_attempt_at", flat=True).first()
    overdue = (now - first).total_seconds() if first else 0.0
    return Queue(count_of(unsettled), max(0.0, overdue))


def count_of(rows: QuerySet[Any]) -> int:
    """How many, MOST at most."""
    return rows.order_by()[:MOST].count()


def _sweep_age_s(now: datetime) -> float:
    swept = JobRun.objects.filter(name=JobRun.SWEEP).values_list("ended_at", flat=True).first()
    return max(0.0, (now - swept).total_seconds()) if swept else NEVER
