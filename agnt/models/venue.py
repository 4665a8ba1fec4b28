"""Venues, the listings of a network; and the circuit breakers of asks to them."""

import uuid
from decimal import Decimal
from typing import ClassVar

from django.core.validators import MaxLengthValidator, MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone

from agents.models import Agent
from agnt.models.network import Network
from kit.full_text import KIND, NAME, PLACE, TEXT, FullText

MAX_DESCRIPTION_CHARS = 4000
HIGHEST_RANK = 1_000_000


VENUE_WORDS = FullText(  # as the last `AddFullText` of the migrations has it
    "agnt_venue",
    {
        "name": NAME,
        "slug": NAME,
        "agent_name": NAME,
        "area": PLACE,
        "city": PLACE,
        "category": KIND,
        "tags": KIND,
        "description": TEXT,
    },
    json=["tags"],
)


class VenueQuerySet(models.QuerySet["Venue"]):
    ORDER = ("-priority_rank", "name", "pk")

    def in_order(self) -> "VenueQuerySet":
        """The venues in the order in which envelopes and pages list them."""
        return self.order_by(*self.ORDER)


class Venue(models.Model):
    """A venue of a network. Each change goes with `Network.objects.filter(...).note_venue_change()`.

    `public_id`: `venue_id` on the wire; `slug`: names it too. `agent_name`: `agent_id` on the wire, empty: it has
    none. A booking asks `agent` through the hub, or `url` by HTTP; a venue with neither takes every booking.
    `tags`: a list of strings. `priority_rank`: the highest is listed first. `secret_number`: how many secrets it
    has had; until `previous_until` the hub signs with the one before (`agnt.service.keys`).
    """

    network = models.ForeignKey(Network, models.CASCADE, related_name="venues", db_index=False)
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    slug = models.CharField(max_length=80, help_text="Names the venue in envelopes and files, such as la-brisa.")
    agent_name = models.CharField(
        "agent id",
        max_length=128,
        blank=True,
        default="",
        help_text="Envelopes to this name ask the venue itself.",
    )
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="", validators=[MaxLengthValidator(MAX_DESCRIPTION_CHARS)])
    category = models.CharField(
        max_length=80, blank=True, default="", help_text="Programs ask for it in these words."
    )
    area = models.CharField(max_length=120, blank=True, default="")
    city = models.CharField(max_length=120, blank=True, default="")
    tags = models.JSONField(default=list, blank=True, help_text="One on a line, at most 20.")
    price_range = models.CharField(max_length=16, blank=True, default="", help_text="Such as $$.")
    referral_fee_pct = models.DecimalField(
        "referral fee in per cent",
        max_digits=5,
        decimal_places=2,
        default=Decimal(7),
        validators=[MinValueValidator(0), MaxValueValidator(100)],
    )
    priority_rank = models.IntegerField(
        "rank",
        default=0,
        validators=[MinValueValidator(-HIGHEST_RANK), MaxValueValidator(HIGHEST_RANK)],
        help_text="The highest is listed first.",
    )
    is_active = models.BooleanField(
        "offered", default=True, help_text="Without this it is not found, and takes no bookings."
    )
    agent = models.ForeignKey(
        Agent,
        models.SET_NULL,
        verbose_name="agent of this hub",
        null=True,
        blank=True,
        related_name="venues",
        help_text="One of yours, @owner/name: asked before a booking is confirmed.",
    )
    url = models.CharField(
        "URL",
        max_length=2048,
        blank=True,
        default="",
        help_text="Asked by HTTP instead of an agent of this hub.",
    )
    secret_number = models.PositiveIntegerField(default=1, db_default=1, editable=False)
    previous_until = models.DateTimeField("signed with the secret before until", null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    full_text: ClassVar = VENUE_WORDS
    objects: ClassVar[models.Manager["Venue"]] = models.Manager.from_queryset(VenueQuerySet)()

    class Meta:
        constraints = [
            models.UniqueConstraint("network", Lower("slug"), name="one_venue_per_slug_in_any_case"),
            models.UniqueConstraint(
                fields=["network", "agent_name"], condition=~Q(agent_name=""), name="one_venue_per_agent_name"
            ),
            models.CheckConstraint(condition=Q(agent=None) | Q(url=""), name="a_venue_has_an_agent_or_a_url"),
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def is_asked(self) -> bool:
        """True if the hub asks the venue before it writes a booking. Other venues take every booking."""
        return self.agent_id is not None or self.url != ""


class Breaker(models.Model):
    """A stored `clawbridge.breaker.BreakerMemory` of all processes; changed only under a lock on the row.

    `venue` null: the breaker of the network. `failures`: a list of `[at_s, venue]`. Times: Unix seconds.
    """

    network = models.ForeignKey(Network, models.CASCADE, related_name="breakers")
    venue = models.OneToOneField(Venue, models.CASCADE, null=True, blank=True, related_name="breaker")
    failures = models.JSONField(default=list)
    opened_at_s = models.FloatField(null=True, blank=True)
    probe_until_s = models.FloatField(null=True, blank=True)
    openings = models.PositiveIntegerField(default=0)

    objects: ClassVar[models.Manager["Breaker"]] = models.Manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["network"], condition=Q(venue=None), name="one_breaker_of_a_network_itself"
            )
        ]

    def __str__(self) -> str:
        return f"breaker {self.pk}"
