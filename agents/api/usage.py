"""REST views of the audit of one agent, and of the token usage that programs report."""

from datetime import timedelta
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from django.db.models import Avg, Count, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authn import Identity
from accounts.models import Credential, User
from accounts.paging import read_query
from accounts.rest import Body, ChannelAuthentication, CredentialAuthentication, caller_of, get_one, identity_of
from agents.api.agents import NO_AGENT, show_agent
from agents.api.events import MAX_ID
from agents.api.sessions import get_session
from agents.api.shapes import ApiAgent
from agents.core.figures import top_askers
from agents.models import Agent, Session, TokenUsage, Turn
from agents.models.choices import Outcome
from agents.models.turn import PUBLIC_ASKER
from agents.transcript.access import SessionGone, SessionRole
from agents.transcript.token_usage import store_usage_report
from kit.clock import db_now, iso
from kit.describe import BEARER, CHANNEL_TOKEN, COOKIE, Done, ErrorBody, Time, Uuid
from kit.money import MICRO, to_usd
from kit.rows import RowSource, show

RECENT = 100
OPEN_REASON = "in_progress"
COMPLETED = Q(outcome=Outcome.COMPLETED)


class Window(TypedDict):
    """The time that an audit covers."""

    days: int
    since: Time


class TurnUsage(TypedDict):
    """The usage that an agent reported for one turn; null: not reported."""

    inputTokens: int | None
    outputTokens: int | None
    costUsd: Annotated[float | None, RowSource("cost_microusd", MICRO)]


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
    """A caller among those with the most asks."""

    login: str
    count: int
    lastAt: Time


class Asked(TypedDict):
    """One ask. `routeId` is null for a refusal, `latencyMs` unless it completed, `traceId` for old asks.

    `usage` is null where the agent reported none.
    """

    ts: Annotated[Time, RowSource("asked_at")]
    askerLogin: Annotated[str, RowSource("asker")]
    ok: bool
    latencyMs: int | None
    question: str
    routeId: str | None
    deniedReason: str | None
    traceId: str | None
    usage: Annotated[TurnUsage | None, RowSource("")]


class InboundLog(TypedDict):
    """The audit of one agent."""

    agent: ApiAgent
    window: Window
    summary: Sums
    publicThreadStats: ThreadStats
    topAskers: list[Asker]
    recent: list[Asked]


class WindowQuery(serializers.Serializer[Any]):
    """The days to look back."""

    days = serializers.IntegerField(default=7, min_value=1, max_value=30)


class Inbound(APIView):
    """`/agents/{id}/inbound`"""

    @extend_schema(parameters=[WindowQuery], responses=InboundLog)
    def get(self, request: Request, agent_id: int) -> Response:
        """The window's sums over ended asks, and its newest asks, open ones among them."""
        caller = caller_of(request)
        audited = Agent.objects.audited_by(caller).select_related("owner", "session")
        agent = get_one(audited.filter(pk=agent_id), NO_AGENT)
        days = read_query(WindowQuery, request)["days"]
        since = db_now() - timedelta(days=days)
        asked = Turn.objects.filter(agent=agent, asked_at__gte=since)
        ended, newest = asked.exclude(outcome=None), asked.order_by("-asked_at", "-pk")[:RECENT]
        log: InboundLog = {
            "agent": show_agent(agent, viewer_id=caller.pk),
            "window": {"days": days, "since": iso(since)},
            "summary": _summary(ended),
            "publicThreadStats": {"total": 0, "today": 0, "active": 0},
            "topAskers": [show(Asker, one, login=one.login or PUBLIC_ASKER) for one in top_askers(ended)],
            "recent": [_show_turn(turn) for turn in newest.select_related("caller")],
        }
        return Response(log)


def _summary(ended: QuerySet[Turn]) -> Sums:
    """Sums of ended asks. Refusals that share a row count as often as they were made; see `Sums`."""
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


def _show_turn(turn: Turn) -> Asked:
    ok = turn.outcome == Outcome.COMPLETED
    reported = (turn.input_tokens, turn.output_tokens, turn.cost_microusd)
    return show(
        Asked,
        turn,
        ok=ok,
        latencyMs=turn.latency_ms if ok else None,
        routeId=None if turn.outcome == Outcome.DENIED else turn.chat_id,
        deniedReason=None if ok else (turn.reason or turn.outcome) if turn.outcome else OPEN_REASON,
        **({"usage": None} if reported == (None, None, None) else {}),
    )


HIGHEST_LIMIT = 1000
MAX_MODELS = 100
SNAPSHOTS = 10_000
READERS: list[Any] = [{BEARER: []}, {COOKIE: []}]
REPORTERS = [*READERS, {CHANNEL_TOKEN: []}]
UsageReason = Literal["hourly", "final"]


class UsageRow(TypedDict):
    """Counters of one model in one run of a program, up to one moment."""

    id: int
    sessionId: Annotated[Uuid, RowSource("session.public_id")]
    ccSessionId: str
    ownerId: int
    capturedAt: Time
    model: str
    inputTokens: int
    outputTokens: int
    cacheReadTokens: int
    cacheCreationTokens: int
    reason: UsageReason


class SessionUsage(TypedDict):
    """The rows of one session, oldest first."""

    sessionId: Uuid
    snapshots: list[UsageRow]
    nextCursor: int | None


class UsagePage(TypedDict):
    """Rows, oldest first; with `nextCursor` as `cursor` come the next ones."""

    rows: list[UsageRow]
    nextCursor: int | None


def _counter(source: str) -> serializers.IntegerField:
    return serializers.IntegerField(source=source, default=0, min_value=0, max_value=MAX_ID)


class OneModel(Body):
    """Counters of one model."""

    model = serializers.CharField(max_length=128)
    inputTokens = _counter("input_tokens")
    outputTokens = _counter("output_tokens")
    cacheReadTokens = _counter("cache_read_tokens")
    cacheCreationTokens = _counter("cache_creation_tokens")


class NewUsage(Body):
    """A report."""

    capturedAt = serializers.DateTimeField(source="captured_at")
    ccSessionId = serializers.CharField(source="cc_session_id", max_length=128)
    reason = serializers.ChoiceField(choices=TokenUsage.Reason.choices)
    models = serializers.ListField(child=OneModel(), min_length=1, max_length=MAX_MODELS)


class SpanQuery(serializers.Serializer[Any]):
    """The time of capture, both ends included; `cursor`: rows after this id."""

    since = serializers.DateTimeField(required=False, source="captured_at__gte")
    until = serializers.DateTimeField(required=False, source="captured_at__lte")
    cursor = serializers.IntegerField(default=0, min_value=0, max_value=MAX_ID, source="pk__gt")


class TokenUsageQuery(SpanQuery):
    """The part of the list, and for staff: the owner."""

    limit = serializers.IntegerField(default=HIGHEST_LIMIT, min_value=1)
    ownerId = serializers.IntegerField(required=False, source="owner_id", min_value=0, max_value=MAX_ID)


class ReporterAuthentication(ChannelAuthentication):
    """Accepts channel tokens, but only for POST: an agent's program reports usage and does not read it."""

    def authenticate(self, request: Request) -> tuple[User, Identity] | None:
        """The token's owner; None without a live channel token."""
        return super().authenticate(request) if request.method == "POST" else None


class SessionTokenUsage(APIView):
    """`/sessions/{id}/token-usage`"""

    authentication_classes = [CredentialAuthentication, ReporterAuthentication]

    @extend_schema(parameters=[SpanQuery], responses=SessionUsage, auth=READERS)
    def get(self, request: Request, public_id: UUID) -> Response:
        """The usage that a session's programs reported, oldest first."""
        session = get_session(request, public_id)
        found = TokenUsage.objects.filter(session=session, **read_query(SpanQuery, request))
        rows, cursor = _page(found, SNAPSHOTS)
        answer: SessionUsage = {"sessionId": str(public_id), "snapshots": rows, "nextCursor": cursor}
        return Response(answer)

    @extend_schema(request=NewUsage, responses={201: Done, 429: ErrorBody}, auth=REPORTERS)
    def post(self, request: Request, public_id: UUID) -> Response:
        """Report counters of one run of a program: by the session's owner, or with its channel token."""
        session = _get_reported_session(request, public_id)
        snapshot = dict(NewUsage.read(request).validated_data)
        models = snapshot.pop("models")
        try:
            store_usage_report(session, snapshot, models)
        except SessionGone:
            raise NotFound("no such session") from None
        return Response({"ok": True}, status=201)


class AllTokenUsage(APIView):
    """`/token-usage`"""

    @extend_schema(parameters=[TokenUsageQuery], responses={200: UsagePage})
    def get(self, request: Request) -> Response:
        """The usage that programs of the caller's sessions reported, oldest first; staff may name an owner."""
        wanted, caller = read_query(TokenUsageQuery, request), caller_of(request)
        limit = min(wanted.pop("limit"), HIGHEST_LIMIT)
        if wanted.setdefault("owner_id", caller.pk) != caller.pk and not caller.is_staff:
            raise PermissionDenied("only staff may name another owner")
        rows, cursor = _page(TokenUsage.objects.filter(**wanted), limit)
        answer: UsagePage = {"rows": rows, "nextCursor": cursor}
        return Response(answer)


def _get_reported_session(request: Request, public_id: UUID) -> Session:
    """The session of a report: the caller's own, or one that was registered with their channel token."""
    if identity_of(request).kind != Credential.Kind.CHANNEL:
        return get_session(request, public_id, at_least=SessionRole.OWNER)
    registered = Session.objects.filter(owner=caller_of(request), credential_id=identity_of(request).credential_id)
    return get_one(registered.filter(public_id=public_id), "no such session")


def _page(rows: QuerySet[TokenUsage], limit: int) -> tuple[list[UsageRow], int | None]:
    shown = [show(UsageRow, row) for row in rows.select_related("session").order_by("pk")[: limit + 1]]
    return shown[:limit], shown[limit - 1]["id"] if len(shown) > limit else None
