"""The admin of owners: their agents (publish, change, halt, delete) and the callers they block."""

from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import Exists, ForeignKey, OuterRef, Q, QuerySet
from django.forms import Field
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.formats import localize

from accounts.admin_site import OwnerScopedAdmin, make_filter, site
from accounts.models import User
from accounts.quotas import QuotaExceeded
from agents.core import directory, halt_rules
from agents.core.agent_moves import NotMovable
from agents.core.card_settings import EDITABLE
from agents.core.directory import block_caller, load_agent_activity
from agents.core.halt_rules import HaltSubject
from agents.models import Agent, CallerBlock, Halt
from agents.models.agent import AgentActivity
from agents.models.choices import CHANNEL_LINK
from agents.pages.forms import LoginField, PresentAgentForm, make_new_agent_form

NAMED_CALLERS = ("allowed_logins", "caller_budgets")
ACTIVITY_FIELDS = ("is_online", "today", "all_time", "last_asked")
IS_HALTED = Exists(Halt.objects.active().filter(agent=OuterRef("pk")))
StateFilter = make_filter(
    "state",
    "state",
    {
        "published": ("Published", Q(status=Agent.Status.PUBLISHED)),
        "draft": ("Draft", Q(status=Agent.Status.DRAFT)),
        "halted": ("Halted", Q(is_halted=True)),
    },
)
AccessFilter = make_filter(
    "who may ask",
    "access",
    {
        Agent.Access.PUBLIC: ("All users", Q(access=Agent.Access.PUBLIC)),
        Agent.Access.LIMITED: ("Named users", Q(access=Agent.Access.LIMITED)),
        Agent.Access.PRIVATE: ("The owner", Q(access=Agent.Access.PRIVATE)),
    },
)


class AgentChangeList(ChangeList):
    """A page of agents with their activity, which takes three queries for all."""

    def get_results(self, request: HttpRequest) -> None:
        """Fetch the page, then the activity."""
        super().get_results(request)
        self.result_list = list(self.result_list)
        load_agent_activity(self.result_list)


@admin.register(Agent, site=site)
class AgentAdmin(OwnerScopedAdmin):
    """Kept agents. Handle and owner are fixed at publishing; deleting is soft."""

    owner_lookup = "owner"
    writes = ("add", "change", "delete")
    list_display = ("handle", "name", "state", "access", "is_online", "today", "last_asked")
    list_filter = (StateFilter, AccessFilter, "isolated")
    list_select_related = ("session",)
    search_fields = ("handle", "name", "tagline")
    ordering = ("handle_key",)
    actions = ("publish", "unpublish", "halt", "resume")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        """The agents without deleted ones, which only the record of turns names."""
        agents: QuerySet[Agent] = super().get_queryset(request).filter(deleted_at=None)
        return agents.annotate(is_halted=IS_HALTED)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list that fetches activity."""
        return AgentChangeList

    # One agent, by the desk's forms.

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The form of a new agent offers the user's sessions; a present agent may move to another session."""
        form = PresentAgentForm if change else make_new_agent_form(cast(User, request.user))
        return super().get_form(request, obj, change, **{**kwargs, "form": form})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """The settings; for a present agent also its handle, session and figures."""
        if obj is None:
            return ("session", "slug", *EDITABLE, *NAMED_CALLERS)
        session = "session" if obj.session.link == CHANNEL_LINK else "session_name"
        return (
            "handle",
            session,
            *ACTIVITY_FIELDS,
            *EDITABLE,
            *NAMED_CALLERS,
            "created_at",
            "published_at",
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """The fields that are not settings."""
        return () if obj is None else ("handle", "session_name", *ACTIVITY_FIELDS, "created_at", "published_at")

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Publish a session, unless another request just took its handle, or the owner has too many agents."""
        try:
            return super().add_view(request, *args, **kwargs)
        except (directory.HandleTaken, QuotaExceeded) as refused:
            self.message_user(request, f"Not published: {refused}.", messages.ERROR)
            return HttpResponseRedirect(reverse("admin:agents_agent_add"))

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """Save, unless the agent cannot move to the chosen session now."""
        try:
            return super().change_view(request, object_id, *args, **kwargs)
        except NotMovable as refused:
            self.message_user(request, f"Not saved: {refused}.", messages.ERROR)
            return HttpResponseRedirect(reverse("admin:agents_agent_change", args=[object_id]))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write through the form, as the desk does."""
        if change:
            form.revise()
            return
        obj.pk = form.publish().agent.pk
        obj.refresh_from_db()

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Django's message, and one more for a draft."""
        response = super().response_add(request, obj, post_url_continue)
        self._warn_of_draft(request, obj)
        return response

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Django's message, and one more for a draft."""
        response = super().response_change(request, obj)
        self._warn_of_draft(request, obj)
        return response

    def _warn_of_draft(self, request: HttpRequest, agent: Agent) -> None:
        if agent.status == Agent.Status.DRAFT:
            self.message_user(request, f"{agent} is a draft: it cannot be asked yet.", messages.WARNING)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Free the handle; the log stays."""
        obj.soft_delete()

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        """Free the handles of several agents; the log stays."""
        for agent in queryset:
            agent.soft_delete()

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The rows that deleting would remove: the agents alone, no row that refers to them."""
        agents = list(objs)
        return [str(agent) for agent in agents], {"agents": len(agents)}, set(), []

    # Actions.

    @admin.action(description="Publish the chosen agents")
    def publish(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        """Open agents to callers."""
        self._set_status(request, queryset, Agent.Status.PUBLISHED)

    @admin.action(description="Unpublish the chosen agents")
    def unpublish(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        """Close agents to callers from the next request on."""
        self._set_status(request, queryset, Agent.Status.DRAFT)

    def _set_status(self, request: HttpRequest, queryset: QuerySet[Agent], status: Agent.Status) -> None:
        for agent in queryset:
            directory.revise_agent(agent.pk, {"status": status})
        self.message_user(request, f"{len(queryset)} set to {status.label.lower()}.", messages.SUCCESS)

    @admin.action(description="Halt the chosen agents")
    def halt(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        """Refuse new questions, end open ones and close the connections, as owner of an agent or as staff."""
        user = cast(User, request.user)
        for agent in queryset:
            subject = HaltSubject(Halt.Kind.AGENT, agent=agent)
            halt_rules.halt_subject(subject, by=user, by_staff=agent.owner_id != user.pk)
        self.message_user(request, f"{len(queryset)} halted.", messages.SUCCESS)

    @admin.action(description="Resume the chosen agents")
    def resume(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        """Lift their halts; one that staff made is lifted by staff alone."""
        user = cast(User, request.user)
        halts = Halt.objects.active().filter(agent__in=list(queryset))
        count = halt_rules.lift_halts(halts if user.is_staff else halts.filter(by_staff=False), by=user)
        self.message_user(request, f"Halts lifted: {count}.", messages.SUCCESS)
        if halts.exists():
            text = "An administrator made the other halts and has to lift them."
            self.message_user(request, text, messages.WARNING)

    # Columns.

    @admin.display(description="state", ordering="status")
    def state(self, agent: Agent) -> str:
        """Draft, published or halted."""
        return "halted" if agent.is_halted else agent.status  # type: ignore[attr-defined]

    @admin.display(description="online", boolean=True)
    def is_online(self, agent: Agent) -> bool:
        """True if a question would reach the agent now."""
        return _get_activity(agent).is_online

    @admin.display(description="queries today / budget")
    def today(self, agent: Agent) -> str:
        """The asks of today, and the daily budget."""
        return f"{_get_activity(agent).queries_today} / {agent.daily_budget}"

    @admin.display(description="queries ever")
    def all_time(self, agent: Agent) -> int:
        """The number of asks of all days."""
        return _get_activity(agent).queries_all_time

    @admin.display(description="last asked")
    def last_asked(self, agent: Agent) -> str | None:
        """The time of the last ask that was admitted."""
        last = _get_activity(agent).last_query_at
        return localize(last) if last else None

    @admin.display(description="session")
    def session_name(self, agent: Agent) -> str:
        """The session that answers; sessions have no page for owners here."""
        return f"{agent.session} on {agent.session.host}" if agent.session.host else str(agent.session)


@admin.register(CallerBlock, site=site)
class CallerBlockAdmin(OwnerScopedAdmin):
    """The callers that an owner does not answer: added and deleted, never changed."""

    owner_lookup = "owner"
    writes = ("add", "delete")
    list_display = ("caller", "owner", "created_at")
    list_select_related = ("caller", "owner")
    search_fields = ("caller__login",)
    ordering = ("-pk",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """A new block names its caller; its owner is the user who adds it."""
        return ("caller",) if obj is None else ("caller", "owner", "created_at")

    def formfield_for_foreignkey(  # type: ignore[override]
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Field:
        """The caller by login, and not the user themselves."""
        return LoginField(
            label="Login",
            max_length=64,
            excluded=cast(User, request.user),
            help_text="Their asks of your agents and sessions are refused.",
        )

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Block as the REST API does; a caller who is blocked already stays blocked."""
        made, _ = block_caller(cast(User, request.user), form.cleaned_data["caller"])
        obj.pk = made.pk
        obj.refresh_from_db()


def _get_activity(agent: Agent) -> AgentActivity:
    """The numbers that the list fetched, or those of a single agent."""
    if not hasattr(agent, "activity"):
        load_agent_activity([agent])
    return agent.activity
