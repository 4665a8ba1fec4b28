"""The audit of one agent, for its owner: who asked what, and what became of it."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, TypedDict

from django.db.models import Avg, Count, Max, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import read_query
from accounts.rest import caller_of
from agents.api.agents import get_own_agent
from agents.api.serializers import show_agent
from agents.api.shapes import ApiAgent
from agents.models import Turn
from agents.models.choices import Outcome
from agents.models.turn import PUBLIC_ASKER
from kit.clock import db_now, iso
from kit.describe import Time
from kit.money import to_usd, to_usd_or_none
from kit.rows import show

RECENT = 100
TOP_ASKERS = 10
OPEN_REASON = "in_progress"
COMPLETED = Q(outcome=Outcome.COMPLETED)


class Window(TypedDict):
    """How far an audit looks back."""

    days: int
    since: Time


class TurnUsage(TypedDict):
    """The usage that an agent reported for one turn; null: not reported."""

    inputTokens: int | None
    outputTokens: int | None
    costUsd: float | None


class Sums(TypedDict):
    """Sums over a window's ended asks; `denied` counts every ended ask that did not complete.

    `costUsd`: of the asks whose agent reported a cost; `costReported` is how many they are.
    """

    total: int
    ok: int
    denied: int
    avgLatencyMs: int | None
    distinctAskers: int
    costUsd: float
    costReported: int


class ThreadStats(TypedDict):
    """Anonymous threads, which this hub does not offer yet."""

    total: int
    today: int
    active: int


class Asker(TypedDict):
    """One of those who asked most."""

    login: str
    count: int
    lastAt: Time


class Asked(TypedDict):
    """One ask. `routeId` is null for a refusal, `latencyMs` unless it completed, `traceId` for old asks.

    `usage` is null where the agent reported none.
    """

    ts: Time
    askerLogin: str
    ok: bool
    latencyMs: int | None
    question: str
    routeId: str | None
    deniedReason: str | None
    traceId: str | None
    usage: TurnUsage | None


class InboundLog(TypedDict):
    """The audit of one agent."""

    agent: ApiAgent
    window: Window
    summary: Sums
    publicThreadStats: ThreadStats
    topAskers: list[Asker]
    recent: list[Asked]


class WindowQuery(serializers.Serializer[Any]):
    """How far to look back."""

    days = serializers.IntegerField(default=7, min_value=1, max_value=30)


class Inbound(APIView):
    """`/agents/{id}/inbound`"""

    @extend_schema(parameters=[WindowQuery], responses=InboundLog)
    def get(self, request: Request, agent_id: int) -> Response:
        """The window's sums over ended asks, and its newest asks, open ones among them."""
        agent = get_own_agent(agent_id, caller_of(request))
        days = read_query(WindowQuery, request)["days"]
        since = db_now() - timedelta(days=days)
        asked = Turn.objects.filter(agent=agent, asked_at__gte=since)
        ended = asked.exclude(outcome=None)
        log: InboundLog = {
            "agent": show_agent(agent, viewer_id=agent.owner_id),
            "window": {"days": days, "since": iso(since)},
            "summary": _summary(ended),
            "publicThreadStats": {"total": 0, "today": 0, "active": 0},
            "topAskers": _top_askers(ended),
            "recent": _recent(asked.select_related("caller").order_by("-asked_at", "-pk")[:RECENT]),
        }
        return Response(log)


def _summary(ended: QuerySet[Turn]) -> Sums:
    """Refusals that share a row count as often as they were made; `denied`: ended asks that did not complete."""
    sums = ended.aggregate(
        total=Sum("repeats", default=0),
        ok=Sum("repeats", filter=COMPLETED, default=0),
        average=Avg("latency_ms", filter=COMPLETED),
        askers=Count(Coalesce("caller_id", 0), distinct=True),
        cost=Sum("cost_microusd", default=0),
        costs=Count("cost_microusd"),
    )
    return {
        "total": sums["total"],
        "ok": sums["ok"],
        "denied": sums["total"] - sums["ok"],
        "avgLatencyMs": None if sums["average"] is None else round(sums["average"]),
        "distinctAskers": sums["askers"],
        "costUsd": to_usd(sums["cost"]),
        "costReported": sums["costs"],
    }


def _top_askers(ended: QuerySet[Turn]) -> list[Asker]:
    askers = ended.values("caller__login").annotate(count=Sum("repeats"), last=Max("asked_at"))
    return [
        {"login": row["caller__login"] or PUBLIC_ASKER, "count": row["count"], "lastAt": iso(row["last"])}
        for row in askers.order_by("-count", "caller__login")[:TOP_ASKERS]
    ]


def _recent(turns: Iterable[Turn]) -> list[Asked]:
    return [_show(turn) for turn in turns]


def _show(turn: Turn) -> Asked:
    ok = turn.outcome == Outcome.COMPLETED
    return {
        "ts": iso(turn.asked_at),
        "askerLogin": turn.asker,
        "ok": ok,
        "latencyMs": turn.latency_ms if ok else None,
        "question": turn.question,
        "routeId": None if turn.outcome == Outcome.DENIED else turn.chat_id,
        "deniedReason": None if ok else _reason(turn),
        "traceId": turn.trace_id or None,
        "usage": _show_usage(turn),
    }


def _show_usage(turn: Turn) -> TurnUsage | None:
    if turn.input_tokens is None and turn.output_tokens is None and turn.cost_microusd is None:
        return None
    return show(TurnUsage, turn, costUsd=to_usd_or_none(turn.cost_microusd))


def _reason(turn: Turn) -> str:
    return OPEN_REASON if turn.outcome is None else turn.reason or turn.outcome
