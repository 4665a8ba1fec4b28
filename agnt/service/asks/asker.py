"""Asks venues within an envelope's time to live: past their breakers, to a session of the hub or over HTTP."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial

from accounts.quotas import AccountLimit
from agents.core.dispatch import Dispatcher
from agnt import limits, settings
from agnt.models import Venue
from agnt.service.asks.breakers import StoredBreakers, VenueKey
from agnt.service.asks.replies import (
    NETWORK_BUSY,
    NOT_IN_TIME,
    VENUE_BUSY,
    VenueFailed,
    read_acknowledgement,
    read_confirmation,
)
from agnt.service.asks.routes import AgentRoute, VenueAgents, VenueServers, find_agent
from agnt.service.cancellations import describe_order
from agnt.service.keys import derive_venue_secrets
from agnt.service.networks import VenueAsk, build_hop_name
from agnt.wire.payloads import AgntBookingOrder, AgntConfirmOrder
from clawbridge.agnt import Ask, SeenSignatures, describe_ask
from clawbridge.agnt.breakers import FAIR_S, Blame, CircuitOpen, PairPermit
from clawbridge.agnt.fields import MAX_TTL_MS, NETWORK, SIGNATURE_KEYS, EnvelopeRefused, ErrorCode, Json
from clawbridge.agnt.signing import check_hop_limit
from kit.async_db import DbCalls
from kit.concurrency import ConcurrencyLimit
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

AHEAD_S = 0.05  # before the deadline, so that the answer is written in time
DB_CALLS_AT_ONCE = 8


class OpenAsks:
    """The number of asks over HTTP that are open in this process, by venue and by network."""

    def __init__(self) -> None:
        self._of_venue = _make_limit(limits.OPEN_ASKS_OF_VENUE, VENUE_BUSY)
        self._of_network = _make_limit(limits.OPEN_ASKS_OF_NETWORK, NETWORK_BUSY)

    @contextmanager
    def hold(self, venue_key: VenueKey) -> Iterator[None]:
        """Count an ask while the block lasts.

        Raises:
            EnvelopeRefused: `venue_unreachable`: as many are open as may be.
        """
        with self._of_venue.hold(venue_key), self._of_network.hold(venue_key.network_id):
            yield


def _make_limit(limit: AccountLimit, text: str) -> ConcurrencyLimit:
    return ConcurrencyLimit(
        "asks", per_account=limit.most, refuse=lambda _: EnvelopeRefused(ErrorCode.VENUE_UNREACHABLE, text)
    )


class VenueAsker:
    """Asks venues for a hub: past their breakers, by one of two routes."""

    def __init__(self, dispatcher: Dispatcher, breakers: StoredBreakers) -> None:
        self._breakers = breakers
        self._agents = VenueAgents(dispatcher)
        self._servers = VenueServers()
        self._open_asks = OpenAsks()
        self._signatures = SeenSignatures()
        self._db = DbCalls(DB_CALLS_AT_ONCE)
        self._recording = TaskSet()
        self._entering = TaskSet()

    async def ask(self, asked: VenueAsk, deadline: float) -> Json:
        """See `agnt.service.networks.AskVenue`. An error of the function that reads the answer is a result."""
        deadline, order = deadline - AHEAD_S, asked.order
        read: Callable[[Json], Json] = dict  # the agent of a venue answers other envelopes as it likes
        payload = {name: value for name, value in asked.envelope.payload.items() if name not in SIGNATURE_KEYS}
        if isinstance(order, AgntConfirmOrder):
            payload = {"booking_id": str(asked.order_id), "venue_id": str(asked.venue.public_id)}
            payload |= describe_order(order) | ({"user_note": order.user_note} if order.user_note else {})
            read = read_confirmation
        elif isinstance(order, AgntBookingOrder):
            read = read_acknowledgement
        ask = _make_ask(asked, payload, deadline)
        venue_key = VenueKey(asked.network.network_id, asked.venue.pk)
        # Before the breakers: an ask that is refused here must not be the probe of one.
        with self._open_asks.hold(venue_key) if asked.venue.agent_id is None else nullcontext():
            return await self._ask_past_breakers(venue_key, asked, ask, deadline, read)

    async def close(self) -> None:
        """Wait until the ends of all calls are recorded."""
        await self._recording.wait(1.0)
        self._servers.close()

    async def _ask_past_breakers(
        self, venue_key: VenueKey, asked: VenueAsk, ask: Ask, deadline: float, read: Callable[[Json], Json]
    ) -> Json:
        may_probe = ask.ttl_ms >= FAIR_S * 1000  # a probe with less time could end without a result
        try:
            permit, route = await self._enter(venue_key, asked, deadline, may_probe=may_probe)
        except VenueFailed as failed:
            raise _explain(asked, failed) from None
        try:
            if route is None:
                result = read(await self._servers.ask(asked.venue, ask, deadline))
            else:
                envelope = self._sign(asked.venue, ask)
                result = read(await self._agents.ask(route, asked, ask, envelope, deadline))
        except VenueFailed as failed:
            if permit is None:
                failed.blame = Blame.UNKNOWN
            await self._record_now(venue_key, permit, failed.blame)
            raise _explain(asked, failed) from None
        except BaseException:  # the caller disconnected, its key was revoked, or the hub failed
            self._record(venue_key, permit, Blame.UNKNOWN)
            raise
        await self._record_now(venue_key, permit, Blame.NONE)
        return result

    async def _enter(
        self, venue_key: VenueKey, asked: VenueAsk, deadline: float, *, may_probe: bool
    ) -> tuple[PairPermit | None, AgentRoute | None]:
        """Pass the breakers. Returns the route to the venue's agent; None: the venue is asked over HTTP.

        A cancellation needs no permit: the hub repeats it by itself, and orders must not stop by that.

        Raises:
            EnvelopeRefused: `circuit_open`, `ttl_exceeded`.
            VenueFailed: the venue cannot be asked at all.
        """

        def enter() -> tuple[PairPermit | None, AgentRoute | None]:
            has_agent = asked.venue.agent_id is not None
            route = find_agent(asked) if has_agent else None
            if route is None and has_agent:
                rule = "want a published agent of the owner"
                raise VenueFailed(ErrorCode.VENUE_UNREACHABLE, rule, was_sent=False)
            is_order = not isinstance(asked.order, AgntBookingOrder)
            return self._breakers.enter(venue_key, may_probe=may_probe) if is_order else None, route

        entering, has_entered = self._entering.keep(self._db(enter), name="enter"), False
        try:
            done, _ = await asyncio.wait({entering}, timeout=max(0.0, deadline - time.monotonic()))
            has_entered = bool(done)
        finally:
            if not has_entered:
                entering.add_done_callback(partial(self._give_back, venue_key))
        if not has_entered:
            raise EnvelopeRefused(ErrorCode.TTL_EXCEEDED, NOT_IN_TIME)
        try:
            return entering.result()
        except CircuitOpen as refused:
            wait_s = refused.retry_after_s
            raise EnvelopeRefused(ErrorCode.CIRCUIT_OPEN, str(refused), retry_after_s=wait_s) from None

    def _give_back(
        self, venue_key: VenueKey, entering: "asyncio.Task[tuple[PairPermit | None, AgentRoute | None]]"
    ) -> None:
        """Release the permit of a probe whose call is not made."""
        if not entering.cancelled() and entering.exception() is None:
            self._record(venue_key, entering.result()[0], Blame.UNKNOWN)

    async def _record_now(self, venue_key: VenueKey, permit: PairPermit | None, blame: Blame) -> None:
        if recording := self._record(venue_key, permit, blame):
            await asyncio.shield(recording)

    def _record(self, venue_key: VenueKey, permit: PairPermit | None, blame: Blame) -> "asyncio.Task[None] | None":
        """Record the end of a call, also when its caller no longer waits; see `StoredBreakers.leave`."""
        if permit is None or not (blame.is_failure or permit.is_probe):  # the breakers stay as they are
            return None
        return self._recording.start(self._db(self._breakers.leave, venue_key, permit, blame), name="breaker")

    def _sign(self, venue: Venue, ask: Ask) -> Json:
        """The signed envelope of an ask."""
        secret = derive_venue_secrets(venue).signing
        return self._signatures.sign_once(
            ask,
            time.time(),
            lambda at_s: describe_ask(ask, secret=secret, at_s=at_s),
            lambda envelope: envelope["payload"]["_sig"],
        )


def _explain(asked: VenueAsk, failed: VenueFailed) -> EnvelopeRefused:
    """The refusal of a failed ask. The logs of the hub and of the network say what the venue has to mend."""
    refused = failed.refusal
    if failed.is_fault:
        refused.about = failed.describe()
        extra = {"venue": str(asked.venue.public_id), "counts": failed.blame.value, **refused.about}
        logger.warning("agnt.venue_failed", extra=extra)
    return refused


def _make_ask(asked: VenueAsk, payload: Json, deadline: float) -> Ask:
    """The question to a venue, with the sender and the timestamp of the envelope, which may come again.

    An envelope that came with hops is passed on by one more, the network's own.

    Raises:
        EnvelopeRefused: `ttl_exceeded`, `routing_loop`.
    """
    envelope, venue = asked.envelope, asked.venue
    check_hop_limit(envelope.via)
    left_ms = int((deadline - time.monotonic()) * 1000)
    if left_ms < 1:
        raise EnvelopeRefused(ErrorCode.TTL_EXCEEDED, NOT_IN_TIME)
    ask = Ask(
        sender=envelope.sender,
        intent=envelope.intent,
        payload=payload,
        to=venue.agent_name or str(venue.public_id),
        agent_context=envelope.agent_context if envelope.to != NETWORK else {},
        ttl_ms=min(left_ms, MAX_TTL_MS),
    )
    if timestamp := asked.asked_at or envelope.timestamp:
        ask = replace(ask, timestamp=timestamp)
    if envelope.via:
        own = build_hop_name(asked.network.owner_login, settings.PUBLIC_URL)
        ask = replace(ask, sender=own, origin=envelope.origin, via=envelope.via)
    return ask
