"""The stored states of circuit breakers."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from agnt.models.network import Network
from agnt.models.venue import Venue


class Breaker(models.Model):
    """The state of `agnt.breaker.Breaker`, shared by all processes; changed only under a lock on the row.

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
