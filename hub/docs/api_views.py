"""The descriptions over HTTP: public, for every origin."""

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
from hub.descriptions.page import A2A, GATEWAY, SOCKETS, Section, gateway_page, sections, sockets
from hub.descriptions.shapes import Json
from hub.docs.search import with_search

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
def _sections() -> dict[str, Section]:
    return {one.tag: one for one in sections(openapi())}


@cache
def _contents() -> SafeString:
    context = {
        "sections": list(_sections().values()),
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
    return render_to_string("docs/api_calls.html", {"section": _sections()[tag], "is_a2a": tag in A2A})


def _as_json(document: Json) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(document), content_type=JSON_TYPE, headers=HEADERS)


def _as_yaml(document: Callable[[], Json]) -> HttpResponse:
    return HttpResponse(_yaml_of(document), content_type=YAML_TYPE, headers=HEADERS)


@cache
def _yaml_of(document: Callable[[], Json]) -> str:
    """A document, which never changes, written once: that takes most of a second."""
    text: str = yaml.safe_dump(document(), sort_keys=False, allow_unicode=True)
    return text
