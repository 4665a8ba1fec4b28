"""The audit of one agent on the desk (its questions and how they ended), and `/desk/costs`: reported costs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Length
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.shortcuts import render
from django.views.decorators.gzip import gzip_page

from accounts.models import MAX_LOGIN_CHARS, User
from accounts.pages import owner_form, owner_read
from agents import settings
from agents.core import figures
from agents.core.directory import (
    UnknownLogin,
    block_caller,
    costs_today,
    get_users_by_login,
    queries_today,
    unblock_caller,
)
from agents.core.explanations import OUTCOME_LABELS, explain
from agents.core.figures import MAX_TURNS, WINDOW_DAYS, DayWindow, newest_of, read_window
from agents.core.reasons import Explanation
from agents.models import Agent, CallerBlock, Turn
from agents.models.turn import PUBLIC_ASKER
from agents.pages.availability import states_of
from agents.pages.desk import charts, get_audited_agent
from agents.transcript.replies import StoredReply, find_replies
from kit.clock import db_now, iso
from kit.concurrency import DOWNLOADS, take_slot
from kit.csv_text import csv_lines, csv_response
from kit.filters import Filter, Filters, one_of, page_of, read_words
from kit.money import decimal_usd
from kit.search import filter_by_words

ON_A_PAGE = 25
OPEN = "open"
MAX_SEARCHED = 10_000
MAX_WORDS = 8
MAX_QUERY_CHARS = 200
OUTCOMES = {str(outcome or OPEN): label for outcome, label in OUTCOME_LABELS.items()}


@gzip_page
@owner_form
def audit(request: HttpRequest, owner: User, agent_id: int) -> HttpResponse:
    """The audit page; a POST blocks or unblocks a caller and redirects to the page."""
    agent = get_audited_agent(agent_id, owner)
    is_own = agent.owner_id == owner.pk
    if request.method == "POST":
        if not is_own:
            raise Http404
        _block_or_not(request, owner)
        return HttpResponseRedirect(request.get_full_path())
    window = read_window(request.GET, db_now())
    turns, cut_at = figures.asks_in_window(agent, window)
    askers = figures.top_askers(turns)
    filters = Filters(request, FILTERS)
    chosen, searched_since = _choose(filters, turns)
    recent = chosen.select_related("caller", "session", "problem__caller").order_by("-asked_at", "-pk")
    page = page_of(request, recent, ON_A_PAGE)
    days, latencies = figures.by_day(turns, window), figures.latencies(turns, window)
    context = {
        **_about(agent, window),
        "is_own": is_own,
        "cut_at": cut_at,
        "most": f"{figures.MAX_TURNS:,}",
        "days": days,
        "asks_chart": charts.asks_chart(days),
        "latency_chart": charts.latency_chart(window.days, latencies.days),
        "total": sum(day.total for day in days),
        "answered": sum(day.answered for day in days),
        "latency": latencies.all,
        "latency_days": list(zip(window.days, latencies.days, strict=True)),
        "reasons": [(explain(one.outcome, one.reason), one.reason, one.count) for one in figures.by_reason(turns)],
        "asker_count": figures.count_askers(turns),
        "askers": askers,
        "blocked": _blocked(agent.owner, [one.login for one in askers]),
        "recent": page,
        "asks": _ask_rows(list(page)),
        "outcomes": OUTCOMES,
        "filters": filters,
        "searched_since": searched_since,
        "most_searched": f"{MAX_SEARCHED:,}",
        "max_query_chars": MAX_QUERY_CHARS,
        "kept": urlencode({"days": window.count, "tz": window.zone, **filters.chosen}),
    }
    return render(request, "desk/audit.html", context)


@owner_read
def audit_as_csv(request: HttpRequest, owner: User, agent_id: int) -> HttpResponseBase:
    """The CSV file of the window's asks, filtered as on the page."""
    agent = get_audited_agent(agent_id, owner)
    window = read_window(request.GET, db_now())
    turns = Turn.objects.filter(agent=agent, asked_at__gte=window.since)
    chosen, _ = _choose(Filters(request, FILTERS), turns)
    return csv_of(request, chosen, f"{agent.slug}-{window.count}-days.csv")


@dataclass(frozen=True, slots=True)
class AskRow:
    """One question of the list. `reply`: None if the transcript has no reply, or has it no longer."""

    turn: Turn
    explanation: Explanation
    reply: StoredReply | None
    trace_url: str


def _read_login(given: str) -> str:
    login = given.strip().removeprefix("@")
    return login if login.isprintable() and len(login) <= MAX_LOGIN_CHARS else ""


FILTERS = (
    Filter("outcome", one_of(OUTCOMES), lambda value: Q(outcome=None if value == OPEN else value)),
    Filter("asker", _read_login, lambda value: Q(caller__login__iexact=value)),
    Filter("problem", one_of({"reported": ""}), lambda value: Q(problem__isnull=False)),
    Filter("q", partial(read_words, most=MAX_QUERY_CHARS)),
)


def _choose(filters: Filters, turns: QuerySet[Turn]) -> tuple[QuerySet[Turn], datetime | None]:
    """The turns to list. The words are searched in the newest MAX_SEARCHED turns only; the time is that of
    `newest_of`.
    """
    turns = filters.choose(turns)
    if not (words := filters.chosen.get("q")):
        return turns, None
    turns, since = figures.newest_of(turns, MAX_SEARCHED)
    return filter_by_words(turns, "question", words.split()[:MAX_WORDS]), since


def _ask_rows(turns: Sequence[Turn]) -> list[AskRow]:
    replies, template = find_replies(turns), settings.TRACE_UI_URL
    return [
        AskRow(
            turn,
            explain(turn.outcome, turn.reason, depth=turn.depth),
            replies.get(turn.pk),
            template.replace("{trace_id}", turn.trace_id) if turn.trace_id else "",
        )
        for turn in turns
    ]


def _about(agent: Agent, window: DayWindow) -> dict[str, Any]:
    return {
        "agent": agent,
        "state": states_of([agent.session_id])[agent.session_id],
        "used": queries_today(agent),
        "window": window,
        "choices": WINDOW_DAYS,
        "query": urlencode({"days": window.count, "tz": window.zone}),
    }


def _blocked(owner: User, logins: list[str | None]) -> set[str]:
    blocks = CallerBlock.objects.filter(owner=owner, caller__login__in=[one for one in logins if one])
    return set(blocks.values_list("caller__login", flat=True))


def _block_or_not(request: HttpRequest, owner: User) -> None:
    login = request.POST.get("login", "")
    try:
        [caller] = get_users_by_login([login])
    except UnknownLogin:
        return messages.error(request, "No user has this login.")
    if caller.pk == owner.pk:
        return messages.error(request, "This is you: you cannot block yourself.")
    if request.POST.get("action") == "unblock":
        unblock_caller(owner, caller)
        return messages.success(request, f"@{caller.login} is answered again.")
    block_caller(owner, caller)
    return messages.success(request, f"@{caller.login} is blocked: none of your agents or sessions answers them.")


ROWS_AT_ONCE = 500
SLICE_CHARS = 256 * 1024
COLUMNS: dict[str, Callable[[Turn], object]] = {
    "asked_at": lambda turn: iso(turn.asked_at),
    "agent": lambda turn: turn.asked,
    "caller": lambda turn: turn.asker,
    "surface": lambda turn: turn.surface,
    "outcome": lambda turn: turn.outcome or OPEN,
    "reason": lambda turn: turn.reason,
    "why": lambda turn: explain(turn.outcome, turn.reason, depth=turn.depth).owner if turn.reason else "",
    "latency_ms": lambda turn: turn.latency_ms,
    "repeats": lambda turn: turn.repeats,
    "input_tokens": lambda turn: turn.input_tokens,
    "output_tokens": lambda turn: turn.output_tokens,
    "cost_usd": lambda turn: decimal_usd(turn.cost_microusd),
    "chat_id": lambda turn: turn.chat_id,
    "trace_id": lambda turn: turn.trace_id,
    "question": lambda turn: turn.question,
}


def csv_of(request: Any, turns: QuerySet[Turn], filename: str) -> StreamingHttpResponse:
    """The CSV file of these turns, newest first, as a streaming response. `filename` is plain ASCII.

    Raises:
        TooManyAtOnce: the caller, or the process, has as many downloads under way as it may.
    """
    take_slot(request, DOWNLOADS, cast(User, request.user).pk)
    rows = turns.select_related("agent", "session", "caller").order_by("-pk")
    return csv_response(_csv(rows), filename)


def _csv(turns: QuerySet[Turn]) -> Iterator[str]:
    """The CSV lines, joined to slices. Rows with long questions are read a few at a time."""
    yield "".join(csv_lines([list(COLUMNS)]))
    last: int | None = None
    while sizes := _sizes_of_older(turns, last):
        keys: list[int] = []
        held = 0
        for last, size in sizes:
            keys.append(last)
            held += size
            if held >= SLICE_CHARS:
                yield _joined(turns, keys)
                keys, held = [], 0
        if keys:
            yield _joined(turns, keys)


def _sizes_of_older(turns: QuerySet[Turn], than: int | None) -> list[tuple[int, int]]:
    """The keys of the next rows with the lengths of their questions."""
    rows = turns if than is None else turns.filter(pk__lt=than)
    return list(rows.values_list("pk", Length("question"))[:ROWS_AT_ONCE])


def _joined(turns: QuerySet[Turn], keys: Sequence[int]) -> str:
    """The CSV lines of these rows, without rows that were deleted meanwhile."""
    rows = turns.filter(pk__in=keys)
    return "".join(csv_lines([cell(turn) for cell in COLUMNS.values()] for turn in rows))


COSTS_ON_A_PAGE = 50
MAX_LIMITS = 50
GROUPS = {"agent": "agent__handle", "caller": "caller__login", "day": "usage_day"}
SUMS: dict[str, Any] = {
    "asks": Count("pk"),
    "priced": Count("cost_microusd"),
    "cost": Sum("cost_microusd", default=0),
    "input": Sum("input_tokens", default=0),
    "output": Sum("output_tokens", default=0),
}
COST_COLUMNS = ("day", "agent", "caller", "asks", "asks_with_cost", "cost_usd", "input_tokens", "output_tokens")


@owner_read
def costs(request: HttpRequest, owner: User) -> HttpResponse:
    """The page of costs: the sums of the days, and a table by agent, by caller or by day."""
    window, by = _read_utc_window(request), request.GET.get("by", "")
    by = by if by in GROUPS else "agent"
    asked, cut_at = _find_asked(owner, window)
    grouped = asked.order_by().values(GROUPS[by]).annotate(**SUMS)
    ordered = grouped.order_by("-usage_day") if by == "day" else grouped.order_by("-cost", "-asks", GROUPS[by])
    page = page_of(request, ordered, COSTS_ON_A_PAGE)
    context = {
        "window": window,
        "choices": WINDOW_DAYS,
        "by": by,
        "groups": list(GROUPS),
        "total": asked.aggregate(**SUMS),
        "rows": [{**row, "of": row[GROUPS[by]]} for row in page],
        "page": page,
        "cut_at": cut_at,
        "most": f"{MAX_TURNS:,}",
        "limits": _load_limits(owner),
        "kept": urlencode({"days": window.count, "by": by}),
    }
    return render(request, "desk/costs.html", context)


@owner_read
def costs_as_csv(request: HttpRequest, owner: User) -> HttpResponseBase:
    """The CSV file of costs: a line for each day, agent and caller, the newest day first."""
    take_slot(request, DOWNLOADS, owner.pk)
    window = _read_utc_window(request)
    asked, _ = _find_asked(owner, window)
    return csv_response(_cost_lines(asked, window.days), f"costs-{window.count}-days.csv")


def _read_utc_window(request: HttpRequest) -> DayWindow:
    """The days that `?days=` asks for, in UTC, because limits count by UTC days."""
    return read_window({"days": request.GET.get("days", "")}, db_now())


def _find_asked(owner: User, window: DayWindow) -> tuple[QuerySet[Turn], datetime | None]:
    """The counted asks of these days, at most the newest MAX_TURNS; see `newest_of`.

    The questions of deleted agents are included, because they were paid for.
    """
    own = Agent.objects.owned_by(owner).values("pk")
    asked = Turn.objects.filter(agent__in=own, asked_at__gte=window.since, usage_day__isnull=False)
    return newest_of(asked, MAX_TURNS)


def _load_limits(owner: User) -> list[tuple[Agent, int]]:
    """The agents with a daily limit on costs, each with today's cost so far."""
    limited = Agent.objects.kept().owned_by(owner).exclude(daily_limit_microusd=None).order_by("handle_key")
    agents = list(limited[:MAX_LIMITS])
    today = costs_today([agent.pk for agent in agents])
    return [(agent, today.get(agent.pk, 0)) for agent in agents]


def _cost_lines(asked: QuerySet[Turn], days: tuple[date, ...]) -> Iterator[str]:
    """The CSV lines, one day at a time, so that no query is open between two slices."""
    yield "".join(csv_lines([COST_COLUMNS]))
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
