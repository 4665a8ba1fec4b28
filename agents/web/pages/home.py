"""The hub's front page."""

from django.db.models import Case, IntegerField, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agents.models import Agent
from agents.models.reachable import online
from agents.web.pages.entries import entries_of

LISTED = 6


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What this hub is, who you are, and a few agents you can ask, those online first."""
    offline = Case(When(online(), then=0), default=1, output_field=IntegerField())
    askable = Agent.objects.askable_by(request.user.pk).order_by(offline, "handle_key")
    entries = entries_of(askable[: LISTED + 1], request.user.pk)
    context = {"entries": entries[:LISTED], "has_more": len(entries) > LISTED}
    return render(request, "home.html", context)
