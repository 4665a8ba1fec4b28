"""The ASGI entry of a hub process: waits and streams go straight to their callable, other requests to Django."""

import asyncio
import gc
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from importlib import import_module
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")

import django
from django.conf import settings

# Before the imports below, which import models.
django.setup(set_prefix=False)

from a2a_bridge.surface.addresses import CARDS  # noqa: E402
from a2a_bridge.surface.api import PATH as QUESTIONS_PATH  # noqa: E402
from a2a_bridge.surface.asgi import RPC_PATHS, split, without_slash  # noqa: E402
from a2a_bridge.surface.sharing import PATH as SHARES_PATH  # noqa: E402
from agents.links.channel.events import EVENT_PATH  # noqa: E402
from agnt.endpoint.http import PATHS as AGNT_PATHS  # noqa: E402
from gateway.surface.addresses import (  # noqa: E402
    SOCKET_PATHS,
    demand_upgrade,
    is_of_gateway,
    refuse_off,
    refuse_off_upgrade,
)
from gateway.surface.agent_protocol import is_agent_protocol  # noqa: E402
from gateway.surface.fipa import PATH as FIPA_PATH  # noqa: E402
from gateway.surface.health import is_health_call  # noqa: E402
from gateway.surface.prototype import serve_prototype, speaks_prototype  # noqa: E402
from gateway.surface.socket import PATHS as GATEWAY_PATHS  # noqa: E402
from hub import wiring  # noqa: E402
from hub.bounded_django import BoundedDjango, OneThreadHandler  # noqa: E402
from hub.monitoring.endpoints import PATHS as WATCHED  # noqa: E402
from hub.monitoring.endpoints import MonitoringEndpoints, draining  # noqa: E402
from hub.monitoring.metrics import registry  # noqa: E402
from hub.runtime import Runtime  # noqa: E402
from kit.asgi import (  # noqa: E402
    MAX_BODY_BYTES,
    RETRY_SOON,
    Exchange,
    HttpRequest,
    Receive,
    RequestRefused,
    Scope,
    Send,
    below,
    contradicted_in,
    respond_refused,
    two_values,
)
from kit.sockets import refuse_upgrade  # noqa: E402
from mcp_server.surface.endpoint import PATH as MCP_PATH  # noqa: E402
from openai_api.surface.endpoint import COMPLETIONS_PATH, RESPONSES_PATH  # noqa: E402
from openai_api.surface.endpoint import V1 as MODELS  # noqa: E402
from openai_api.surface.team_agents import is_team_agent  # noqa: E402
from operators.surface.api import CALLS as OPERATOR_CALLS  # noqa: E402

PATH_PREFIX = settings.PATH_PREFIX
READS = ("GET", "HEAD")
ASKED_MODELS = frozenset({COMPLETIONS_PATH, RESPONSES_PATH})
API = "/api/v1/"
STARTING = "the hub is starting"
PATHS_OF_AGNT = AGNT_PATHS if settings.AGNT else frozenset()
SOCKETS_OF_GATEWAY = GATEWAY_PATHS if settings.GATEWAY else frozenset()


def load_pages() -> None:
    """Import all that Django serves. An embedded hub calls this for the first such request (docs/adr/0163)."""
    import_module(settings.ROOT_URLCONF)
    gc.freeze()  # the modules stay in memory: no garbage collection, as in hub/server.py


# Built when the module is imported, without an event loop; `ensure_started` starts it in the one that serves.
runtime = Runtime(wiring.HubServices())
watching = MonitoringEndpoints(
    registry(
        str(settings.SPECTACULAR_SETTINGS["VERSION"]), runtime.hub_services.counts, runtime.hub_services.gauges()
    ),
    settings.METRICS_TOKEN,
    runtime.ensure_started,
)
bounded_django = BoundedDjango(
    OneThreadHandler(runtime.hub_services.turns),
    path_prefix=PATH_PREFIX,
    max_body_bytes=MAX_BODY_BYTES,
    max_upload_bytes=settings.MAX_UPLOAD_BYTES,
    limits=wiring.concurrency_limits(),
    turns=runtime.hub_services.turns,
    load=load_pages,
)
if not settings.IS_EMBEDDED:
    load_pages()


def application(scope: Scope, receive: Receive, send: Send) -> Coroutine[Any, Any, None]:
    """The callable that serves a connection or request. A coroutine would be resumed after each wait."""
    if scope["type"] == "lifespan":
        return _lifespan(receive, send)
    if PATH_PREFIX:
        scope = {**scope, "path": below(PATH_PREFIX, scope["path"])}
    if scope["type"] == "websocket":
        serve = _websocket if runtime.is_started else _websocket_once_started
        return serve(scope, receive, send)
    request = HttpRequest(scope, receive)
    # Before `is_started`: a process is asked for its health while it starts, too.
    if request.path in WATCHED:
        return watching(request, send)
    return _serve(request, send) if runtime.is_started else _serve_once_started(request, send)


AskWhole = Callable[[HttpRequest, bytes, Exchange], Coroutine[Any, Any, None] | None]


def find_direct(scope: Scope) -> Callable[[bytes, Exchange], None] | None:
    """The function that answers this POST, once read; None if `application` has to serve it."""
    if not runtime.is_started:
        return None
    path: str = scope["path"]
    if PATH_PREFIX:
        path = below(PATH_PREFIX, path)
        scope = {**scope, "path": path}
    if (found := split(path)) is not None:
        handle, rest = found
        ask = partial(runtime.hub_services.bridge.ask_whole, handle)
        return partial(ask_in_context, ask, scope) if rest in RPC_PATHS else None
    return partial(ask_in_context, runtime.hub_services.models.ask_whole, scope) if path in ASKED_MODELS else None


def ask_in_context(ask: AskWhole, scope: Scope, body: bytes, exchange: Exchange) -> None:
    """Ask, and run a task that the request needs, with the context variables of this request."""
    context = copy_context()
    work = context.run(ask, HttpRequest(scope, exchange.receive), body, exchange)
    if work is not None:
        context.run(exchange.run, work)


def _serve(request: HttpRequest, send: Send) -> Coroutine[Any, Any, None]:
    hub_services, path = runtime.hub_services, request.path
    if path.startswith(API):
        return _serve_api(request, send)
    if (found := split(path)) is not None:
        handle, rest = found
        if rest in RPC_PATHS and request.method not in READS:
            return hub_services.bridge(request, handle, send)
        if rest and not CARDS.fullmatch(rest):
            return hub_services.http_json(request, handle, rest, send)
    if path == MCP_PATH:
        return hub_services.mcp(request, send)
    if path.startswith(MODELS):
        return hub_services.models(request, send)
    if not settings.GATEWAY and (is_of_gateway(path) or is_team_agent(path)):
        return refuse_off(send)
    if settings.GATEWAY and is_team_agent(path):
        return hub_services.team_agents(request, send)
    if settings.GATEWAY and request.method != "OPTIONS":
        if path in SOCKET_PATHS:
            return demand_upgrade(send)
        if is_agent_protocol(path):
            return hub_services.agent_protocol(request, send)
    if path == EVENT_PATH:
        return hub_services.hook_events(request, send)
    if path in PATHS_OF_AGNT:
        return hub_services.agnt(request, send)
    if settings.GATEWAY and is_health_call(request):
        return hub_services.gateway_health(request, send)
    if path.endswith("/") and (served := without_slash(path)) != path:
        request = HttpRequest({**request.scope, "path": served}, request.receive)
    return bounded_django.serve(request, send)


def _serve_api(request: HttpRequest, send: Send) -> Coroutine[Any, Any, None]:
    """The native API: Django serves its calls, except those that wait for an agent or read its tasks."""
    if request.path == FIPA_PATH and not settings.GATEWAY:
        return refuse_off(send)
    if request.method != "OPTIONS":
        if request.path == FIPA_PATH:
            return runtime.hub_services.fipa(request, send)
        for call in OPERATOR_CALLS:
            if found := call.path.fullmatch(request.path):
                return runtime.hub_services.operators(request, call, found.groupdict(), send)
        if request.path == QUESTIONS_PATH:
            return runtime.hub_services.questions(request, send)
        if request.path == SHARES_PATH and request.method == "POST":
            return runtime.hub_services.sharing(request, send)
    return bounded_django.serve(request, send)


async def _serve_once_started(request: HttpRequest, send: Send) -> None:
    """Answers 503 for a process that is starting, or whose start failed."""
    if await watching.has_started():
        await _serve(request, send)
    else:
        await respond_refused(send, RequestRefused(503, "unavailable", STARTING, RETRY_SOON))


def _websocket(scope: Scope, receive: Receive, send: Send) -> Coroutine[Any, Any, None]:
    hub_services, path = runtime.hub_services, scope["path"]
    if name := contradicted_in(scope["headers"]):
        refused = two_values(name)
        return refuse_upgrade(receive, send, refused.status, refused.code, str(refused))
    if (path == "/channel" or path in SOCKETS_OF_GATEWAY) and draining.is_set():
        return refuse_upgrade(receive, send, 503, "unavailable", "the hub takes no agents now")
    if path == "/channel":
        return hub_services.agent_socket()(scope, receive, send)
    if path in SOCKETS_OF_GATEWAY:
        if settings.GATEWAY_PROTOTYPE and speaks_prototype(scope):
            return serve_prototype(hub_services.gateway_socket(), scope, receive, send)
        return hub_services.gateway_socket()(scope, receive, send)
    if path in GATEWAY_PATHS:
        return refuse_off_upgrade(receive, send)
    if path == "/cli":
        return hub_services.operator_socket()(scope, receive, send)
    # `/supervisor` too: this hub manages no desktops, and a desktop's program backs off after a 404 only
    return refuse_upgrade(receive, send, 404, "not_found", "no such socket here")


async def _websocket_once_started(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuses a socket with 503 while the process is starting, or if its start failed."""
    if await watching.has_started():
        await _websocket(scope, receive, send)
    else:
        await refuse_upgrade(receive, send, 503, "unavailable", STARTING)


async def _lifespan(receive: Receive, send: Send) -> None:
    with suppress(asyncio.CancelledError):  # a forced exit: the loop is about to close
        while (message := await receive())["type"] != "lifespan.shutdown":
            if message["type"] == "lifespan.startup":
                await runtime.ensure_started()
                await send({"type": "lifespan.startup.complete"})
        await watching.close()
        await runtime.stop()
        await send({"type": "lifespan.shutdown.complete"})
