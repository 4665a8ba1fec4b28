"""Pages for the staff: how the hub is, in numbers, and how much of each limit each account uses.

Every query of `/health` walks an index and looks at a bounded part of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.paginator import Page
from django.db import connection
from django.db.models import Count, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from a2a_bridge import limits as of_a2a_bridge
from a2a_bridge.models import Push
from accounts import limits as of_accounts
from accounts.models import User
from accounts.pages import staff_page
from accounts.quotas import MIB, AccountLimit, CountedRows
from agents import limits as of_agents
from agents.core.errors import REFUSALS
from agents.models import Attachment, Process, Turn
from agents.models.choices import Outcome, TurnFailure
from agents.models.session import alive_since, live_connections
from agnt import limits as of_agnt
from evaluations import limits as of_evaluations
from gateway import limits as of_gateway
from hub import limits as of_hub
from hub.logs import errors_lately
from hub.monitoring.figures import MOST, count_of, queue_of
from kit import sql
from kit.clock import db_now
from kit.filters import page_of
from webhooks import limits as of_webhooks
from webhooks.models import Delivery, Sendable
from webhooks.service.outbox import find_pause

MAX_PROCESSES = 50
LATELY = timedelta(hours=1)
DAY = timedelta(days=1)
KINDS = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}
TASKS_IN = {"memory": "in this process", "redis": "in Redis", "journal": "in the database"}


@staff_page
def health(request: HttpRequest, staff: User) -> HttpResponse:
    """The numbers. The script of the page loads them again every few seconds."""
    return render(request, "health.html", {"now": load_figures()})


def load_figures() -> dict[str, Any]:
    """The figures of the page, as of `at`. Counts stop at MOST."""
    now = db_now()
    return {
        "at": now,
        "processes": _list_processes(now),
        "agents": count_of(live_connections()),
        "open_turns": count_of(Turn.objects.open()),
        "lingering": count_of(Turn.objects.holding().exclude(outcome=None)),
        "deliveries": _load_queue(Delivery, now),
        "pushes": _load_queue(Push, now),
        "turns": _count_turns(now),
        "errors": errors_lately()[:20],
        "database": KINDS[connection.vendor],
        "database_bytes": sql.database_bytes(),
        "version": str(settings.SPECTACULAR_SETTINGS["VERSION"]),
        "tasks": TASKS_IN[settings.TASK_STORE],
        "pause": find_pause(),
        "most": MOST,
    }


def _list_processes(now: datetime) -> list[dict[str, Any]]:
    """The processes of the hub, with what each holds. `beat_age_s`: since its last heartbeat."""
    found = list(Process.objects.order_by("-beat_at")[:MAX_PROCESSES])
    ids = [one.pk for one in found]
    agents = _by_process(live_connections().filter(process_id__in=ids))
    operators = _by_process(Attachment.objects.filter(process_id__in=ids))
    return [
        {
            "name": str(one),
            "started_at": one.started_at,
            "beat_age_s": max(0, round((now - one.beat_at).total_seconds())),
            "is_alive": one.beat_at > alive_since(now),
            "agents": agents.get(one.pk, 0),
            "operators": operators.get(one.pk, 0),
        }
        for one in found
    ]


def _by_process(rows: QuerySet[Any]) -> dict[str, int]:
    return dict(rows.values_list("process_id").annotate(count=Count("pk")).values_list("process_id", "count"))


def _load_queue(rows: type[Sendable], now: datetime) -> dict[str, int]:
    """The waiting rows of a queue, how long its longest due row is overdue, and its failures of a day."""
    waiting = queue_of(rows, now)
    failed = rows._default_manager.filter(queued_at__gt=now - DAY, status=Sendable.Status.FAILED)
    return {"pending": waiting.pending, "overdue_s": round(waiting.overdue_s), "failed": count_of(failed)}


def _count_turns(now: datetime) -> dict[str, Any]:
    """Questions of the last hour, of the last MOST at most: how many, and how they ended, by reason.

    The query selects by id, which grows with time, as there is no index of all turns by time.
    """
    start = Turn.objects.order_by("-pk").values_list("pk", flat=True)[MOST : MOST + 1]
    lately = Turn.objects.filter(pk__gt=next(iter(start), 0), asked_at__gt=now - LATELY)
    ends = lately.order_by().values_list("outcome", "reason").annotate(count=Sum("repeats"))
    counts = {(outcome, reason): count for outcome, reason, count in ends}
    failed = [(reason, counts.get((Outcome.FAILED, reason), 0)) for reason in map(str, TurnFailure)]
    denied = [
        (reason, counts.get((Outcome.DENIED, reason), 0)) for reason in sorted(one.reason for one in REFUSALS)
    ]
    return {
        "asked": sum(counts.values()),
        "completed": sum(count for (outcome, _), count in counts.items() if outcome == Outcome.COMPLETED),
        "failed": failed,
        "failed_total": sum(count for _, count in failed),
        "denied": denied,
        "denied_total": sum(count for _, count in denied),
    }


ACCOUNTS_A_PAGE = 50
FIRST_SORTED_BY = "sessions"
APPS = (of_agents, of_accounts, of_webhooks, of_a2a_bridge, of_agnt, of_evaluations, of_gateway, of_hub)
LIMITS = [limit for app in APPS for limit in vars(app).values() if isinstance(limit, AccountLimit)]
COLUMNS: Mapping[str, tuple[CountedRows, AccountLimit]] = {
    rows.name or limit.name: (rows, limit) for limit in LIMITS for rows in (*limit.counted, *limit.also_shown)
}


@dataclass(frozen=True, slots=True)
class Cell:
    """The part of one limit that one account uses."""

    number: int
    is_bytes: bool
    is_at_limit: bool


@staff_page
def limits(request: HttpRequest, staff: User) -> HttpResponse:
    """The table of limits, and the accounts that use most of one limit."""
    by = request.GET.get("by", "")
    if by not in COLUMNS or not COLUMNS[by][0].is_sorted:
        by = FIRST_SORTED_BY
    page = page_of(request, COLUMNS[by][0].by_account(), ACCOUNTS_A_PAGE)
    columns = [(name, rows.is_sorted) for name, (rows, _) in COLUMNS.items()]
    context = {"limits": LIMITS, "columns": columns, "by": by, "page": page, "accounts": _accounts(page)}
    return render(request, "limits.html", context)


def _accounts(page: Page[Any]) -> list[tuple[str, list[Cell]]]:
    """A row for each account of a page: its login, and a cell for each column."""
    accounts = [account for account, _ in page.object_list]
    logins = dict(User.objects.filter(pk__in=accounts).values_list("pk", "login"))
    used = [(limit, dict(rows.by_account(accounts))) for rows, limit in COLUMNS.values()]
    return [
        (logins.get(account, ""), [_cell(limit, numbers.get(account) or 0) for limit, numbers in used])
        for account in accounts
    ]


def _cell(limit: AccountLimit, number: int) -> Cell:
    return Cell(number, limit.unit == MIB, bool(limit.most) and number >= limit.most)
