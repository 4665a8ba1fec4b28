"""Groups of the failures of an agent, with what they counted by day and by caller."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from accounts.models import User
from agents.models.agent import Agent

MAX_SHAPE_CHARS = 300
REASON_CHARS = 20


class FailureGroupQuerySet(models.QuerySet["FailureGroup"]):
    def owned_by(self, user: User) -> "FailureGroupQuerySet":
        """The groups of this user's agents that are not deleted."""
        return self.filter(agent__owner=user, agent__deleted_at=None)


class FailureGroup(models.Model):
    """Failed and refused asks of one agent, for one reason, whose texts have the same shape.

    `agents.core.failure_groups` counts into it. `opened_at`: when the group was made, or opened again after it was
    resolved; `count_before` is its count of then. `reopened_at` is null for a group that was never resolved.
    """

    class State(models.TextChoices):
        OPEN = "open"
        RESOLVED = "resolved"
        IGNORED = "ignored"

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="failure_groups", db_index=False)
    reason = models.CharField(max_length=REASON_CHARS)
    shape = models.CharField(
        max_length=MAX_SHAPE_CHARS, blank=True, help_text="The agent's text without numbers, names and paths."
    )
    digest = models.CharField(max_length=32, help_text="Of reason and shape.")
    state = models.CharField(max_length=8, choices=State, default=State.OPEN, db_default=State.OPEN)
    count = models.PositiveBigIntegerField(default=0)
    count_before = models.PositiveBigIntegerField(default=0, db_default=0)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    opened_at = models.DateTimeField()
    reopened_at = models.DateTimeField(null=True)
    resolved_at = models.DateTimeField(null=True)

    objects: ClassVar[Any] = FailureGroupQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "digest"], name="one_failure_group_per_shape"),
            models.CheckConstraint(
                condition=~Q(state="resolved") | Q(resolved_at__isnull=False), name="a_resolved_group_has_its_time"
            ),
        ]
        indexes = [
            models.Index(fields=["agent", "state", "last_at"], name="failure_group_by_agent"),
            models.Index(fields=["last_at"], name="failure_group_by_age"),
        ]

    def __str__(self) -> str:
        return f"failure group {self.pk} ({self.reason})"


class FailureDay(models.Model):
    """The failures of a group on one UTC day."""

    group = models.ForeignKey(FailureGroup, models.CASCADE, related_name="days", db_index=False)
    day = models.DateField()
    count = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "day"], name="one_failure_day_per_group")]

    def __str__(self) -> str:
        return f"{self.count} failures on {self.day}"


class FailureCaller(models.Model):
    """The failures of a group that one caller got."""

    group = models.ForeignKey(FailureGroup, models.CASCADE, related_name="callers", db_index=False)
    caller = models.ForeignKey(User, models.CASCADE, related_name="failures_met")
    count = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "caller"], name="one_failure_caller_per_group")]

    def __str__(self) -> str:
        return f"failure caller {self.pk}"
