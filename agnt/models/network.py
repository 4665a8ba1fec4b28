"""Networks: what an owner offers to outside programs."""

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F
from django.utils import timezone

from accounts.models import User

MAX_INTERACTIONS_KEPT_DAYS = 400
RULES = ("is_strict", "requires_signature", "accepts_hops", "interactions_kept_days")  # the owner writes these


class NetworkQuerySet(models.QuerySet["Network"]):
    def note_venue_change(self) -> None:
        """Have every process read the venues anew; call it in the transaction that changes one."""
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
