"""The log of envelopes: who asked what, and how it ended."""

from django.db import models
from django.db.models import Q

from agnt.models.booking import Booking
from agnt.models.key import ApiKey
from agnt.models.network import Network
from agnt.models.venue import Venue


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
