"""Cards over HTTP: public, for every origin, never cached past a change."""

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from a2a_bridge.cards import card
from agents.directory import find_published, is_online, queries_today


@csrf_exempt
@require_safe
def agent_card(request: HttpRequest, owner: str, slug: str) -> JsonResponse:
    """The card of a published agent; 404 for drafts and deleted ones from the very next request."""
    agent = find_published(f"{owner}/{slug}")
    headers = {"Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=0, must-revalidate"}
    if agent is None:
        return JsonResponse({"error": "not_found", "message": "no such agent"}, status=404, headers=headers)
    body = card(
        agent,
        public_url=settings.PUBLIC_URL,
        queries_today=queries_today(agent),
        online=is_online(agent.session_id),
    )
    return JsonResponse(body, headers=headers)
