"""`/desk/costs`: what an owner's agents reported that their answers cost, by agent, caller and UTC day."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Count, QuerySet, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from accounts.models import User
from agents.core.directory import costs_today
from agents.core.figures import MOST_TURNS, WINDOW_DAYS, DayWindow, newest_of, window_of
from agents.models import Agent, Turn
from agents.models.turn import PUBLIC_ASKER
from agents.web.desk import owner_read
from kit.clock import db_now
from kit.concurrency import DOWNLOADS, take_slot
from kit.csv_text import csv_lines, csv_response
from kit.money import decimal_usd

ON_A_PAGE = 50
MOST_LIMITS = 50
GROUPS = {"agent": "agent__handle", "caller": "caller__login", "day": "usage_day"}
SUMS: dict[str, Any] = {
    "asks": Count("pk"),
    "priced": Count("cost_microusd"),
    "cost": Sum("cost_microusd", default=0),
    "input": Sum("input_tokens", default=0),
    "output": Sum("output_tokens", default=0),
}
COLUMNS = ("day", "agent", "caller", "asks", "asks_with_cost", "cost_usd", "input_tokens", "output_tokens")


@owner_read
def costs(request: HttpRequest, owner: User) -> HttpResponse:
    """The page: the sums of the days, and a table by agent, by caller or by day."""
    window, by = _read_window(request), request.GET.get("by", "")
    by = by if by in GROUPS else "agent"
    asked, cut_at = _find_asked(owner, window)
    grouped = asked.order_by().values(GROUPS[by]).annotate(**SUMS)
    ordered = grouped.order_by("-usage_day") if by == "day" else grouped.order_by("-cost", "-asks", GROUPS[by])
    page = Paginator(ordered, ON_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "window": window,
        "choices": WINDOW_DAYS,
        "by": by,
        "groups": list(GROUPS),
        "total": asked.aggregate(**SUMS),
        "rows": [{**row, "of": row[GROUPS[by]]} for row in page],
        "page": page,
        "cut_at": cut_at,
        "most": f"{MOST_TURNS:,}",
        "limits": _load_limits(owner),
        "kept": urlencode({"days": window.count, "by": by}),
    }
    return render(request, "desk/costs.html", context)


@owner_read
def as_csv(request: HttpRequest, owner: User) -> HttpResponseBase:
    """A line for each day, agent and caller; the newest day first."""
    take_slot(request, DOWNLOADS, owner.pk)
    window = _read_window(request)
    asked, _ = _find_asked(owner, window)
    return csv_response(_csv(asked, window.days), f"costs-{window.count}-days.csv")


def _read_window(request: HttpRequest) -> DayWindow:
    """The days, in UTC, that `?days=` asks for: limits count by days in UTC."""
    count = next((each for each in WINDOW_DAYS if request.GET.get("days") == str(each)), WINDOW_DAYS[0])
    return window_of(db_now(), count, str(UTC))


def _find_asked(owner: User, window: DayWindow) -> tuple[QuerySet[Turn], datetime | None]:
    """The asks of these days, and, where there are more than MOST_TURNS, the time since when the newest were made.

    Those of deleted agents too: they were paid for.
    """
    own = Agent.objects.owned_by(owner).values("pk")
    asked = Turn.objects.filter(agent__in=own, asked_at__gte=window.since, usage_day__isnull=False)
    return newest_of(asked, MOST_TURNS)


def _load_limits(owner: User) -> list[tuple[Agent, int]]:
    """The agents with a limit on the cost of a day, and what today cost so far."""
    limited = Agent.objects.kept().owned_by(owner).exclude(daily_limit_microusd=None).order_by("handle_key")
    agents = list(limited[:MOST_LIMITS])
    today = costs_today([agent.pk for agent in agents])
    return [(agent, today.get(agent.pk, 0)) for agent in agents]


def _csv(asked: QuerySet[Turn], days: tuple[date, ...]) -> Iterator[str]:
    """The lines, a day at a time: no query is open between two slices."""
    yield "".join(csv_lines([COLUMNS]))
    for day in reversed(days):
        rows: Any = (
            asked.filter(usage_day=day).order_by().values("agent__handle", "caller__login").annotate(**SUMS)
        )
        yield "".join(
            csv_lines(
                (
                    *(day.isoformat(), row["agent__handle"], row["caller__login"] or PUBLIC_ASKER),
                    *(row["asks"], row["priced"], decimal_usd(row["cost"]) if row["priced"] else ""),
                    *(row["input"], row["output"]),
                )
                for row in rows.order_by("agent__handle", "caller__login")
            )
        )
