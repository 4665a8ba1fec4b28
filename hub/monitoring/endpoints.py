"""`/livez`, `/readyz` and `/metrics` as plain ASGI before Django, so that other requests cannot delay them.

The endpoints do not check Host: they answer a request to any address of the machine or the pod.
"""

import asyncio
import hmac
import ipaddress
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec
from django.db import DatabaseError
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from hub.monitoring.figures import hub_figures
from hub.monitoring.metrics import HubWide
from kit import sql
from kit.asgi import Header, HttpRequest, RequestRefused, Send, respond, respond_refused
from kit.async_db import DbThread
from kit.tasks import read_failure

logger = logging.getLogger(__name__)

EnsureStarted = Callable[[], Awaitable[None]]
T = TypeVar("T")

ANSWER_WITHIN_S = 1.0
PATHS = frozenset({"/livez", "/readyz", "/metrics"})
FORWARDED = ("x-forwarded-for", "forwarded", "x-real-ip", "via")
NO_STORE: list[Header] = [(b"cache-control", b"no-store")]
draining = threading.Event()  # set when this process stops taking new work


class Health(msgspec.Struct, frozen=True):
    """The state of the process: whether it runs, whether it can serve, and the reason if it cannot."""

    ok: bool
    database: str | msgspec.UnsetType = msgspec.UNSET
    draining: bool | msgspec.UnsetType = msgspec.UNSET
    starting: bool | msgspec.UnsetType = msgspec.UNSET


class PageGone(msgspec.Struct, frozen=True):
    """The response to `/metrics` without its token: 404."""

    error: str
    message: str


ABSENT = "There is nothing at this address."
NOT_READ = RequestRefused(405, "method_not_allowed", "want GET or HEAD", (b"allow", b"GET, HEAD"))


class SharedProbe(Generic[T]):
    """Runs one synchronous function in a thread with its own connection; concurrent callers share one run.

    A database that hangs holds this one thread, and each caller for `within_s`.
    """

    def __init__(self, function: Callable[[], T], name: str, *, within_s: float) -> None:
        self._function = function
        self._within_s = within_s
        self._thread = DbThread(name)
        self._running: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """The result of the probe.

        Raises:
            TimeoutError: the probe still runs.
        """
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._thread.call(self._function), name="look")
            self._running.add_done_callback(read_failure)
        # `asyncio.wait` does not cancel: the thread cannot be stopped, and the next caller waits for the same run.
        done, _ = await asyncio.wait({self._running}, timeout=self._within_s)
        if not done:
            raise TimeoutError
        return self._running.result()

    async def close(self) -> None:
        """Close the connection after the probe that runs."""
        await self._thread.close()


class MonitoringEndpoints:
    """Serves the monitoring endpoints. `token`: required for `/metrics` from other machines."""

    def __init__(self, registry: CollectorRegistry, token: str, ensure_started: EnsureStarted) -> None:
        self._registry = registry
        self._token = token.encode()
        self._ensure_started = ensure_started
        self._probe = SharedProbe(sql.check_connection, "readyz", within_s=ANSWER_WITHIN_S)
        self._figures = SharedProbe(hub_figures, "metrics", within_s=ANSWER_WITHIN_S)

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request for one of PATHS."""
        if request.path == "/metrics" and not self._may_read(request):
            await respond_refused(send, RequestRefused(404, "not_found", ABSENT))
        elif request.method not in ("GET", "HEAD"):
            await respond_refused(send, NOT_READ)
        elif request.path == "/livez":
            await _respond_state(send, Health(ok=True))
        elif request.path == "/readyz":
            await _respond_state(send, await self._readiness())
        else:
            await _show(send, await self._metrics())

    async def _readiness(self) -> Health:
        if draining.is_set():
            return Health(ok=False, draining=True)
        if not await self.has_started():
            return Health(ok=False, starting=True)
        try:
            await self._probe()
        except TimeoutError:
            return Health(ok=False, database=f"no answer in {ANSWER_WITHIN_S:g} s")
        except DatabaseError:
            return Health(ok=False, database="out of reach")
        return Health(ok=True, database="ok")

    async def has_started(self) -> bool:
        """True if this process can serve; the first call starts the process's services. Waits a moment at most."""
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await self._ensure_started()
        except Exception as failure:  # noqa: BLE001  whatever keeps it from starting, it cannot serve
            logger.warning("start.failed", extra={"failure": type(failure).__name__})
            return False
        return True

    async def close(self) -> None:
        """Close the database connection, without waiting for a database that hangs."""
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await self._probe.close()
                await self._figures.close()

    async def _metrics(self) -> bytes:
        try:
            found = await self._figures()
        except (TimeoutError, DatabaseError) as failure:
            logger.warning("metrics.no_figures", extra={"failure": type(failure).__name__})
            found = None
        wide = CollectorRegistry(auto_describe=False)
        wide.register(HubWide(found))
        return generate_latest(self._registry) + generate_latest(wide)

    def _may_read(self, request: HttpRequest) -> bool:
        given = request.headers.get("authorization", "").removeprefix("Bearer ").encode()
        if self._token and hmac.compare_digest(given, self._token):
            return True
        return _is_local(request) and not any(request.headers.get(name) for name in FORWARDED)


async def _respond_state(send: Send, state: Health) -> None:
    await respond(send, 200 if state.ok else 503, msgspec.json.encode(state), NO_STORE)


async def _show(send: Send, text: bytes) -> None:
    headers = [(b"content-type", CONTENT_TYPE_PLAIN_0_0_4.encode()), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": 200, "headers": [*headers, *NO_STORE]})
    await send({"type": "http.response.body", "body": text})


def _is_local(request: HttpRequest) -> bool:
    """True if the request comes from this machine and names this machine, so that no page in a browser here made
    it.
    """
    client, host = request.scope.get("client") or ("", 0), request.headers.get("host", "")
    name = host.rpartition(":")[0] or host
    return _is_loopback(str(client[0])) and (name == "localhost" or _is_loopback(name.strip("[]")))


def _is_loopback(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False
