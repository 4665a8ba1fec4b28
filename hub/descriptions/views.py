"""The descriptions over HTTP: public, for every origin."""

from functools import cache
from typing import Any

import msgspec
import yaml
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from hub.descriptions.asyncapi import asyncapi
from hub.descriptions.openapi import openapi
from hub.descriptions.page import sections, sockets
from hub.descriptions.shapes import Json

HEADERS = {"Access-Control-Allow-Origin": "*", "Cache-Control": "public, max-age=60"}
JSON_TYPE, YAML_TYPE = "application/json", "application/yaml"


@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    """OpenAPI 3.1, as JSON or, when `format` or `Accept` asks for it, as YAML."""
    wanted = request.GET.get("format") or request.headers.get("Accept", "")
    return _as_yaml(openapi()) if "yaml" in wanted else _as_json(openapi())


@require_safe
def sockets_json(request: HttpRequest) -> HttpResponse:
    """AsyncAPI 3.0 as JSON."""
    return _as_json(asyncapi())


@require_safe
def sockets_yaml(request: HttpRequest) -> HttpResponse:
    """AsyncAPI 3.0 as YAML."""
    return _as_yaml(asyncapi())


@never_cache
@gzip_page
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Both, to read."""
    return render(request, "docs.html", {"body": _body()})


@cache
def _body() -> SafeString:
    """What is the same for every caller: a quarter of a megabyte that takes longer to encode than to send."""
    context: dict[str, Any] = {"sections": sections(openapi()), "sockets": sockets(asyncapi())}
    return render_to_string("docs_body.html", context)


def _as_json(document: Json) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(document), content_type=JSON_TYPE, headers=HEADERS)


def _as_yaml(document: Json) -> HttpResponse:
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return HttpResponse(text, content_type=YAML_TYPE, headers=HEADERS)
