"""The door of a hub process: what waits or streams goes straight to its callable, the rest to Django."""

import asyncio
import os
from contextlib import suppress

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")

from django.conf import settings
from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from a2a_bridge.addresses import split  # noqa: E402
from a2a_bridge.asgi import handle_of  # noqa: E402
from agents.links.channel.events import EVENT_PATH  # noqa: E402
from hub import supervisor, wiring  # noqa: E402
from hub.django_door import DjangoDoor  # noqa: E402
from hub.health import draining  # noqa: E402
from hub.runtime import Runtime  # noqa: E402
from hub.watch.door import PATHS as WATCHED  # noqa: E402
from hub.watch.door import WatchDoor  # noqa: E402
from hub.watch.metrics import registry  # noqa: E402
from kit.asgi import MAX_BODY_BYTES, Receive, Scope, Send  # noqa: E402
from kit.sockets import POLICY_VIOLATION  # noqa: E402
from operators.asgi import serves  # noqa: E402

runtime = Runtime(wiring.build())
watch_door = WatchDoor(
    registry(str(settings.SPECTACULAR_SETTINGS["VERSION"]), runtime.house.counts, runtime.house.gauges()),
    settings.METRICS_TOKEN,
    runtime.ensure_started,
)
django_door = DjangoDoor(
    django_application,
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
    if scope["path"] in WATCHED and scope["type"] == "http":
        await watch_door(scope, receive, send)
        return
    await runtime.ensure_started()
    if scope["type"] == "websocket":
        await _websocket(scope, receive, send)
    elif handle_of(scope["path"]) is not None:
        await runtime.house.bridge(scope, receive, send)
    elif split(scope["path"]) is not None:
        await runtime.house.http_json(scope, receive, send)
    elif serves(scope):
        await runtime.house.operators(scope, receive, send)
    elif scope["path"] == EVENT_PATH:
        await runtime.house.hook_events(scope, receive, send)
    else:
        await django_door.serve(scope, receive, send)


async def _websocket(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/channel" and not draining.is_set():
        await runtime.house.agent_socket()(scope, receive, send)
        return
    if scope["path"] == "/cli":
        await runtime.house.operator_socket()(scope, receive, send)
        return
    if scope["path"] == "/supervisor":
        await supervisor.refuse(receive, send)
        return
    await receive()
    await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": "no such socket here now"})


async def _lifespan(receive: Receive, send: Send) -> None:
    while (message := await receive())["type"] != "lifespan.shutdown":
        if message["type"] == "lifespan.startup":
            await runtime.ensure_started()
            await send({"type": "lifespan.startup.complete"})
    await watch_door.close()
    await runtime.stop()
    await send({"type": "lifespan.shutdown.complete"})
