"""The audit: every ask of an owner's agents, to read, to search and to take away."""

from operator import itemgetter
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, StreamingHttpResponse

from accounts.admin_site import OwnerScopedAdmin, make_filter, site
from accounts.audit_log import record_reading
from agents.core.explanations import BY_REASON, explain
from agents.models import Agent, Turn
from agents.web.desk.audit import csv_of
from kit.ids import read_row_id
from kit.markdown import to_line
from kit.money import format_usd
from kit.page_tags import describe_duration

SHORT_CHARS = 60


class OwnAgentFilter(admin.SimpleListFilter):
    """By agent, of those whose turns this visitor sees."""

    title = "agent"
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Own agents; deleted ones keep their log."""
        agents = Agent.objects.order_by("handle_key")
        if not request.user.is_staff:
            agents = agents.filter(owner=request.user.pk)
        return [(str(pk), f"@{handle}") for pk, handle in agents.values_list("pk", "handle")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Turn]) -> QuerySet[Turn]:
        """The turns of the chosen one."""
        agent_id = read_row_id(self.value() or "")
        return queryset if agent_id is None else queryset.filter(agent=agent_id)


ReasonFilter = make_filter(
    "reason",
    "why",
    {
        reason: (words, Q(reason=reason))
        for reason, words in sorted(
            ((reason, one.owner) for ends in BY_REASON.values() for reason, one in ends.items() if reason),
            key=itemgetter(1),
        )
    },
)


@admin.register(Turn, site=site)
class TurnAdmin(OwnerScopedAdmin):
    """The record of all turns; no row can be changed."""

    owner_lookup = "agent__owner"  # and, without an agent, session__owner: see owned_by
    list_display = (
        *("asked_at", "asked_whom", "caller_login", "short_question"),
        *("surface", "outcome", "why", "latency", "cost", "repeats"),
    )
    list_filter = ("outcome", ReasonFilter, "surface", OwnAgentFilter, "asked_at")
    list_select_related = ("agent", "session", "caller")
    search_fields = ("question", "caller__login")
    search_help_text = "In questions and callers"
    ordering = ("-asked_at", "-pk")
    actions = ("export_csv",)
    fields = (
        "asked_at",
        "asked_whom",
        "caller_login",
        "question",
        "surface",
        "outcome",
        "reason",
        "latency",
        "repeats",
        "input_tokens",
        "output_tokens",
        "cost",
        "settled_at",
        "chat_id",
    )

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """The list; staff who look at others' questions are written down."""
        if request.user.is_staff and request.method != "POST":
            record_reading(request.user, Turn, f"a list: {request.META.get('QUERY_STRING', '')[:200]}")
        return super().changelist_view(request, extra_context)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Turn | None:
        """One turn; so are they here."""
        turn: Turn | None = super().get_object(request, object_id, from_field)
        if turn is not None and request.user.is_staff:
            record_reading(request.user, Turn, "a question", turn)
        return turn

    def owned_by(self, rows: Any, user_id: int | None) -> QuerySet[Turn]:
        """The turns of the agents and the sessions of one owner."""
        turns: QuerySet[Turn] = rows.owned_by(user_id)
        return turns

    @admin.display(description="caller", ordering="caller__login")
    def caller_login(self, turn: Turn) -> str:
        """The login of the caller."""
        return turn.asker

    @admin.display(description="question")
    def short_question(self, turn: Turn) -> str:
        """How it begins; the turn's page has all of it."""
        return to_line(turn.question, SHORT_CHARS)

    @admin.display(description="agent", ordering="agent")
    def asked_whom(self, turn: Turn) -> str:
        """The agent, or the session itself; a deleted agent has no page to link to."""
        return str(turn.agent or turn.session)

    @admin.display(description="reason", ordering="reason")
    def why(self, turn: Turn) -> str:
        """Why it was refused or failed, in words; the turn's page has the reason as stored."""
        if not turn.reason:
            return self.get_empty_value_display()
        return explain(turn.outcome, turn.reason, depth=turn.depth).owner

    @admin.display(description="latency", ordering="latency_ms")
    def latency(self, turn: Turn) -> str:
        """How long the answer took."""
        return self.get_empty_value_display() if turn.latency_ms is None else describe_duration(turn.latency_ms)

    @admin.display(description="cost", ordering="cost_microusd")
    def cost(self, turn: Turn) -> str:
        """The cost that its agent reported."""
        return self.get_empty_value_display() if turn.cost_microusd is None else format_usd(turn.cost_microusd)

    @admin.action(description="Export the chosen turns as CSV")
    def export_csv(self, request: HttpRequest, queryset: QuerySet[Turn]) -> StreamingHttpResponse:
        """A spreadsheet, newest first, sent as it is read."""
        return csv_of(request, queryset, "turns.csv")
