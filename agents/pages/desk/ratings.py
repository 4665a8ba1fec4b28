"""`/desk/agents/{id}/ratings`: how callers rated the answers of one agent, day by day, with their notes."""

from dataclasses import dataclass
from datetime import date
from urllib.parse import urlencode

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.models import User
from accounts.pages import user_read
from agents.core import ratings
from agents.core.figures import WINDOW_DAYS, read_window
from agents.core.ratings import RatingSums
from agents.pages.desk import get_own_agent
from kit.clock import db_now
from kit.filters import Filter, Filters, one_of, page_of

ON_A_PAGE = 25
THUMBS = {"down": "Thumbs down", "up": "Thumbs up", "note": "With a note"}
CONDITIONS = {"down": Q(is_good=False), "up": Q(is_good=True), "note": ~Q(note="")}
FILTERS = (Filter("show", one_of(THUMBS), CONDITIONS.__getitem__),)


@dataclass(frozen=True, slots=True)
class RatedDay:
    """The thumbs of one day."""

    day: date
    sums: RatingSums


@user_read
def agent_ratings(request: HttpRequest, owner: User, agent_id: int) -> HttpResponse:
    """The page of ratings of one agent."""
    agent = get_own_agent(agent_id, owner)
    window, filters = read_window(request.GET, db_now()), Filters(request, FILTERS)
    of_days = ratings.sums_by_day(agent, window)
    days = [RatedDay(day, of_days.get(day, RatingSums(0, 0))) for day in window.days]
    context = {
        "agent": agent,
        "window": window,
        "choices": WINDOW_DAYS,
        "sums": ratings.all_sums(agent),
        "of_window": RatingSums(sum(one.sums.good for one in days), sum(one.sums.all for one in days)),
        "days": [one for one in reversed(days) if one.sums.all],
        "page": page_of(request, filters.choose(ratings.ratings_of(agent)), ON_A_PAGE),
        "thumbs": THUMBS,
        "filters": filters,
        "kept": urlencode({"days": window.count, "tz": window.zone, **filters.chosen}),
    }
    return render(request, "desk/ratings.html", context)
