"""`GET /a2a/v1/status`: whether the venues of the hub, or with a key those of its network, are asked."""

import asyncio
import time
from http import HTTPStatus
from typing import NamedTuple

import msgspec
from django.db import DatabaseError, InterfaceError

from agents.core.ports import Clock
from agnt.service.asks.breakers import OPEN, find_breaker, find_hub_breaker
from agnt.service.intake.arrivals import Answer
from agnt.service.intake.handlers import NETWORK_VERSION
from agnt.service.key_checks import refuse_key
from agnt.service.keys import FoundKey, find_key_of
from clawbridge.agnt.fields import PROTOCOL
from kit.async_db import DbCalls, db_call
from kit.clock import approximate_now, iso
from kit.newest import NewestEntries
from kit.tasks import TaskSet

CACHED_FOR_S = 1.0  # anyone may ask: the database is asked once a second at most, for the hub and for each network
KEYS_AT_ONCE, MOST_FINDING, FOUND_WITHIN_S = 4, 100, 2.0
MOST_KEPT = 1_000
UNKNOWN = "unknown"


class _CachedState(NamedTuple):
    at: float
    breaker: str


class StatusReports:
    """Makes reports: with a key on its network alone, without one on the hub. None names a network."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._cached: NewestEntries[int | None, _CachedState] = NewestEntries(MOST_KEPT)  # None: the hub
        self._refreshing: dict[int | None, asyncio.Task[_CachedState]] = {}
        self._find_key = DbCalls(KEYS_AT_ONCE)
        self._finding = TaskSet()

    async def report_hub(self) -> Answer:
        """Without a key: 503 while all networks that have venues have open breakers, or the database is away."""
        return _make(await self._find_cached(None))

    async def report_network(self, digest: str) -> Answer:
        """With a key: 503 while the breaker of its network is open, or the database is away.

        No call of the key is counted. `digest`: of the key, empty for what is none.

        Raises:
            EnvelopeRefused: `unauthorized`, the key is not live.
        """
        try:
            key = await self._find_in_time(digest) if digest else None
        except (DatabaseError, InterfaceError, TimeoutError):
            return _make(UNKNOWN)
        if key is None:
            raise refuse_key()
        return _make(await self._find_cached(key.network_id))

    async def _find_in_time(self, digest: str) -> FoundKey | None:
        """The key of a digest. The query runs to its end, so that no more than `KEYS_AT_ONCE` take threads.

        Raises:
            TimeoutError: it takes long, or many wait.
        """
        if len(self._finding) >= MOST_FINDING:
            raise TimeoutError
        finding = self._finding.keep(self._find_key(find_key_of, digest), name="status key")
        async with asyncio.timeout(FOUND_WITHIN_S):
            return await asyncio.shield(finding)

    async def _find_cached(self, network_id: int | None) -> str:
        """The state of the breaker within the last second; requests at the same time share one query."""
        cached = self._cached.get(network_id)
        if cached is None or self._clock() - cached.at >= CACHED_FOR_S:
            refreshing = self._refreshing.get(network_id)
            if refreshing is None:
                refreshing = asyncio.get_running_loop().create_task(self._refresh(network_id), name="status")
                self._refreshing[network_id] = refreshing
            cached = await asyncio.shield(refreshing)
        return cached.breaker

    async def _refresh(self, network_id: int | None) -> _CachedState:
        try:
            cached = self._cached[network_id] = _CachedState(self._clock(), await _find(network_id))
            return cached
        finally:
            del self._refreshing[network_id]


async def _find(network_id: int | None) -> str:
    try:
        if network_id is None:
            return await db_call(find_hub_breaker)()
        return await db_call(find_breaker)(network_id)
    except (DatabaseError, InterfaceError):
        return UNKNOWN


def _make(breaker: str) -> Answer:
    is_degraded = breaker in (OPEN, UNKNOWN)
    status = HTTPStatus.SERVICE_UNAVAILABLE if is_degraded else HTTPStatus.OK
    report = {
        "status": "degraded" if is_degraded else "ok",
        "protocol": PROTOCOL,
        "network_version": NETWORK_VERSION,
        "time": iso(approximate_now()),
        "breaker": breaker,
    }
    return Answer(status, msgspec.json.encode(report), [], "")
