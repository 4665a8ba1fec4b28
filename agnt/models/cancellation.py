"""Orders that a venue is, or may have to be, told to cancel: rows of an outbox."""

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from agnt.models.network import Network
from agnt.models.venue import Venue


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
