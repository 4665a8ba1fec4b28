"""Halts of agents, of owners and of callers."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from agents.models.agent import Agent

REASON_CHARS = 200


class HaltQuerySet(models.QuerySet["Halt"]):
    def active(self) -> "HaltQuerySet":
        """The halts that are not lifted yet."""
        return self.filter(lifted_at=None)


class Halt(models.Model):
    """While it is not lifted, its agent, all of its owner's agents and sessions, or its caller's asks stand still.

    `by_staff`: an administrator's; the owner of an agent cannot lift it. `made_by` null: the command line.
    """

    class Kind(models.TextChoices):
        AGENT = "agent"
        OWNER = "owner"
        CALLER = "caller"

    kind = models.CharField(max_length=6, choices=Kind)
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, blank=True, related_name="halts", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, null=True, blank=True, related_name="halts", db_index=False)
    by_staff = models.BooleanField()
    reason = models.CharField(max_length=REASON_CHARS, blank=True)
    made_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+", db_index=False)
    made_at = models.DateTimeField(default=timezone.now, editable=False)
    lifted_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+", db_index=False)
    lifted_at = models.DateTimeField(null=True)

    objects: ClassVar[Any] = HaltQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind="agent", agent__isnull=False, user=None)
                | Q(kind__in=["owner", "caller"], agent=None, user__isnull=False),
                name="a_halt_names_what_it_halts",
            ),
            models.UniqueConstraint(
                fields=["agent", "by_staff"], condition=Q(lifted_at=None), name="one_active_halt_of_an_agent"
            ),
            models.UniqueConstraint(
                fields=["user", "kind", "by_staff"], condition=Q(lifted_at=None), name="one_active_halt_of_a_user"
            ),
        ]

    def __str__(self) -> str:
        return f"halt {self.pk}"

    @property
    def whom(self) -> str:
        """The halted agent or user in words: an agent's handle, or whose agents, or whose asks."""
        if self.agent is not None:
            return str(self.agent)
        return f"{self.user}'s agents" if self.kind == self.Kind.OWNER else f"{self.user}'s questions"
