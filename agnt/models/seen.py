"""What a network has received: so that one envelope counts once, and no signature serves twice."""

from django.db import models

from agnt.models.key import ApiKey
from agnt.models.network import Network


class SeenEnvelope(models.Model):
    """An envelope that runs, or was answered. Equal `sender`, `intent` and `timestamp` are one event.

    `timestamp`: the exact text that was sent. `payload_digest`: SHA-256 in hex. `answer`: the response, JSON, once
    it is done. `expires_at`: the row is of no use from then on.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"

    network = models.ForeignKey(Network, models.CASCADE, related_name="seen_envelopes", db_index=False)
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
                fields=["network", "sender", "intent", "timestamp"], name="one_envelope_per_event"
            )
        ]

    def __str__(self) -> str:
        return f"envelope {self.pk} ({self.state})"


class SeenSignature(models.Model):
    """A signature that was verified. `event_digest`: SHA-256 in hex of the event that it came with."""

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
