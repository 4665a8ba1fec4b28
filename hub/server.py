"""Serves the hub by uvicorn: a first signal drains the hub and ends it, a second signal ends it at once."""

import asyncio
import gc
import json
import logging
import socket
import sys
import time
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FrameType

import uvicorn
from django.conf import settings

from agents.links.channel.socket import MAX_FRAME_BYTES
from hub.asgi import find_direct, runtime
from hub.data_dir import record_address
from hub.http_protocol import HubHttpProtocol, end_overdue
from hub.socket_protocol import PING_EVERY_S, PONG_WITHIN_S, HubSockets
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

SAME_SIGNAL_S = 0.5
KEEP_ALIVE_S = 75  # longer than proxies keep idle connections, so that no proxy sends a request into a closing one
TICK_S = 1.0

# WhiteNoise's files are small and read in the thread that Django gives them anyway.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")


class DirectHttpProtocol(HubHttpProtocol):
    """The protocol of the hub: plain asks go the direct way."""

    find_direct = staticmethod(find_direct)


def config() -> uvicorn.Config:
    """The configuration of uvicorn: agents get JSON pings, others the protocol's; no deflate (saves 25 KiB a
    socket).
    """
    return uvicorn.Config(
        "hub.asgi:application",
        host=settings.HOST,
        port=settings.PORT,
        loop="uvloop",
        # Named, because `application` is no coroutine function, which uvicorn would take for ASGI 2.
        interface="asgi3",
        http=DirectHttpProtocol,
        ws=HubSockets,
        ws_max_size=MAX_FRAME_BYTES,
        ws_ping_interval=PING_EVERY_S,
        ws_ping_timeout=PONG_WITHIN_S,
        ws_per_message_deflate=False,
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        # Without named proxies a client's own X-Forwarded-For must not count.
        proxy_headers=bool(settings.TRUSTED_PROXIES),
        forwarded_allow_ips=list(settings.TRUSTED_PROXIES),
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=5,
    )


class HubServer(uvicorn.Server):
    """Prints `ready …` when the hub serves (`as_json`: as a line of JSON), and drains the hub before it ends."""

    def __init__(self, *, as_json: bool = False) -> None:
        super().__init__(config())
        self._loop: asyncio.AbstractEventLoop | None = None
        # Imported only for a demo, because the import brings the connector.
        self._demo = import_module("hub.demo").Demo() if settings.DEMO else None
        self._as_json = as_json
        self._signalled_at = self._looked_at = 0.0
        self._tasks = TaskSet()
        self._leaving = asyncio.Event()
        self._recorded: Path | None = None  # the file that records the hub's address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then print the ready line once the demo agent, if any, is online too."""
        await super().startup(sockets)
        _settle_garbage_collection()
        self._loop = asyncio.get_running_loop()
        if self.started:
            self._record_address()
            self._tasks.start(self._print_ready(), name="ready")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Delete the recorded address, and stop serving."""
        if self._recorded is not None:
            self._recorded.unlink(missing_ok=True)
        await super().shutdown(sockets)

    async def main_loop(self) -> None:
        """Do uvicorn's tick once a second instead of ten times, and end overdue connections."""
        while not await self.on_tick(0):
            end_overdue(self.server_state.connections, asyncio.get_running_loop().time(), self._looked_at)
            self._looked_at = asyncio.get_running_loop().time()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), TICK_S)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """First signal: drain, then exit.

        Exit at once on a second signal, unless one signal was delivered twice.
        """
        if self._loop is None or (self._signalled_at and time.monotonic() - self._signalled_at > SAME_SIGNAL_S):
            self.should_exit = self.force_exit = True
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._leaving.set)
        if self._loop is None or self._signalled_at:
            return
        self._signalled_at = time.monotonic()
        # In a signal handler `call_soon` would not wake the loop.
        self._loop.call_soon_threadsafe(lambda: self._tasks.start(self._drain_and_exit(), name="drain"))

    def _record_address(self) -> None:
        url, is_alone = settings.LOCAL_URL, settings.IS_EMBEDDED
        try:
            self._recorded = record_address(settings.DATA_DIR, url, is_alone=is_alone)
        except OSError as failure:  # the hub serves without the record
            logger.warning("address.not_recorded", extra={"failure": type(failure).__name__})

    async def _print_ready(self) -> None:
        lines, ready = [f"ready {settings.LOCAL_URL}"], {"url": settings.LOCAL_URL}
        if self._demo is not None:
            try:
                ready["token"] = await self._demo.start()
                lines += self._demo.lines(ready["token"])
            except TimeoutError:
                sys.stderr.write("the demo agent did not come online\n")
                self._exit()
                return
        sys.stdout.write((json.dumps(ready) if self._as_json else "\n".join(lines)) + "\n")
        sys.stdout.flush()

    async def _drain_and_exit(self) -> None:
        turns = runtime.hub_services.dispatcher.open_turns
        sys.stderr.write(f"draining, open questions: {turns}; press Ctrl-C again to leave at once\n")
        await runtime.drain()
        if self._demo is not None:
            await self._demo.stop()
        self._exit()

    def _exit(self) -> None:
        self.should_exit = True
        self._leaving.set()


def _settle_garbage_collection() -> None:
    """Exclude the loaded modules from garbage collection: they stay as long as the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
