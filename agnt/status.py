"""`GET /a2a/v1/status`: whether the hub takes envelopes. It says nothing of venues, keys or networks."""

import asyncio
import time
from typing import NamedTuple

import msgspec
from django.db import DatabaseError, InterfaceError

from agents.core.ports import Clock
from agnt.answers import Answer
from agnt.breaker import COOLDOWN_S
from agnt.handlers import NETWORK_VERSION
from agnt.models import Breaker
from agnt.wire import PROTOCOL
from kit.async_db import db_call
from kit.clock import approximate_now, iso

LOOK_EVERY_S = 1.0  # anyone may ask: the database is asked once a second at most
DEGRADED = 503
OPEN, HALF_OPEN, CLOSED, UNKNOWN = "open", "half_open", "closed", "unknown"


class _Looked(NamedTuple):
    at: float
    breaker: str


class StatusReports:
    """Makes reports. The breaker is the worst of those of the hub's networks."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._looked: _Looked | None = None
        self._looking: asyncio.Task[_Looked] | None = None

    async def make(self) -> Answer:
        """The report of this moment: 503 while the breaker of a network is open, or the database is away."""
        looked = self._looked
        if looked is None or self._clock() - looked.at >= LOOK_EVERY_S:
            if self._looking is None:
                self._looking = asyncio.get_running_loop().create_task(self._look(), name="status")
            looked = await asyncio.shield(self._looking)
        breaker = looked.breaker
        is_degraded = breaker in (OPEN, UNKNOWN)
        report = {
            "status": "degraded" if is_degraded else "ok",
            "protocol": PROTOCOL,
            "network_version": NETWORK_VERSION,
            "time": iso(approximate_now()),
            "breaker": breaker,
        }
        return Answer(DEGRADED if is_degraded else 200, msgspec.json.encode(report), [], "")

    async def _look(self) -> _Looked:
        """Ask the database; requests at the same time share the answer."""
        try:
            self._looked = _Looked(self._clock(), await _find_breaker())
            return self._looked
        finally:
            self._looking = None


async def _find_breaker() -> str:
    try:
        return await db_call(find_breaker_state)()
    except (DatabaseError, InterfaceError):
        return UNKNOWN


def find_breaker_state() -> str:
    """`open` when the breaker of a network refuses all calls, `half_open` when one may probe, else `closed`."""
    opened = Breaker.objects.filter(venue=None).exclude(opened_at_s=None).values_list("opened_at_s", flat=True)
    latest = opened.order_by("-opened_at_s").first()
    if latest is None:
        return CLOSED
    return OPEN if approximate_now().timestamp() < latest + COOLDOWN_S else HALF_OPEN
