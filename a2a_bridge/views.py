"""Cards over HTTP, never cached past a change: those of public agents for everybody and every origin."""

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from a2a_bridge.cards import card
from accounts.callers import find_caller
from agents.directory import find_askable, is_online, queries_today
from agents.models import Agent

VARY = {"Vary": "Authorization, Cookie"}
FOR_ALL = {**VARY, "Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=0, must-revalidate"}
FOR_ONE = {**VARY, "Cache-Control": "private, no-store"}


@csrf_exempt
@require_safe
def agent_card(request: HttpRequest, owner: str, slug: str) -> JsonResponse:
    """The card of a published agent; 404 for drafts and deleted ones from the very next request.

    One that is limited or private shows it to those who may ask it, by token or cookie; for others it is absent.
    """
    caller = find_caller(request)
    agent = find_askable(f"{owner}/{slug}", caller.user.pk if caller else None)
    if agent is None:
        return JsonResponse({"error": "not_found", "message": "no such agent"}, status=404, headers=FOR_ALL)
    body = card(
        agent,
        public_url=settings.PUBLIC_URL,
        queries_today=queries_today(agent),
        online=is_online(agent.session_id),
    )
    return JsonResponse(body, headers=FOR_ALL if agent.access == Agent.Access.PUBLIC else FOR_ONE)
