"""An owner's agents: publish, unpublish, budgets."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.contrib.admin.widgets import AdminTextareaWidget
from django.db.models import Model, QuerySet, TextField
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.formats import date_format

from accounts.admin_site import OwnedAdmin, site
from accounts.quotas import QuotaExceeded
from agents.core import publishing
from agents.core.directory import Facts, facts_of
from agents.models import Agent
from agents.web.forms import EDITABLE, AgentForm, NewAgentForm

NAMED = ("allowed_logins", "caller_budgets")
FACTS = ("is_online", "today", "all_time", "last_asked")


class AgentList(ChangeList):
    """A page of agents that brings their facts along, in four queries for all."""

    def get_results(self, request: HttpRequest) -> None:
        """Fetch the page, then what changes by the minute."""
        super().get_results(request)
        agents = list(self.result_list)
        facts = facts_of(agents)
        for agent in agents:
            agent.facts = facts[agent.pk]
        self.result_list = agents


@admin.register(Agent, site=site)
class AgentAdmin(OwnedAdmin):
    """Kept agents of this owner. Session, handle and owner are fixed at publishing."""

    list_display = ("handle", "name", "status", "access", "isolated", *FACTS, "concurrency_cap")
    list_filter = ("status", "access", "isolated")
    list_select_related = ("session",)
    search_fields = ("handle", "name", "tagline")
    ordering = ("handle_key",)
    actions = ("publish", "unpublish")
    formfield_overrides = {TextField: {"widget": AdminTextareaWidget(attrs={"rows": 5})}}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        """Deleted ones are history: their turns stay, they are managed no more."""
        return super().get_queryset(request).filter(deleted_at=None)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list that knows facts."""
        return AgentList

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Everybody may publish a session of theirs."""
        return True

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whatever one sees here."""
        return True

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whatever one sees here; deleting is soft."""
        return True

    # One agent.

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """A new agent chooses among the visitor's sessions; a present one has its place."""
        if change:
            return super().get_form(request, obj, change, **{**kwargs, "form": AgentForm})
        form = super().get_form(request, obj, change, **{**kwargs, "form": NewAgentForm})
        return type("VisitorsNewAgentForm", (form,), {"owner": request.user})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """What one fills in, below what is."""
        if obj is None:
            return ("session", "slug", *EDITABLE, *NAMED)
        return ("handle", "session_name", *FACTS, *EDITABLE, *NAMED, "created_at", "published_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Everything that is not a setting."""
        return () if obj is None else ("handle", "session_name", *FACTS, "created_at", "published_at")

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Publish a session; who loses a race for its handle is told so."""
        try:
            return super().add_view(request, *args, **kwargs)
        except (publishing.Taken, QuotaExceeded) as refused:
            self.message_user(request, f"Not published: {refused}.", messages.ERROR)
            return HttpResponseRedirect(reverse("admin:agents_agent_add"))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Through the same verbs as the native API."""
        chosen, changed = form.cleaned_data, form.changed_data
        details = {field: chosen[field] for field in EDITABLE if not change or field in changed}
        allowed = chosen["allowed_logins"] if not change or "allowed_logins" in changed else None
        budgets = chosen["caller_budgets"] if not change or "caller_budgets" in changed else None
        if change:
            publishing.revise(obj.pk, details, allowed, budgets)
            return
        slug = chosen["slug"] or None
        published = publishing.publish(
            form.owner, chosen["session"], details, slug=slug, allowed=allowed, budgets=budgets
        )
        obj.pk = published.agent.pk
        obj.refresh_from_db()

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Django's, and what a draft is."""
        response = super().response_add(request, obj, post_url_continue)
        self._say_if_draft(request, obj)
        return response

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """The same."""
        response = super().response_change(request, obj)
        self._say_if_draft(request, obj)
        return response

    def _say_if_draft(self, request: HttpRequest, agent: Agent) -> None:
        if agent.status == Agent.Status.DRAFT:
            self.message_user(request, f"{agent} is a draft: nobody can ask it yet.", messages.WARNING)

    # Deleting is soft, one or many.

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Free the handle; the log stays."""
        obj.soft_delete()

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        """The same for several."""
        for agent in queryset:
            agent.soft_delete()

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """What goes: the agents alone, nothing that hangs on them."""
        agents = list(objs)
        return [str(agent) for agent in agents], {"agents": len(agents)}, set(), []

    # Actions and columns.

    @admin.action(description="Publish the chosen agents")
    def publish(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        """Open them to callers."""
        self._set_status(request, queryset, Agent.Status.PUBLISHED)

    @admin.action(description="Unpublish the chosen agents")
    def unpublish(self, request: HttpRequest, queryset: QuerySet[Agent]) -> None:
        """Close them to callers from the next request on."""
        self._set_status(request, queryset, Agent.Status.DRAFT)

    def _set_status(self, request: HttpRequest, queryset: QuerySet[Agent], status: Agent.Status) -> None:
        for agent in queryset:
            publishing.revise(agent.pk, {"status": status})
        self.message_user(request, f"{len(queryset)} set to {status.label.lower()}.", messages.SUCCESS)

    @admin.display(description="online", boolean=True)
    def is_online(self, agent: Agent) -> bool:
        """Whether it would get a question now."""
        return _facts(agent).is_online

    @admin.display(description="queries today / budget")
    def today(self, agent: Agent) -> str:
        """What is spent of what the owner allows."""
        return f"{_facts(agent).queries_today} / {agent.daily_budget}"

    @admin.display(description="queries ever")
    def all_time(self, agent: Agent) -> int:
        """Over all days."""
        return _facts(agent).queries_all_time

    @admin.display(description="last asked")
    def last_asked(self, agent: Agent) -> str | None:
        """When a question last got through."""
        last = _facts(agent).last_query_at
        return date_format(last, "DATETIME_FORMAT") if last else None

    @admin.display(description="session")
    def session_name(self, agent: Agent) -> str:
        """Who answers; sessions have no page of their own here."""
        return f"{agent.session} on {agent.session.host}" if agent.session.host else str(agent.session)


def _facts(agent: Agent) -> Facts:
    """Those the list brought along, or those of a single agent."""
    facts: Facts = getattr(agent, "facts", None) or facts_of([agent])[agent.pk]
    return facts
