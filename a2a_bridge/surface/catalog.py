"""The documents at the root of the hub, for programs that know no agent: catalogs of agents, and public keys.

The catalogs list the published, public agents. Two drafts describe such a list: AI Catalog 1.0
(`/.well-known/ai-catalog.json`), and Agentic Resource Discovery 0.91 (`/.well-known/ard.json`), which adds
questions an agent is good for. A catalog names `PAGE` agents at most; when there are more it names catalogs of up
to `PAGE` agents each, which both drafts call nested.
"""

from collections.abc import Iterable
from typing import Final, Literal, NotRequired, TypedDict
from urllib.parse import urlencode, urlsplit

from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from a2a_bridge import settings
from a2a_bridge.surface.documents import allow_cross_origin, answer_document, encode
from accounts.error_responses import json_error
from accounts.signing import public_keys
from agents.models import Agent
from kit.clock import iso
from kit.describe import Time, Url

PAGE = 500
MAX_CATALOGS = 1000
MAX_QUERIES = 5
AGENT_CARD: Final = "application/a2a-agent-card+json"
CATALOG: Final = "application/ai-catalog+json"
MAX_HANDLE_CHARS = 160
KEYS_KEPT = "public, max-age=300"
AGENT_INFO = """\
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
RATING = """\
Rating, version 1: an extension of A2A 1.0 and 0.3.

A caller gives the answer of a task a thumb. The agent's owner sees the thumb, the note and the caller's login.
Nothing has to be activated: A2A-Extensions may name this URI, and the response then names it, too.

The method is `RateTask` in A2A 1.0 and in the hub's own dialect, `tasks/rate` in A2A 0.3, and in HTTP+JSON
`POST /tasks/{id}:rate`. Its parameters:
  id       the task, whose last turn has to be answered
  rating   `up`, `down`, or `none`: the thumb is taken away
  note     text for the agent's owner, at most 1000 characters; optional

The result is the task. A later call changes the thumb and the note. A task of another caller is not found; a task
without an answer is an error of the code -32015.
"""
NOT_AN_AGENT = "this hub is no agent itself; /.well-known/ai-catalog.json lists its agents and their cards"


class Entry(TypedDict):
    """An agent by the address of its card, or a further catalog. `representativeQueries` is of ard.json alone."""

    identifier: str
    displayName: str
    type: Literal["application/a2a-agent-card+json", "application/ai-catalog+json"]
    url: Url
    description: NotRequired[str]
    tags: NotRequired[list[str]]
    updatedAt: NotRequired[Time]
    representativeQueries: NotRequired[list[str]]


class Host(TypedDict):
    """The operator of this hub."""

    displayName: str
    identifier: str
    documentationUrl: Url


class Catalog(TypedDict):
    """An AI Catalog."""

    specVersion: Literal["1.0"]
    host: Host
    entries: list[Entry]


def catalog(public_url: str, path: str, part: tuple[str, str] | None, *, with_queries: bool) -> Catalog:
    """A catalog as JSON: the whole one, or a part. `path`: its own address, which the nested ones share.

    `part`: the handle, in lower case, that the part begins with; and the handle before which it ends, or empty.
    """
    agents = Agent.objects.askable_by(None).order_by("handle_key")
    host = urlsplit(public_url).hostname or "localhost"
    if part is not None:
        first, end = part
        agents = agents.filter(handle_key__gte=first)
        agents = agents.filter(handle_key__lt=end) if end else agents
        entries = [_agent(agent, public_url, host, with_queries) for agent in agents[: 2 * PAGE]]
    else:
        starts = _starts()
        entries = (
            [_agent(agent, public_url, host, with_queries) for agent in agents[:PAGE]]
            if len(starts) < 2
            else list(_nested(starts, public_url + path, host))
        )
    documentation = f"{public_url}/llms.txt"
    named: Host = {"displayName": f"Clawbridge at {host}", "identifier": host, "documentationUrl": documentation}
    return {"specVersion": "1.0", "host": named, "entries": entries}


def _starts() -> list[str]:
    """The handle each page begins with."""
    numbered = Agent.objects.askable_by(None).annotate(
        number=Window(RowNumber(), order_by=F("handle_key").asc()), place=(F("number") - 1) % PAGE
    )
    return list(
        numbered.filter(place=0).order_by("handle_key").values_list("handle_key", flat=True)[:MAX_CATALOGS]
    )


def _nested(starts: list[str], url: str, host: str) -> Iterable[Entry]:
    for first, end in zip(starts, [*starts[1:], ""], strict=True):
        query = {"from": first, "to": end} if end else {"from": first}
        yield {
            "identifier": f"urn:air:{_segment(host)}:catalog:{_segment(first)}",
            "displayName": f"Agents from @{first} on",
            "type": CATALOG,
            "url": f"{url}?{urlencode(query)}",
        }


def _agent(agent: Agent, public_url: str, host: str, with_queries: bool) -> Entry:
    owner, _, slug = agent.handle.partition("/")
    entry: Entry = {
        "identifier": f"urn:air:{_segment(host)}:agent:{_segment(owner)}:{_segment(slug)}",
        "displayName": agent.name,
        "type": AGENT_CARD,
        "url": f"{public_url}/api/a2a/v1/agents/{agent.handle}/.well-known/agent-card.json",
        "tags": agent.tags or ["chat"],
        "updatedAt": iso(agent.revised_at),
    }
    if told := agent.tagline or agent.description:
        entry["description"] = told
    if with_queries and agent.suggested_prompts:
        entry["representativeQueries"] = agent.suggested_prompts[:MAX_QUERIES]
    return entry


def _segment(text: str) -> str:
    """A text as a segment of a `urn:air` name, which takes letters, digits, dots, hyphens and underscores."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in text)


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
    """The document behind the URI of the hub's extension of A2A cards."""
    return HttpResponse(AGENT_INFO, content_type="text/plain; charset=utf-8")


@csrf_exempt
@allow_cross_origin
def rating(request: HttpRequest) -> HttpResponse:
    """The document behind the URI of the extension by which callers rate answers."""
    return HttpResponse(RATING, content_type="text/plain; charset=utf-8")


def _catalog(request: HttpRequest, *, content_type: str, with_queries: bool) -> HttpResponse:
    part = None
    if "from" in request.GET:
        part = (request.GET["from"], request.GET.get("to", ""))
        if not all(len(handle) <= MAX_HANDLE_CHARS and handle.isprintable() for handle in part):
            return json_error(400, "validation_failed", "from, to: want handles")
    shown = catalog(settings.PUBLIC_URL, request.path_info, part, with_queries=with_queries)
    return answer_document(request, shown, lambda: encode(shown), content_type)
