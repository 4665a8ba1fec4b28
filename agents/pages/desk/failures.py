"""`/desk/failures`: the failures of an owner's agents in groups, and the page of one group."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from django.contrib import messages
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.gzip import gzip_page

from accounts.models import User
from accounts.pages import owner_form, owner_page
from agents.core.failure_groups import count_callers, describe_group, explain_group, first_callers, set_state
from agents.core.reasons import Explanation
from agents.models import FailureDay, FailureGroup, Turn
from agents.models.agent import Agent
from agents.pages.desk import charts
from kit.clock import db_now
from kit.filters import Filter, Filters, page_of

ON_A_PAGE = 25
EXAMPLES = 20
DAYS = 30
MAX_HANDLE_CHARS = 160
MAX_AGENTS_LISTED = 100
ALL = "all"
State = FailureGroup.State
STATES = {State.OPEN.value: "open", State.RESOLVED.value: "resolved", State.IGNORED.value: "ignored"}
SAID = {
    State.OPEN: "The failure is open.",
    State.RESOLVED: "The failure is resolved. It opens again when it occurs again.",
    State.IGNORED: "The failure is ignored: the hub goes on counting it, and tells you no more.",
}


@dataclass(frozen=True, slots=True)
class FailureRow:
    """One group of the list, in words."""

    group: FailureGroup
    text: str
    explanation: Explanation
    callers: int


def _read_state(given: str) -> str:
    return given if given in STATES or given == ALL else State.OPEN


def _read_handle(given: str) -> str:
    handle = given.strip().removeprefix("@")
    return handle if handle.isprintable() and len(handle) <= MAX_HANDLE_CHARS else ""


FILTERS = (
    Filter("agent", _read_handle, lambda value: Q(agent__handle_key=value.lower())),
    Filter("state", _read_state, lambda value: Q() if value == ALL else Q(state=value)),
)


@owner_page
def failures(request: HttpRequest, owner: User) -> HttpResponse:
    """The groups of the owner's agents, the one that occurred last first. `?agent=`, `?state=`, `?page=`."""
    filters = Filters(request, FILTERS)
    own = FailureGroup.objects.owned_by(owner)
    page = page_of(request, filters.choose(own).select_related("agent").order_by("-last_at", "-pk"), ON_A_PAGE)
    of_agent = filters.chosen.get("agent", "")
    counted = own.filter(agent__handle_key=of_agent.lower()) if of_agent else own
    counts = dict(counted.order_by().values_list("state").annotate(Count("pk")))
    failing = Agent.objects.kept().owned_by(owner).filter(failure_groups__isnull=False).distinct()
    context = {
        "filters": filters,
        "page": page,
        "rows": _rows(list(page)),
        "states": [(value, name, counts.get(value, 0)) for value, name in STATES.items()],
        "total": sum(counts.values()),
        "handles": list(failing.order_by("handle_key").values_list("handle", flat=True)[:MAX_AGENTS_LISTED]),
    }
    return render(request, "desk/failures.html", context)


@gzip_page
@owner_form
def failure(request: HttpRequest, owner: User, failure_id: int) -> HttpResponse:
    """One group: its days, callers and last asks. A POST with `state` changes its state."""
    group = _get_own(failure_id, owner)
    if request.method == "POST":
        state = request.POST.get("state", "")
        if state in STATES and set_state(group.pk, state):
            messages.success(request, SAID[State(state)])
        return HttpResponseRedirect(reverse("desk-failure", args=[group.pk]))
    today = db_now().date()
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    counts = dict(FailureDay.objects.filter(group=group, day__gte=days[0]).values_list("day", "count"))
    amounts = [counts.get(day, 0) for day in days]
    turns = Turn.objects.filter(failure_group=group).select_related("caller", "session").order_by("-pk")
    context = {
        "group": group,
        "row": _rows([group])[0],
        "since_open": group.count - group.count_before,
        "chart": _draw(days, amounts),
        "days": [(day, amount) for day, amount in zip(days, amounts, strict=True) if amount][::-1],
        "top_callers": first_callers(group),
        "examples": [(turn, _address(turn)) for turn in turns[:EXAMPLES]],
        "most": EXAMPLES,
    }
    return render(request, "desk/failure.html", context)


def _get_own(failure_id: int, owner: User) -> FailureGroup:
    """A group of this owner's agents; raises Http404 for others."""
    own = FailureGroup.objects.owned_by(owner).select_related("agent")
    group: FailureGroup | None = own.filter(pk=failure_id).first()
    if group is None:
        raise Http404
    return group


def _rows(groups: Sequence[FailureGroup]) -> list[FailureRow]:
    callers = count_callers(groups)
    return [FailureRow(one, describe_group(one), explain_group(one), callers.get(one.pk, 0)) for one in groups]


def _draw(days: Sequence[date], amounts: Sequence[int]) -> charts.Chart:
    return charts.amount_chart(
        days, amounts, kind="failed", about="Failures of this kind.", describe=lambda count: f"{count:,}"
    )


def _address(turn: Turn) -> str:
    """The address of the ask's page."""
    try:
        return reverse("question", args=[turn.chat_id])
    except NoReverseMatch:
        return ""
