"""The breakers of venues and networks as rows, which all processes share.

`clawbridge.agnt.breakers` has the functions that change them.

A call past closed breakers reads two rows and locks none, and its success writes nothing. Every change happens to
rows that are locked, at a time that the database's clock says after the lock: of the calls of all processes one
probes.
"""

import threading
from collections.abc import Collection
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.models import User
from agnt.models import Breaker as BreakerRow
from agnt.models import Network, Venue
from agnt.service.figures import AgntCounts
from clawbridge.agnt.breakers import COOLDOWN_S, Blame, CircuitOpen, Pair, PairPermit, enter, leave
from clawbridge.breaker import BreakerFailure, BreakerMemory
from kit.clock import approximate_now, db_now

OPEN, HALF_OPEN, CLOSED = "open", "half_open", "closed"
_COLUMNS = ("venue_id", "failures", "opened_at_s", "probe_until_s", "openings")


class VenueKey(NamedTuple):
    """The venue and the network whose breakers a call passes, by the ids of their rows."""

    network_id: int
    venue_id: int


class StoredBreakers:
    """The breakers of all venues. `counts`: of the breakers that this process opens, in the thread that opens one.

    Both methods query the database: call them in a thread.
    """

    def __init__(self, counts: AgntCounts) -> None:
        self._counts = counts
        self._counting = threading.Lock()

    def enter(self, key: VenueKey, *, may_probe: bool = True) -> PairPermit:
        """Let a call through. `may_probe`: True if the call may probe an open breaker.

        Raises:
            CircuitOpen: not now; nothing is to be sent.
        """
        pair = _read(key, _rows_of(key).values_list(*_COLUMNS))
        if pair.is_open:
            return self._enter_open(key, pair, may_probe=may_probe)
        return enter(pair, 0)[1]  # closed breakers let every call through, so the time does not matter

    def leave(self, key: VenueKey, permit: PairPermit, blame: Blame) -> None:
        """Record the end of a call.

        A probe whose end is not recorded counts as a failure after `clawbridge.agnt.breakers.PROBE_S`.
        """
        if not blame.is_failure and not permit.is_probe:
            return
        try:
            with transaction.atomic():
                before = _lock(key)
                after = leave(before, permit, db_now().timestamp(), venue=str(key.venue_id), blame=blame)
                _write(key, before, after)
        except IntegrityError:  # the venue was deleted while it was asked, and its breaker with it
            return
        self._note_openings(before, after)

    def _enter_open(self, key: VenueKey, seen: Pair, *, may_probe: bool) -> PairPermit:
        """Let a call through breakers of which one was open a moment ago."""
        try:
            enter(seen, approximate_now().timestamp())
        except CircuitOpen as refused:
            if refused.pair == seen:  # nothing to write, so no lock
                raise
        if not may_probe:
            raise CircuitOpen(seen, is_network=not seen.venue.is_open, retry_after_s=1)
        refusal = None
        with transaction.atomic():
            before = _lock(key)
            try:
                after, permit = enter(before, db_now().timestamp())
            except CircuitOpen as refused:  # raised after the commit: a lost probe has opened a breaker again
                after, refusal = refused.pair, refused
            _write(key, before, after)
        self._note_openings(before, after)
        if refusal is not None:
            raise refusal
        return permit

    def _note_openings(self, before: Pair, after: Pair) -> None:
        with self._counting:
            self._counts.breakers_opened += after.network.openings - before.network.openings
            self._counts.venue_breakers_opened += after.venue.openings - before.venue.openings


def find_breaker(network_id: int) -> str:
    """Of a network's breaker: `open` while it refuses all calls, `half_open` when one may probe, else `closed`."""
    opened = _of_networks().filter(network=network_id).values_list("opened_at_s", flat=True).first()
    if opened is None:
        return CLOSED
    return OPEN if opened > _cooldown_start_s() else HALF_OPEN


def find_hub_breaker() -> str:
    """The state of the hub: `open` while each network that has venues has an open breaker, else `closed`."""
    is_open = Exists(_of_networks().filter(network=OuterRef("pk"), opened_at_s__gt=_cooldown_start_s()))
    with_venues = Network.objects.filter(Exists(Venue.objects.filter(network=OuterRef("pk"))))
    return OPEN if with_venues.exists() and not with_venues.filter(~is_open).exists() else CLOSED


def _of_networks() -> QuerySet[BreakerRow]:
    return BreakerRow.objects.filter(venue=None)


def _cooldown_start_s() -> float:
    """A breaker that opened after this time refuses all calls."""
    return approximate_now().timestamp() - COOLDOWN_S


def list_open_breakers(owner: User) -> QuerySet[BreakerRow]:
    """The open breakers of an owner's network and of its venues."""
    return BreakerRow.objects.filter(network__owner=owner, opened_at_s__isnull=False)


def _rows_of(key: VenueKey) -> QuerySet[BreakerRow]:
    return BreakerRow.objects.filter(Q(venue=None) | Q(venue=key.venue_id), network=key.network_id)


def _read(key: VenueKey, rows: Collection[Any] | QuerySet[BreakerRow, Any]) -> Pair:
    """The breakers in rows; one without a row is closed."""
    found = {row[0]: _make(*row[1:]) for row in rows}
    return Pair(found.get(key.venue_id, BreakerMemory()), found.get(None, BreakerMemory()))


def _make(
    failures: list[tuple[float, str]], opened_at_s: float | None, probe_until_s: float | None, openings: int
) -> BreakerMemory:
    return BreakerMemory(tuple(BreakerFailure(*one) for one in failures), opened_at_s, probe_until_s, openings)


def _lock(key: VenueKey) -> Pair:
    """The breakers of a call while their rows are locked, always that of the network first.

    Rows that are missing are made: only what is there can be locked.
    """
    locked = _rows_of(key).select_for_update(no_key=True).order_by("pk").values_list(*_COLUMNS)
    found = list(locked)
    if len(found) < 2:
        made = [BreakerRow(network_id=key.network_id, venue_id=one) for one in (None, key.venue_id)]
        BreakerRow.objects.bulk_create(made, ignore_conflicts=True)
        found = list(locked.all())
    return _read(key, found)


def _write(key: VenueKey, before: Pair, after: Pair) -> None:
    """Write the breakers that have changed, in the transaction that locked them."""
    changes: tuple[tuple[int | None, BreakerMemory, BreakerMemory], ...] = (
        (None, before.network, after.network),
        (key.venue_id, before.venue, after.venue),
    )
    for venue_id, old, new in changes:
        if new != old:
            BreakerRow.objects.filter(network=key.network_id, venue=venue_id).update(
                failures=[(one.at_s, one.source) for one in new.failures],
                opened_at_s=new.opened_at_s,
                probe_until_s=new.probe_until_s,
                openings=new.openings,
            )
