"""Bookings, what they cost (in integer US cents), and the cancellations that venues are to be told."""

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from agnt.models.network import ApiKey, Network
from agnt.models.venue import Venue


class Booking(models.Model):
    """A booking that an outside program confirmed. A venue with bookings is deactivated, not deleted.

    `sender`: `from` of the envelope. `slot_time`: as it was sent. `venue_booking_id`: the venue's own id of it.
    `venue_reply`: the payload with which the venue accepted, JSON; empty: the venue was not asked.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        CONFIRMED = "confirmed"
        COMPLETED = "completed"
        CANCELLED = "cancelled"
        NO_SHOW = "no_show"

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    network = models.ForeignKey(Network, models.CASCADE, related_name="bookings", db_index=False)
    venue = models.ForeignKey(Venue, models.RESTRICT, related_name="bookings", db_index=False)
    key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, blank=True, related_name="bookings")
    sender = models.CharField(max_length=128)
    slot_id = models.CharField(max_length=128, blank=True, default="")
    slot_time = models.CharField(max_length=64, blank=True, default="")
    party_size = models.PositiveIntegerField(null=True, blank=True)
    user_note = models.CharField(max_length=500, blank=True, default="")
    status = models.CharField(max_length=9, choices=Status, default=Status.PENDING)
    venue_booking_id = models.CharField(max_length=128, blank=True, default="", db_default="")
    venue_reply = models.TextField(blank=True, default="", db_default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        indexes = [
            models.Index(fields=["network", "created_at"], name="booking_by_time"),
            models.Index(fields=["venue", "created_at"], name="booking_by_venue"),
        ]

    def __str__(self) -> str:
        return f"booking {self.public_id}"


class Invoice(models.Model):
    """The amount that one customer of a network pays for one UTC day.

    `tried_at`: when it was sent first, if it may have arrived. `external_id`: its id at the invoicer, once sent.
    """

    class State(models.TextChoices):
        OPEN = "open"
        SENT = "sent"

    network = models.ForeignKey(Network, models.CASCADE, related_name="invoices", db_index=False)
    customer = models.CharField(max_length=100)
    day = models.DateField()
    total_cents = models.PositiveBigIntegerField(default=0)
    count = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=4, choices=State, default=State.OPEN)
    tried_at = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    external_id = models.CharField(max_length=128, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["network", "customer", "day"], name="one_invoice_per_customer_and_day")
        ]
        indexes = [models.Index(fields=["id"], condition=Q(state="open"), name="invoice_open")]

    def __str__(self) -> str:
        return f"invoice {self.pk}"


class UsageEvent(models.Model):
    """The charge for one booking. `customer`: as the key had it then. `invoice` null: it is not invoiced yet."""

    network = models.ForeignKey(Network, models.CASCADE, related_name="usage_events", db_index=False)
    booking = models.OneToOneField(Booking, models.RESTRICT, related_name="usage_event")
    key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, blank=True, related_name="usage_events")
    customer = models.CharField(max_length=100)
    amount_cents = models.PositiveIntegerField()
    at = models.DateTimeField()
    invoice = models.ForeignKey(Invoice, models.RESTRICT, null=True, blank=True, related_name="events")

    class Meta:
        indexes = [
            models.Index(fields=["network", "at"], name="usage_event_by_time"),
            models.Index(fields=["at"], condition=Q(invoice=None), name="usage_event_not_invoiced"),
        ]

    def __str__(self) -> str:
        return f"usage event {self.pk}"


class Cancellation(models.Model):
    """A `booking.cancel` for a venue, which is asked before a booking is written.

    The hub writes it with the claim of an order, as `ASKING`, and deletes it when the booking is written or the
    venue declines. Otherwise the venue may hold a reservation that is no booking: the row becomes `OWED`, as one
    whose process died does when it is due. `public_id`: of the order, and of the booking that is made of it.
    `customer`, `sender`, `timestamp`: the event of the order, empty for the cancellation of a booking. `asked_at`:
    the timestamp that the order has at the venue. `reservation`: by what the venue finds it: fields of the order,
    and the venue's own id of the booking.
    """

    class State(models.TextChoices):
        ASKING = "asking", "being asked"
        OWED = "owed", "to be told"
        TOLD = "told", "acknowledged"
        GIVEN_UP = "given_up", "given up"

    class Reason(models.TextChoices):
        NO_ANSWER = "no_answer", "no answer that counts came in time"
        KEY_REVOKED = "key_revoked", "the caller's key was revoked"
        OWNER = "owner", "the network's owner cancelled"
        CALLER = "caller", "the caller cancelled"

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    network = models.ForeignKey(Network, models.CASCADE, related_name="cancellations", db_index=False)
    venue = models.ForeignKey(Venue, models.CASCADE, related_name="cancellations", db_index=False)
    customer = models.CharField(max_length=100, blank=True, default="")
    sender = models.CharField(max_length=128, blank=True, default="")
    timestamp = models.CharField(max_length=64, blank=True, default="")
    asked_at = models.CharField(max_length=64, blank=True, default="")
    reservation = models.JSONField(default=dict)
    reason = models.CharField(max_length=11, choices=Reason, default=Reason.NO_ANSWER)
    state = models.CharField(max_length=8, choices=State, default=State.ASKING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=300, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    ended_at = models.DateTimeField(null=True)

    UNSETTLED: ClassVar = (State.ASKING, State.OWED)
    objects: ClassVar[models.Manager["Cancellation"]] = models.Manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["next_attempt_at"], condition=Q(state__in=["asking", "owed"]), name="cancellation_due"
            ),
            models.Index(
                fields=["venue", "customer"],
                condition=Q(state__in=["asking", "owed"]),
                name="cancellation_open",
            ),
            models.Index(fields=["network", "sender", "timestamp"], name="cancellation_by_event"),
            models.Index(fields=["venue", "-created_at"], name="cancellation_by_venue"),
        ]

    def __str__(self) -> str:
        return f"cancellation {self.public_id} ({self.state})"
