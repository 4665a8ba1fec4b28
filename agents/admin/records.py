"""The Django admin of agents: the tables of staff, and the audit, which owners read, search and export."""

from operator import itemgetter
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, StreamingHttpResponse

from accounts.admin_site import OwnerScopedAdmin, make_filter, site
from accounts.audit_log import record_reading
from accounts.models import User
from agents.core import halt_rules
from agents.core.explanations import BY_REASON, explain
from agents.core.failure_groups import describe_group
from agents.core.halt_rules import HaltSubject, NoSuchSubject, get_halt_subject
from agents.models import (
    Agent,
    Connection,
    DailyUsage,
    FailureGroup,
    Halt,
    ProblemNote,
    Process,
    Rating,
    RemoteServer,
    Session,
    Turn,
)
from agents.models.halt import REASON_CHARS
from agents.pages.desk.audit import csv_of
from kit.ids import read_row_id
from kit.markdown import to_line
from kit.money import format_usd
from kit.page_tags import describe_duration

HaltFilter = make_filter(
    "state", "state", {"active": ("Active", Q(lifted_at=None)), "lifted": ("Lifted", Q(lifted_at__isnull=False))}
)
SessionFilter = make_filter(
    "state",
    "state",
    {"current": ("Current", Q(archived_at=None)), "archived": ("Archived", Q(archived_at__isnull=False))},
)
BreakerFilter = make_filter(
    "calls",
    "calls",
    {"called": ("Called", Q(retry_at=None)), "paused": ("Paused after failures", Q(retry_at__isnull=False))},
)


class HaltForm(forms.ModelForm):  # type: ignore[type-arg]
    """The agent or the user to halt, by name."""

    kind = forms.ChoiceField(choices=Halt.Kind.choices)
    name = forms.CharField(max_length=128, help_text="The agent's handle, or the login of the owner or caller.")
    reason = forms.CharField(max_length=REASON_CHARS, required=False, help_text="For the record.")

    def clean_name(self) -> HaltSubject:
        """The agent or user of this name."""
        try:
            return get_halt_subject(self.cleaned_data.get("kind", ""), self.cleaned_data["name"])
        except NoSuchSubject as unknown:
            raise forms.ValidationError(f"There is {unknown}.") from None


@admin.register(Halt, site=site)
class HaltAdmin(OwnerScopedAdmin):
    """The kill switch and the record of its use: halts are added and lifted, never changed or deleted."""

    writes = ("add",)
    list_display = ("whom", "kind", "by_staff", "reason", "made_by", "made_at", "lifted_by", "lifted_at")
    list_select_related = ("agent", "user", "made_by", "lifted_by")
    list_filter = (HaltFilter, "kind")
    search_fields = ("agent__handle", "user__login", "reason")
    ordering = ("-pk",)
    actions = ("lift",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """The fields of a new halt; later also the fields of its end."""
        return ("kind", "name", "reason") if obj is None else self.list_display

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The form of a new halt asks for the name of an agent or a user."""
        return super().get_form(request, obj, change, **(kwargs if change else {**kwargs, "form": HaltForm}))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Halt by the same function as the native API; a halt that exists already is fine."""
        subject, reason = form.cleaned_data["name"], form.cleaned_data["reason"]
        made, _ = halt_rules.halt_subject(subject, by=cast(User, request.user), by_staff=True, reason=reason)
        obj.pk = made.pk
        obj.refresh_from_db()

    @admin.action(description="Lift the chosen halts")
    def lift(self, request: HttpRequest, queryset: QuerySet[Halt]) -> None:
        """Lift halts at once; the rows stay."""
        chosen = Halt.objects.filter(pk__in=queryset.values("pk"))
        count = halt_rules.lift_halts(chosen, by=cast(User, request.user))
        self.message_user(request, f"{count} lifted.", messages.SUCCESS)


@admin.register(Session, site=site)
class SessionAdmin(OwnerScopedAdmin):
    """Agents that registered."""

    list_display = ("routing_name", "owner", "host", "cwd", "started_at", "last_seen_at", "archived_at")
    list_select_related = ("owner",)
    list_filter = (SessionFilter,)
    search_fields = ("routing_name", "owner__login", "host", "cwd")
    ordering = ("-last_seen_at",)


@admin.register(RemoteServer, site=site)
class RemoteServerAdmin(OwnerScopedAdmin):
    """Remote A2A servers that are agents; their credentials are never shown."""

    list_display = (
        "card_url",
        "session",
        "auth_scheme",
        "is_pinned",
        "tells_caller",
        "requires_task",
        "retry_at",
        "opens",
        "last_failure",
        "card_refusal",
    )
    list_select_related = ("session",)
    list_filter = (BreakerFilter,)
    search_fields = ("card_url", "session__owner__login")
    fields = list_display
    ordering = ("card_url", "pk")

    @admin.display(description="pinned keys", boolean=True)
    def is_pinned(self, server: RemoteServer) -> bool:
        """True if the server's card has to be signed."""
        return bool(server.card_keys)


@admin.register(Process, site=site)
class ProcessAdmin(OwnerScopedAdmin):
    """Hub processes and their heartbeats."""

    list_display = ("id", "host", "pid", "started_at", "beat_at")
    ordering = ("-beat_at",)


@admin.register(Connection, site=site)
class ConnectionAdmin(OwnerScopedAdmin):
    """The sessions that are connected, each with its process."""

    list_display = ("id", "session", "process", "credential", "connected_at")
    list_select_related = ("session", "process", "credential")
    ordering = ("-pk",)


@admin.register(ProblemNote, site=site)
class ProblemNoteAdmin(OwnerScopedAdmin):
    """The notes of callers about asks; no row can be changed."""

    owner_lookup = "agent__owner"
    list_display = ("reported_at", "agent", "caller", "text")
    list_select_related = ("agent", "caller", "turn")
    list_filter = ("reported_at",)
    search_fields = ("text", "caller__login", "agent__handle")
    fields = (*list_display, "chat_id")
    readonly_fields = ("chat_id",)
    ordering = ("-pk",)

    @admin.display(description="ask")
    def chat_id(self, note: ProblemNote) -> str:
        """The id of the ask, whose page is `/questions/{id}`."""
        return note.turn.chat_id


@admin.register(Rating, site=site)
class RatingAdmin(OwnerScopedAdmin):
    """The ratings of answers; no row can be changed."""

    owner_lookup = "agent__owner"
    list_display = ("rated_at", "agent", "caller", "is_good", "note")
    list_select_related = ("agent", "caller", "turn")
    list_filter = ("is_good", "rated_at")
    search_fields = ("note", "caller__login", "agent__handle")
    fields = (*list_display, "chat_id")
    readonly_fields = ("chat_id",)
    ordering = ("-pk",)

    @admin.display(description="ask")
    def chat_id(self, rating: Rating) -> str:
        """The id of the ask, whose page is `/questions/{id}`."""
        return rating.turn.chat_id


@admin.register(DailyUsage, site=site)
class DailyUsageAdmin(OwnerScopedAdmin):
    """The asks that agents accepted, day by day."""

    list_display = ("day", "agent", "queries")
    list_select_related = ("agent",)
    list_filter = ("day",)
    search_fields = ("agent__handle",)
    ordering = ("-day", "agent")


@admin.register(FailureGroup, site=site)
class FailureGroupAdmin(OwnerScopedAdmin):
    """The failures of agents, in groups; owners change their states on the desk."""

    owner_lookup = "agent__owner"
    list_display = ("shown_text", "agent", "reason", "state", "count", "first_at", "last_at", "reopened_at")
    list_select_related = ("agent",)
    list_filter = ("state", "reason")
    search_fields = ("agent__handle", "shape")
    fields = (*list_display, "resolved_at")
    ordering = ("-last_at", "-pk")

    @admin.display(description="failure")
    def shown_text(self, group: FailureGroup) -> str:
        """The shape of the texts, or what the reason means."""
        return to_line(describe_group(group), SHORT_CHARS)


SHORT_CHARS = 60


class OwnAgentFilter(admin.SimpleListFilter):
    """Filters turns by an agent, among the agents whose turns this visitor sees."""

    title = "agent"
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The visitor's own agents, also deleted ones, whose log is kept; all agents for staff."""
        agents = Agent.objects.order_by("handle_key")
        if not request.user.is_staff:
            agents = agents.filter(owner=request.user.pk)
        return [(str(pk), f"@{handle}") for pk, handle in agents.values_list("pk", "handle")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Turn]) -> QuerySet[Turn]:
        """The turns of the chosen agent."""
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
        """The list of turns. A member of the staff who looks at it is written into the audit log."""
        if request.user.is_staff and request.method != "POST":
            record_reading(request.user, Turn, f"a list: {request.META.get('QUERY_STRING', '')[:200]}")
        return super().changelist_view(request, extra_context)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Turn | None:
        """One turn. A member of the staff who looks at it is written into the audit log."""
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
        """The beginning of the question; the turn's page has the whole."""
        return to_line(turn.question, SHORT_CHARS)

    @admin.display(description="agent", ordering="agent")
    def asked_whom(self, turn: Turn) -> str:
        """The agent, or the session itself; a deleted agent has no page to link to."""
        return str(turn.agent or turn.session)

    @admin.display(description="reason", ordering="reason")
    def why(self, turn: Turn) -> str:
        """The reason of a refusal or failure, in words; the turn's page has it as stored."""
        if not turn.reason:
            return self.get_empty_value_display()
        return explain(turn.outcome, turn.reason, depth=turn.depth).owner

    @admin.display(description="latency", ordering="latency_ms")
    def latency(self, turn: Turn) -> str:
        """The time that the answer took."""
        return self.get_empty_value_display() if turn.latency_ms is None else describe_duration(turn.latency_ms)

    @admin.display(description="cost", ordering="cost_microusd")
    def cost(self, turn: Turn) -> str:
        """The cost that the agent reported."""
        return self.get_empty_value_display() if turn.cost_microusd is None else format_usd(turn.cost_microusd)

    @admin.action(description="Export the chosen turns as CSV")
    def export_csv(self, request: HttpRequest, queryset: QuerySet[Turn]) -> StreamingHttpResponse:
        """A spreadsheet, newest first, sent as it is read."""
        return csv_of(request, queryset, "turns.csv")
