"""Networks, through which an owner offers venues to outside programs; and API keys, with which the programs send
envelopes.
"""

import uuid
from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import Credential, User

MAX_INTERACTIONS_KEPT_DAYS = 400
RULES = ("is_strict", "requires_signature", "accepts_hops", "interactions_kept_days")  # the owner writes these


class NetworkQuerySet(models.QuerySet["Network"]):
    def note_venue_change(self) -> None:
        """Make every process read the venues anew. The caller is in the transaction that changes a venue."""
        self.update(venues_version=F("venues_version") + 1)


class Network(models.Model):
    """The network of one owner, with the rules for the envelopes that its keys send (`agnt.service.networks`).

    `service_user`: asks to the agents of venues run as this user. `is_strict`: unknown keys of a payload are
    refused. `requires_signature`: envelopes without `_sig` are refused. `accepts_hops`: those with `via` are
    accepted. `venues_version`: grows with each change of a venue.
    """

    owner = models.OneToOneField(User, models.CASCADE, related_name="network")
    service_user = models.OneToOneField(User, models.PROTECT, related_name="served_network", editable=False)
    is_strict = models.BooleanField(
        "refuse payloads with unknown keys",
        default=True,
        help_text="Without this they are dropped, and the log names them.",
    )
    requires_signature = models.BooleanField(
        "require signed payloads",
        default=False,
        help_text="Envelopes without _sig are refused. The signing secret of a key was shown with it.",
    )
    accepts_hops = models.BooleanField(
        "accept envelopes that others passed on",
        default=False,
        db_default=False,
        help_text="Aggregators send them, with a signed chain of hops in via. Without this they are refused.",
    )
    venues_version = models.PositiveBigIntegerField(default=0, editable=False)
    interactions_kept_days = models.PositiveSmallIntegerField(
        "days to keep the log of envelopes",
        default=7,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_INTERACTIONS_KEPT_DAYS)],
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects: ClassVar[models.Manager["Network"]] = models.Manager.from_queryset(NetworkQuerySet)()

    def __str__(self) -> str:
        return f"network of user {self.owner_id}"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def live(self) -> "ApiKeyQuerySet":
        """The keys that are neither revoked nor expired, and whose owner is not suspended."""
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
