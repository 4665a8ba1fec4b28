"""API keys: who may send envelopes to a network, what they may ask and how often."""

import uuid
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import Credential
from agnt.models.network import Network


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def live(self) -> "ApiKeyQuerySet":
        """Neither revoked nor expired, and their owner is not suspended."""
        unexpired = Q(credential__expires_at=None) | Q(credential__expires_at__gt=Now())
        kind = Credential.Kind.AGNT
        return self.filter(
            unexpired, credential__kind=kind, credential__revoked_at=None, credential__user__is_active=True
        )


class ApiKey(models.Model):
    """A key of a network; its text is that of the credential, which has its name, prefix and end.

    `scope`: each includes those before it. `customer`: who is invoiced. `senders`: a list of the `from` names that
    it may use, empty: any. `secret`, `previous_secret`: what the sender signs with, sealed
    (`agnt.service.keys`); the previous one verifies until `previous_until`. `secret_number`: how many it has had.
    """

    class Tier(models.TextChoices):
        FREE = "free"
        PRO = "pro"
        ENTERPRISE = "enterprise"

    class Scope(models.TextChoices):
        QUERY = "query"
        BOOKING = "booking"
        FULL = "full"

    BOOKING_SCOPES: ClassVar = frozenset({Scope.BOOKING, Scope.FULL})

    credential = models.OneToOneField(Credential, models.CASCADE, related_name="api_key")
    network = models.ForeignKey(Network, models.CASCADE, related_name="keys")
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    tier = models.CharField(max_length=10, choices=Tier, default=Tier.FREE)
    scope = models.CharField(max_length=7, choices=Scope, default=Scope.QUERY)
    customer = models.CharField(max_length=100)
    senders = models.JSONField(
        default=list, blank=True, help_text="The names that it may send as, one on a line. Empty: any."
    )
    secret = models.TextField(editable=False)
    previous_secret = models.TextField(blank=True, default="", editable=False)
    previous_until = models.DateTimeField(null=True, editable=False)
    secret_number = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects: ClassVar[models.Manager["ApiKey"]] = models.Manager.from_queryset(ApiKeyQuerySet)()

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"key {self.public_id}"


class KeyUsage(models.Model):
    """Envelopes that came with a key on one UTC day."""

    key = models.ForeignKey(ApiKey, models.CASCADE, related_name="usage", db_index=False)
    day = models.DateField()
    calls = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key", "day"], name="one_usage_row_per_key_and_day")]

    def __str__(self) -> str:
        return f"usage {self.pk}"
