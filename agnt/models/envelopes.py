"""The received envelopes of a network: an envelope counts once, no signature serves twice; and their log."""

from django.db import models
from django.db.models import Q

from agnt.models.booking import Booking
from agnt.models.network import ApiKey, Network
from agnt.models.venue import Venue


class SeenEnvelope(models.Model):
    """An envelope that runs, or was answered.

    Equal `sender`, `intent` and `timestamp` of one customer are one event: no customer gets the answer to another.
    `timestamp`: the exact text that was sent; in a row without `sender`, the signature of the payload, which names
    the same event. `payload_digest`: SHA-256 in hex. `answer`: the response, JSON, once
    it is done. `expires_at`: the row is of no use from then on.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"

    network = models.ForeignKey(Network, models.CASCADE, related_name="seen_envelopes", db_index=False)
    customer = models.CharField(max_length=100)
    sender = models.CharField(max_length=128)
    intent = models.CharField(max_length=32)
    timestamp = models.CharField(max_length=64)
    payload_digest = models.CharField(max_length=64)
    key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, related_name="+", db_index=False)
    state = models.CharField(max_length=7, choices=State, default=State.RUNNING)
    answer = models.TextField(blank=True, default="")
    http_status = models.PositiveSmallIntegerField(null=True)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["network", "customer", "sender", "intent", "timestamp"], name="one_envelope_per_event"
            )
        ]

    def __str__(self) -> str:
        return f"envelope {self.pk} ({self.state})"


class SeenSignature(models.Model):
    """A signature that an earlier release verified. This release writes none; the next one drops the table."""

    network = models.ForeignKey(Network, models.CASCADE, related_name="seen_signatures", db_index=False)
    signature = models.CharField(max_length=64)
    event_digest = models.CharField(max_length=64)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["network", "signature"], name="one_event_per_signature"),
        ]

    def __str__(self) -> str:
        return f"signature {self.pk}"


class Interaction(models.Model):
    """One envelope that came with a key; never a key or a signature.

    `sender`, `recipient`: `from` and `to`. `status`: `ok`, `duplicate` or the code of the error. `metadata`: the
    size of `agent_context`, names that were dropped, and what else is known of the program that asked.
    """

    network = models.ForeignKey(Network, models.CASCADE, related_name="interactions", db_index=False)
    key = models.ForeignKey(ApiKey, models.SET_NULL, null=True, related_name="interactions", db_index=False)
    at = models.DateTimeField()
    source = models.CharField(max_length=16, default="external_agent")
    sender = models.CharField(max_length=128, blank=True)
    recipient = models.CharField(max_length=128, blank=True)
    intent = models.CharField(max_length=32, blank=True)
    status = models.CharField(max_length=32)
    http_status = models.PositiveSmallIntegerField()
    latency_ms = models.PositiveIntegerField()
    venue = models.ForeignKey(Venue, models.SET_NULL, null=True, related_name="interactions", db_index=False)
    booking = models.ForeignKey(Booking, models.SET_NULL, null=True, related_name="interactions", db_index=False)
    metadata = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["network", "at"], name="interaction_by_time"),
            models.Index(fields=["key", "at"], name="interaction_by_key"),
            models.Index(fields=["venue", "at"], condition=Q(venue__isnull=False), name="interaction_by_venue"),
            models.Index(fields=["booking"], condition=Q(booking__isnull=False), name="interaction_by_booking"),
        ]

    def __str__(self) -> str:
        return f"interaction {self.pk} ({self.status})"
