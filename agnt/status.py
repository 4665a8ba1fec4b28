"""`GET /a2a/v1/status`: whether the hub takes envelopes, or whether the venues of a key's network are asked."""

import asyncio
import time
from typing import NamedTuple

import msgspec
from django.db import DatabaseError, InterfaceError
from django.db.models import Exists, OuterRef, QuerySet

from agents.core.ports import Clock
from agnt.answers import Answer
from agnt.breaker import COOLDOWN_S
from agnt.handlers import NETWORK_VERSION
from agnt.key_checks import refuse_key
from agnt.keys import find_keys
from agnt.models import Breaker, Network, Venue
from agnt.wire import PROTOCOL
from kit.async_db import DbCalls, db_call
from kit.clock import approximate_now, iso

LOOK_EVERY_S = 1.0  # anyone may ask: the database is asked once a second at most, for the hub and for each network
KEYS_AT_ONCE = 4
MOST_KEPT = 1_000
DEGRADED = 503
OPEN, HALF_OPEN, CLOSED, UNKNOWN = "open", "half_open", "closed", "unknown"


class _Looked(NamedTuple):
    at: float
    breaker: str


class StatusReports:
    """Makes reports. Those on one network say nothing of another, and the hub's says nothing of a single one."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._looked: dict[int | None, _Looked] = {}  # by network, None: the hub; the oldest first
        self._looking: dict[int | None, asyncio.Task[_Looked]] = {}
        self._find_keys = DbCalls(KEYS_AT_ONCE)

    async def report_hub(self) -> Answer:
        """The report without a key: 503 while the breakers of all networks are open, or the database is away."""
        return _make(await self._look_seldom(None))

    async def report_network(self, digest: str) -> Answer:
        """The report with a key: 503 while the breaker of its network is open, or the database is away.

        No call of the key is counted. `digest`: of the key, empty for what is none.

        Raises:
            EnvelopeRefused: `unauthorized`, the key is not live.
        """
        try:
            keys = await self._find_keys(find_keys, [digest]) if digest else {}
        except (DatabaseError, InterfaceError):
            return _make(UNKNOWN)
        if digest not in keys:
            raise refuse_key()
        return _make(await self._look_seldom(keys[digest].network_id))

    async def _look_seldom(self, network_id: int | None) -> str:
        """The breaker as it was within the last second; requests at the same time share the look."""
        looked = self._looked.get(network_id)
        if looked is None or self._clock() - looked.at >= LOOK_EVERY_S:
            looking = self._looking.get(network_id)
            if looking is None:
                looking = asyncio.get_running_loop().create_task(self._look(network_id), name="status")
                self._looking[network_id] = looking
            looked = await asyncio.shield(looking)
        return looked.breaker

    async def _look(self, network_id: int | None) -> _Looked:
        try:
            looked = _Looked(self._clock(), await _find(network_id))
            self._looked.pop(network_id, None)
            self._looked[network_id] = looked
            if len(self._looked) > MOST_KEPT:
                del self._looked[next(iter(self._looked))]
            return looked
        finally:
            del self._looking[network_id]


async def _find(network_id: int | None) -> str:
    try:
        if network_id is None:
            return await db_call(find_hub_breaker)()
        return await db_call(find_breaker)(network_id)
    except (DatabaseError, InterfaceError):
        return UNKNOWN


def find_breaker(network_id: int) -> str:
    """Of a network: `open` while its breaker refuses all calls, `half_open` when one may probe, else `closed`."""
    opened = _of_networks().filter(network=network_id).values_list("opened_at_s", flat=True).first()
    if opened is None:
        return CLOSED
    return OPEN if opened > _open_since_s() else HALF_OPEN


def find_hub_breaker() -> str:
    """Of the hub: `open` while each network that has venues has an open breaker, else `closed`."""
    is_open = Exists(_of_networks().filter(network=OuterRef("pk"), opened_at_s__gt=_open_since_s()))
    with_venues = Network.objects.filter(Exists(Venue.objects.filter(network=OuterRef("pk"))))
    return OPEN if with_venues.exists() and not with_venues.filter(~is_open).exists() else CLOSED


def _of_networks() -> QuerySet[Breaker]:
    return Breaker.objects.filter(venue=None)


def _open_since_s() -> float:
    """What opened later refuses all calls."""
    return approximate_now().timestamp() - COOLDOWN_S


def _make(breaker: str) -> Answer:
    is_degraded = breaker in (OPEN, UNKNOWN)
    report = {
        "status": "degraded" if is_degraded else "ok",
        "protocol": PROTOCOL,
        "network_version": NETWORK_VERSION,
        "time": iso(approximate_now()),
        "breaker": breaker,
    }
    return Answer(DEGRADED if is_degraded else 200, msgspec.json.encode(report), [], "")
