"""The rows of an envelope: key, count and log, written by plain SQL (docs/adr/0005); and its venue and booking."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Model, QuerySet
from django.db.models.functions import Lower

from accounts.models import Credential
from agnt.models import Booking, KeyUsage, Venue
from agnt.service.bookings import StatusRefused, change_status, describe_state, find_of_caller
from agnt.service.cancellations import Reason
from agnt.service.key_checks import Rate
from agnt.service.keys import FoundKey, find_key_of
from agnt.service.venues.search import VenueSearch
from agnt.wire.envelope import Envelope, make_field_error
from agnt.wire.payloads import AgntBookingOrder, AgntConfirmOrder, AgntListOrder, AgntSearchOrder, Order
from clawbridge.agnt.fields import NETWORK, EnvelopeRefused, ErrorCode, Json
from kit import sql
from kit.clock import iso
from kit.ids import read_uuid

TRIES = 5
LOCK_FAILURES = frozenset({"40P01", "40001", "55P03"})
Result = TypeVar("Result")
_INSERT = "INSERT INTO {table} ({columns}) VALUES ({marks}) RETURNING id"
_COUNT = (
    "INSERT INTO {table} (key_id, day, calls) VALUES (%s, %s, 1) ON CONFLICT (key_id, day)"
    " DO UPDATE SET calls = {table}.calls + 1 RETURNING calls"
)
NETWORK_VERSION = "1.0"
REFERRAL_FEE_PCT = 7


def find_live_key(digest: str) -> FoundKey | None:
    """The live key; by a new connection where this thread's has died, as in a restart of PostgreSQL."""
    try:
        return find_key_of(digest)
    except sql.DATABASE_UNAVAILABLE:
        connection.close()
        return find_key_of(digest)


def run_in_transaction(work: Callable[[], Result], *, is_flushed: bool = True) -> Result:
    """Run `work` in a transaction; repeat it after a lost lock, connection or race for the event."""
    atomic = transaction.atomic if is_flushed else sql.atomic_unflushed
    for tries_left in reversed(range(TRIES)):
        connection.ensure_connection()
        used, is_run = connection.connection, False
        try:
            with atomic():
                result = work()
                is_run = True
            break
        except IntegrityError:  # another request has added the event: now it is known
            if not tries_left:
                raise
        except OperationalError as failure:
            # Django replaces a connection that was lost.
            is_lost = not is_run and connection.connection is not used
            if not tries_left or not (is_lost or sql.state_of(failure) in LOCK_FAILURES):
                raise
    return result


def count_call(key: FoundKey, now: datetime) -> Rate:
    """Count a call of a key, and store the time of its use. The row of the day is locked until the commit."""
    if key.is_stale:
        Credential.touch([key.credential_id])
    values = [key.key_id, now.astimezone(UTC).date().isoformat()]
    used = int(sql.rows(_COUNT.format(table=KeyUsage._meta.db_table), values)[0][0])
    return Rate.of_day(key.tier, used, now)


def insert(model: type[Model], **columns: object) -> int:
    """Insert a row with a value for each of its columns; its id."""
    values = [sql.moment(value) if isinstance(value, datetime) else value for value in columns.values()]
    marks = ", ".join(["%s"] * len(values))
    statement = _INSERT.format(table=model._meta.db_table, columns=", ".join(columns), marks=marks)
    return int(sql.rows(statement, values)[0][0])


def answer_read(venues: VenueSearch, key: FoundKey, order: Order, *, sender: str, now: datetime) -> Json:
    """The result of an order that changes nothing.

    Raises:
        EnvelopeRefused: `booking_not_found`.
    """
    if isinstance(order, AgntBookingOrder):
        return describe_state(_find_booking(key, order))
    if not isinstance(order, AgntSearchOrder | AgntListOrder):
        return {
            "active_venues": venues.count(key.network_id, key.venues_version),
            "tier": key.tier,
            "agent_id": sender,
            "network_version": NETWORK_VERSION,
        }
    found = venues.find(key.network_id, key.venues_version, order, now)
    if isinstance(order, AgntListOrder):
        return {"venues": found.venues, "count": found.count}
    return {
        "results": found.venues,
        "count": found.count,
        "fee_pct": REFERRAL_FEE_PCT,
        "expires_at": iso(found.expires_at),
    }


def cancel_booking(key: FoundKey, order: AgntBookingOrder) -> Booking:
    """Cancel a booking of the customer; a repeated call succeeds.

    Raises:
        EnvelopeRefused: `booking_not_found`, `booking_ended`.
    """
    booking = _find_booking(key, order)
    try:
        return change_status(booking, Booking.Status.CANCELLED, by=Reason.CALLER)
    except StatusRefused as refused:
        raise EnvelopeRefused(ErrorCode.BOOKING_ENDED, f"the booking is {refused.status}") from None


def check_recipient(envelope: Envelope, order: Order) -> None:
    """Refuse an order about a booking that is not `to` the network, which knows the booking.

    Raises:
        EnvelopeRefused: `invalid_envelope`.
    """
    if isinstance(order, AgntBookingOrder) and envelope.to != NETWORK:
        raise make_field_error(f"to: {envelope.intent} goes to {NETWORK}", ["to"])


def find_venue(network_id: int, envelope: Envelope, order: Order) -> Venue:
    """The active venue of an order, or whose agent an envelope is for.

    Raises:
        EnvelopeRefused: `venue_not_found`; `invalid_envelope`: `to` names the agent of another venue.
    """
    active = Venue.objects.filter(network_id=network_id, is_active=True)
    named = find_named(active, order.venue_id) if isinstance(order, AgntConfirmOrder) else None
    if isinstance(order, AgntConfirmOrder) and named is None:
        raise make_venue_error()
    recipient = named if envelope.to == NETWORK else active.filter(agent_name=envelope.to).first()
    if recipient is None:
        raise make_venue_error()
    if named is not None and named != recipient:
        raise make_field_error("to and venue_id name two venues", ["to", "payload.venue_id"])
    return recipient


def find_named(venues: QuerySet[Venue], name: str) -> Venue | None:
    """The venue with this UUID or slug; a UUID comes before a slug that reads like one."""
    if (public_id := read_uuid(name)) and (found := venues.filter(public_id=public_id).first()):
        return found
    return venues.alias(folded=Lower("slug")).filter(folded=name.lower()).first()


def _find_booking(key: FoundKey, order: AgntBookingOrder) -> Booking:
    if booking := find_of_caller(key, order.booking_id):
        return booking
    raise EnvelopeRefused(ErrorCode.BOOKING_NOT_FOUND, "this customer has no such booking")


def make_venue_error() -> EnvelopeRefused:
    """The error for a venue that is not there, not active, or of another network."""
    return EnvelopeRefused(ErrorCode.VENUE_NOT_FOUND, "this network has no such venue")
