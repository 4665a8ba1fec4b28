"""The documents at the root of the hub, for programs that know no agent: catalogs, and the keys of signatures."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from a2a_bridge import settings
from a2a_bridge.surface.catalog import CATALOG, CatalogPart, catalog
from a2a_bridge.surface.documents import allow_cross_origin, encode, not_modified, weak_etag, with_validators
from accounts.error_pages import json_error
from accounts.signing import public_keys

MAX_HANDLE_CHARS = 160
KEYS_KEPT = "public, max-age=300"
EXTENSION = """\
Agent info, version 1: an extension of A2A 1.0 agent cards.

It only adds facts to `capabilities.extensions[]`; nothing has to be sent or understood to ask the agent.

`params` on every card:
  handle           the agent as `owner/slug`
  ownerLogin       who published it
  queriesToday     questions accepted on this UTC day
  dailyBudget      how many there may be on a day
  online           whether it would get a question now
  isolated         whether it answers from its own context only
  isolationNote    the same as a sentence

`params` on the extended card besides:
  budgetLeft       questions that are left today, of all callers together
  callerBudget     of these, how many you may ask on a day; absent: as many as there are
  callerBudgetLeft how many you have left today; absent with `callerBudget`
  concurrencyCap   questions one caller may have open at once
  replyWaitS       seconds it may take for callers who wait for the answer
  waitS            seconds it may take for callers who stream, or do not wait
  agentStyle       `hybrid`: A2A 0.3 callers get a plain answer as a message; `task-generating`: always a task
"""
NOT_AN_AGENT = "this hub is no agent itself; /.well-known/ai-catalog.json lists its agents and their cards"


@csrf_exempt
@allow_cross_origin
def ai_catalog(request: HttpRequest) -> HttpResponse:
    """`/.well-known/ai-catalog.json`"""
    return _catalog(request, content_type=CATALOG, with_queries=False)


@csrf_exempt
@allow_cross_origin
def ard(request: HttpRequest) -> HttpResponse:
    """`/.well-known/ard.json`"""
    return _catalog(request, content_type="application/json", with_queries=True)


@csrf_exempt
@allow_cross_origin
def jwks(request: HttpRequest) -> HttpResponse:
    """`/.well-known/jwks.json`: the public keys that verify what this hub signed."""
    answer = HttpResponse(encode(public_keys()), content_type="application/jwk-set+json")
    answer["Cache-Control"] = KEYS_KEPT
    return answer


@csrf_exempt
@allow_cross_origin
def no_agent_card(request: HttpRequest) -> HttpResponse:
    """`/.well-known/agent-card.json`: names the catalog to clients that look for an agent here."""
    return json_error(404, "not_found", NOT_AN_AGENT)


@csrf_exempt
@allow_cross_origin
def agent_info(request: HttpRequest) -> HttpResponse:
    """The document behind the uri of the hub's extension of A2A cards."""
    return HttpResponse(EXTENSION, content_type="text/plain; charset=utf-8")


def _catalog(request: HttpRequest, *, content_type: str, with_queries: bool) -> HttpResponse:
    part = None
    if "from" in request.GET:
        part = CatalogPart(request.GET["from"], request.GET.get("to", ""))
        if not all(len(handle) <= MAX_HANDLE_CHARS and handle.isprintable() for handle in (part.first, part.end)):
            return json_error(400, "validation_failed", "from, to: want handles")
    shown = catalog(settings.PUBLIC_URL, request.path_info, part, with_queries=with_queries)
    etag = weak_etag(shown)
    answer = not_modified(request, etag) or HttpResponse(encode(shown), content_type=content_type)
    return with_validators(answer, etag)
