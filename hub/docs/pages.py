"""`/docs`: guides and reference of the hub, descriptions of the API and the sockets, and a search over them."""

from collections.abc import Callable
from functools import cache

import msgspec
import yaml
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from hub.descriptions.asyncapi import asyncapi
from hub.descriptions.openapi import openapi
from hub.descriptions.page import A2A, GATEWAY, SOCKETS, calls_by_tag, gateway_page, sockets
from hub.descriptions.schemas import Json
from hub.docs.library import groups, pages
from hub.docs.search import MAX_FOUND, search, with_search

MAX_CHARS = 200
MAX_WORDS = 6


@never_cache
@gzip_page
@require_safe
@with_search
def docs(request: HttpRequest) -> HttpResponse:
    """The contents; with `?q=` the sections that have all words of the query, the best first."""
    typed = request.GET.get("q", "")[:MAX_CHARS]
    words = typed.lower().split()[:MAX_WORDS]
    found = search(words) if words else []
    context = {"groups": list(groups()), "typed": typed, "words": words, "found": found, "most": MAX_FOUND}
    return render(request, "docs/home.html", context)


@never_cache
@gzip_page
@require_safe
@with_search
def docs_page(request: HttpRequest, name: str) -> HttpResponse:
    """One document."""
    page = pages().get(name)
    if page is None:
        raise Http404
    headings = [one for one in page.document.sections if one.level == 2]
    siblings = next(listed for group, listed in groups() if group == page.group)
    return render(request, "docs/page.html", {"page": page, "headings": headings, "siblings": siblings})


HEADERS = {"Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=60"}
JSON_TYPE, YAML_TYPE = "application/json", "application/yaml"


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    """OpenAPI 3.1, as JSON or, when `format` or `Accept` asks for it, as YAML."""
    wanted = request.GET.get("format") or request.headers.get("Accept", "")
    return _as_yaml(openapi) if "yaml" in wanted else _as_json(openapi())


@require_safe
def sockets_json(request: HttpRequest) -> HttpResponse:
    """AsyncAPI 3.0 as JSON."""
    return _as_json(asyncapi())


@require_safe
def sockets_yaml(request: HttpRequest) -> HttpResponse:
    """AsyncAPI 3.0 as YAML."""
    return _as_yaml(asyncapi)


@never_cache
@gzip_page
@require_safe
@with_search
def api(request: HttpRequest) -> HttpResponse:
    """Every call and socket, in a line each."""
    return render(request, "docs/api.html", {"body": _contents(), "sections": _sections()})


@never_cache
@gzip_page
@require_safe
@with_search
def api_section(request: HttpRequest, tag: str) -> HttpResponse:
    """The calls of one tag in full, with forms to try them; or the sockets, or the frames of the gateway."""
    if tag not in (SOCKETS, GATEWAY) and tag not in _sections():
        raise Http404
    context = {"tag": tag, "body": _body(tag), "sections": _sections()}
    return render(request, "docs/api_section.html", context)


@cache
def _sections() -> dict[str, list[Json]]:
    return calls_by_tag(openapi())


@cache
def _contents() -> SafeString:
    context = {
        "sections": _sections(),
        "sockets": sockets(asyncapi()),
        "gateway": gateway_page(asyncapi()),
    }
    return render_to_string("docs/api_contents.html", context)


@cache
def _body(tag: str) -> SafeString:
    """The part of a page that is the same for every caller: it takes longer to make than to send."""
    if tag == SOCKETS:
        return render_to_string("docs/api_sockets.html", {"sockets": sockets(asyncapi())})
    if tag == GATEWAY:
        return render_to_string("docs/api_gateway.html", {"page": gateway_page(asyncapi())})
    return render_to_string("docs/api_calls.html", {"tag": tag, "calls": _sections()[tag], "is_a2a": tag in A2A})


def _as_json(document: Json) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(document), content_type=JSON_TYPE, headers=HEADERS)


def _as_yaml(document: Callable[[], Json]) -> HttpResponse:
    return HttpResponse(_yaml_of(document), content_type=YAML_TYPE, headers=HEADERS)


@cache
def _yaml_of(document: Callable[[], Json]) -> str:
    """A document, which never changes, written once: that takes most of a second."""
    text: str = yaml.safe_dump(document(), sort_keys=False, allow_unicode=True)
    return text
