"""The door of a hub process: what waits or streams goes straight to its callable, the rest to Django."""

import asyncio
import json
import os
from contextlib import suppress

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")

from django.conf import settings
from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from a2a_bridge.addresses import split  # noqa: E402
from a2a_bridge.asgi import handle_of  # noqa: E402
from agents.links.channel.events import EVENT_PATH  # noqa: E402
from hub import wiring  # noqa: E402
from hub.django_door import DjangoDoor  # noqa: E402
from hub.health import draining  # noqa: E402
from hub.runtime import Runtime  # noqa: E402
from hub.watch.door import PATHS as WATCHED  # noqa: E402
from hub.watch.door import WatchDoor  # noqa: E402
from hub.watch.metrics import registry  # noqa: E402
from kit.asgi import MAX_BODY_BYTES, Receive, Scope, Send, below, contradicted_header, respond  # noqa: E402
from kit.sockets import refuse_upgrade  # noqa: E402
from operators.asgi import serves  # noqa: E402

STARTING = b'{"error":"unavailable","message":"the hub is starting"}'

runtime = Runtime(wiring.build())
watch_door = WatchDoor(
    registry(str(settings.SPECTACULAR_SETTINGS["VERSION"]), runtime.house.counts, runtime.house.gauges()),
    settings.METRICS_TOKEN,
    runtime.ensure_started,
)
django_door = DjangoDoor(
    django_application,
    path_prefix=settings.PATH_PREFIX,
    max_body_bytes=MAX_BODY_BYTES,
    max_upload_bytes=settings.MAX_UPLOAD_BYTES,
    limits=wiring.concurrency_limits(),
)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one connection or request."""
    if scope["type"] == "lifespan":
        with suppress(asyncio.CancelledError):  # a forced exit: the loop is about to close
            await _lifespan(receive, send)
        return
    scope = {**scope, "path": below(settings.PATH_PREFIX, scope["path"])}
    if scope["path"] in WATCHED and scope["type"] == "http":
        await watch_door(scope, receive, send)
        return
    if not runtime.is_started and not await watch_door.has_started():
        await _refuse(scope, receive, send)
        return
    if scope["type"] == "websocket":
        await _websocket(scope, receive, send)
    elif handle_of(scope["path"]) is not None:
        await runtime.house.bridge(scope, receive, send)
    elif split(scope["path"]) is not None:
        await runtime.house.http_json(scope, receive, send)
    elif name := contradicted_header(scope):
        message = f"the header {name} came with two values"
        body = json.dumps({"error": "validation_failed", "message": message}).encode()
        await respond(send, 400, body)
    elif serves(scope):
        await runtime.house.operators(scope, receive, send)
    elif scope["path"] == EVENT_PATH:
        await runtime.house.hook_events(scope, receive, send)
    else:
        await django_door.serve(scope, receive, send)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer 503 for a process that is starting, or whose start failed."""
    if scope["type"] == "http":
        await respond(send, 503, STARTING, [(b"retry-after", b"2")])
    else:
        await refuse_upgrade(receive, send, 503, "unavailable", "the hub is starting")


async def _websocket(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/channel" and draining.is_set():
        await refuse_upgrade(receive, send, 503, "unavailable", "the hub takes no agents now")
    elif scope["path"] == "/channel":
        await runtime.house.agent_socket()(scope, receive, send)
    elif scope["path"] == "/cli":
        await runtime.house.operator_socket()(scope, receive, send)
    else:  # `/supervisor` too: this hub manages no desktops, and a desktop's program backs off after a 404 only
        await refuse_upgrade(receive, send, 404, "not_found", "no such socket here")


async def _lifespan(receive: Receive, send: Send) -> None:
    while (message := await receive())["type"] != "lifespan.shutdown":
        if message["type"] == "lifespan.startup":
            await runtime.ensure_started()
            await send({"type": "lifespan.startup.complete"})
    await watch_door.close()
    await runtime.stop()
    await send({"type": "lifespan.shutdown.complete"})
