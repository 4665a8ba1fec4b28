"""Documents that programs only read: open to pages of every origin, with validators for readers with a copy.

The documents of an agent, its card and its usage sheet, are here, too. A change shows from the next request on.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Literal

import msgspec
import rfc8785
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.cache import get_conditional_response
from django.utils.http import http_date
from django.views.decorators.csrf import csrf_exempt

from a2a_bridge import settings
from a2a_bridge.surface.cards import UsageToday, merged_card, read_today, signed, strict_card
from a2a_bridge.surface.usage_sheet import MEDIA_TYPE, usage_sheet
from a2a_bridge.wire.dialects.v1 import CORE
from accounts.authn import find_caller
from accounts.error_responses import json_error
from agents.core.directory import find_askable
from agents.models import Agent
from kit.describe import DescribedAnswer, DescribedOperation, Parameter

STARTED_AT = datetime.now(UTC)
REVALIDATED = "public, max-age=0, must-revalidate"
ALLOWED = "GET, HEAD, OPTIONS"
PREFLIGHT = {
    "Access-Control-Allow-Methods": ALLOWED,
    "Access-Control-Allow-Headers": "Authorization, A2A-Version, A2A-Extensions, X-A2A-Extensions, If-None-Match",
    "Access-Control-Max-Age": "86400",
}
View = Callable[..., HttpResponse]

encode = msgspec.json.Encoder().encode


def describe_document(
    path: str,
    name: str,
    summary: str,
    answer: Any,
    *,
    parameters: Sequence[Parameter] = (),
    tag: str = "a2a",
    validators: str = "`If-None-Match`, `If-Modified-Since`",
) -> DescribedOperation:
    """A read of an open document, for the public description. `validators`: what a reader with a copy sends."""
    return DescribedOperation(
        method="get",
        path=path,
        name=name,
        summary=summary,
        tag=tag,
        security=(),
        parameters=parameters,
        answers={200: answer, 304: DescribedAnswer(text=f"The reader's copy holds ({validators}).")},
    )


def answer_document(
    request: HttpRequest,
    stable: Any,
    write: Callable[[], bytes],
    media_type: str,
    changed_at: datetime | None = None,
) -> HttpResponse:
    """A document with the validators by which a reader asks again; a 304 for a reader whose copy holds.

    `stable`: what does not change by the minute, of which the ETag is. `changed_at`: when the data last changed;
    the code that writes the document may have changed later.
    """
    etag = f'W/"{hashlib.sha256(rfc8785.dumps(stable)).hexdigest()}"'
    modified = int(max(changed_at, STARTED_AT).timestamp()) if changed_at is not None else None
    # A 304, or a 412 for an impossible `If-Match`. ETags are compared weakly.
    answer = get_conditional_response(request, etag=etag, last_modified=modified)
    if not isinstance(answer, HttpResponse):
        answer = HttpResponse(write(), content_type=media_type)
    answer["Cache-Control"] = REVALIDATED
    answer["ETag"] = etag
    if modified is not None:
        # Whole seconds cannot tell two changes of one second apart: a change in the running second is dated before
        # it, so that no cached copy counts as fresh until that second is over.
        answer["Last-Modified"] = http_date(min(modified, int(datetime.now(UTC).timestamp()) - 1))
    return answer


def allow_cross_origin(view: View) -> View:
    """Serve GET and HEAD, answer preflights, nothing else. Pages of every origin may read what is not private."""

    @wraps(view)
    def reading(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method == "OPTIONS":
            answer = HttpResponse(status=204, headers=PREFLIGHT)
        elif request.method in ("GET", "HEAD"):
            answer = view(request, *args, **kwargs)
        else:
            answer = json_error(405, "method_not_allowed", f"want one of {ALLOWED}")
            answer["Allow"] = ALLOWED
        if "private" not in answer.get("Cache-Control", ""):
            answer["Access-Control-Allow-Origin"] = "*"
            answer["Access-Control-Expose-Headers"] = "ETag, Last-Modified"
        return answer

    return reading


Rendering = Literal["merged", "strict", "negotiated"]
# The addresses below an agent's base that users give to clients, and the card of each.
CARDS_BELOW: dict[str, Rendering] = {
    CORE: "negotiated",
    "v1": "strict",
    "agent-card.json": "negotiated",
    ".well-known": "negotiated",
    ".well-known/agent-card.json": "negotiated",
    "v1/.well-known/agent-card.json": "strict",
}
VARY = "A2A-Version, Authorization, Cookie"
NO_SLASH = "no such agent; when you look for a card below an agent's address, end that address with a slash"


@dataclass(frozen=True, slots=True)
class Render:
    """A way to show an agent: what is made of it, with the address of the hub, and how that is written."""

    make: Callable[[Agent, UsageToday, str], Any]
    write: Callable[[Any], bytes]
    media_type: str = "application/json"


@csrf_exempt
@allow_cross_origin
def agent_card(request: HttpRequest, owner: str, slug: str, rendering: Rendering) -> HttpResponse:
    """The card of a published agent; 404 for drafts and deleted ones from the very next request.

    A limited or private agent shows its card to users who may ask it, by token or cookie; for others the card is
    absent.
    """
    is_strict = rendering == "strict" or (rendering == "negotiated" and wants_version_1(request))
    return _shown(request, owner, slug, STRICT if is_strict else MERGED)


@csrf_exempt
def agent_base(request: HttpRequest, owner: str, slug: str, rendering: Rendering) -> HttpResponse:
    """An agent's base, for reads. `hub.asgi` serves the calls of each possible handle: other calls get 404."""
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return _read_base(request, owner, slug, rendering)
    return json_error(404, "not_found", "no agent takes calls at this address")


@allow_cross_origin
def _read_base(request: HttpRequest, owner: str, slug: str, rendering: Rendering) -> HttpResponse:
    """A read of an address that takes POST: the agent's card, or for browsers a redirect to its page.

    The redirect does not check whether the agent exists: the page hides agents from visitors who may not ask.
    """
    answer: HttpResponse
    login = owner.removeprefix("@")
    if login and request.get_preferred_type(["application/json", "text/html"]) == "text/html":
        answer = redirect("agent-page", login, slug)
    else:
        answer = agent_card(request, owner, slug, rendering)
    answer["Vary"] = f"Accept, {VARY}"
    return answer


@csrf_exempt
@allow_cross_origin
def card_below(request: HttpRequest, owner: str, slug: str, given: str) -> HttpResponse:
    """The card for clients that append the path of a card to any address that they are given."""
    rendering = CARDS_BELOW.get(given)
    return (
        agent_card(request, owner, slug, rendering) if rendering else json_error(404, "not_found", "no such card")
    )


@csrf_exempt
@allow_cross_origin
def agent_usage(request: HttpRequest, owner: str, slug: str) -> HttpResponse:
    """The sheet on how to ask an agent, as Markdown; callers who may see the card may see it."""
    return _shown(request, owner, slug, USAGE)


def _shown(request: HttpRequest, owner: str, slug: str, render: Render) -> HttpResponse:
    """The agent, if it is there for the caller."""
    caller = find_caller(request)
    handle = f"{owner.removeprefix('@')}/{slug}"
    agent = find_askable(handle, caller.user.pk if caller and caller.identity.may_see(handle) else None)
    if agent is None:
        answer: HttpResponse = json_error(404, "not_found", NO_SLASH if slug == ".well-known" else "no such agent")
        answer["Cache-Control"] = REVALIDATED
    else:
        answer = _answer(request, agent, render)
    answer["Vary"] = VARY
    return answer


def wants_version_1(request: HttpRequest) -> bool:
    """True if the reader names A2A 1.x, by header or else in the query; several must agree."""
    named = request.headers.get("A2A-Version", "").split(",")
    versions = named if any(named) else request.GET.getlist("A2A-Version")
    return bool(versions) and all(version.strip().partition(".")[0] == "1" for version in versions)


def _answer(request: HttpRequest, agent: Agent, render: Render) -> HttpResponse:
    def write() -> bytes:
        return render.write(render.make(agent, read_today(agent), settings.PUBLIC_URL))

    if agent.access == Agent.Access.PUBLIC:
        stable = render.make(agent, UsageToday(), settings.PUBLIC_URL)
        return answer_document(request, stable, write, render.media_type, agent.revised_at)
    answer = HttpResponse(write(), content_type=render.media_type)
    answer["Cache-Control"] = "private, no-store"
    return answer


def _usage(agent: Agent, today: UsageToday, public_url: str) -> str:
    return usage_sheet(agent, today, public_url, reply_wait_s=settings.REPLY_WAIT_S)


MERGED = Render(merged_card, lambda card: encode(card))
STRICT = Render(strict_card, lambda card: encode(signed(card, settings.PUBLIC_URL)))
USAGE = Render(_usage, lambda sheet: sheet.encode(), MEDIA_TYPE)
