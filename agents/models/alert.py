"""The alerts that owners switch on, the warnings, and the mails that wait to be sent."""

from typing import Any, ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from accounts.models import User
from agents.models.agent import Agent
from agents.models.failure import FailureGroup

MAX_EMAIL_CHARS = 254
MAX_OFFLINE_MINUTES = 7 * 24 * 60
MAX_FAILURE_TIMES = 1000


class AlertKind(models.TextChoices):
    """`OFFLINE`: for so many minutes. `BUDGET`, `FAILURES`: so many percent. `NEW_FAILURE`: so many times."""

    OFFLINE = "offline"
    BUDGET = "budget"
    FAILURES = "failures"
    NEW_FAILURE = "new_failure"


class AlertRule(models.Model):
    """One kind of alert that an owner switched on, for all agents that are published and not halted."""

    owner = models.ForeignKey(User, models.CASCADE, related_name="alert_rules")
    kind = models.CharField(max_length=11, choices=AlertKind)
    threshold = models.PositiveIntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(MAX_OFFLINE_MINUTES)],
        help_text="Minutes, percent, or failures.",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "kind"], name="one_alert_rule_per_owner_and_kind")]

    def __str__(self) -> str:
        return f"alert rule {self.pk} ({self.kind})"


class AlertAddress(models.Model):
    """The address of an owner's alerts: used once `confirmed_at` is set, by a link that was mailed there.

    `asked_at`: when such a link was last sent. The row stays when the address is emptied.
    """

    owner = models.OneToOneField(User, models.CASCADE, related_name="alert_address")
    email = models.EmailField(max_length=MAX_EMAIL_CHARS, blank=True)
    confirmed_at = models.DateTimeField(null=True)
    asked_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True, help_text="When a mail to it was given up.")

    def __str__(self) -> str:
        return f"alert address {self.pk}"


class AlertQuerySet(models.QuerySet["Alert"]):
    def open(self) -> "AlertQuerySet":
        """The alerts that have not ended."""
        return self.filter(ended_at=None)

    def raised(self) -> "AlertQuerySet":
        """The alerts that the owner was told of."""
        return self.exclude(raised_at=None)


class Alert(models.Model):
    """One condition of one agent, from when it began until it ended.

    The owner is told when `raised_at` is set, and once more when `ended_at` is. An agent that is not offline long
    enough yet has a row without `raised_at`; when it is back sooner, the row is deleted.
    """

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="alerts")
    failure_group = models.ForeignKey(
        FailureGroup, models.CASCADE, null=True, related_name="alerts", help_text="Of `new_failure` alone."
    )
    kind = models.CharField(max_length=11, choices=AlertKind)
    threshold = models.PositiveIntegerField()
    value = models.PositiveIntegerField(help_text="When it was raised: minutes, percent, or failures.")
    since = models.DateTimeField()
    raised_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    objects: ClassVar[Any] = AlertQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "kind"],
                condition=Q(ended_at=None, failure_group=None),
                name="one_open_alert_per_agent_and_kind",
            ),
            models.UniqueConstraint(
                fields=["failure_group"],
                condition=Q(ended_at=None, failure_group__isnull=False),
                name="one_open_alert_per_failure_group",
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None) | Q(raised_at__isnull=False), name="an_ended_alert_was_raised"
            ),
        ]
        indexes = [
            models.Index(fields=["ended_at"], condition=Q(ended_at__isnull=False), name="alert_by_end"),
        ]

    def __str__(self) -> str:
        return f"alert {self.pk} ({self.kind})"


class Mail(models.Model):
    """A mail to an owner that waits to be sent, written in the transaction that caused it, deleted once sent.

    `message_id` is the same in every attempt. `next_attempt_at`: while it is being sent, the end of the sender's
    lease.
    """

    owner = models.ForeignKey(User, models.CASCADE, related_name="mails")
    to = models.EmailField(max_length=MAX_EMAIL_CHARS)
    subject = models.CharField(max_length=300)
    contents = models.TextField()
    message_id = models.CharField(max_length=64, unique=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    queued_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["next_attempt_at"], name="mail_due")]

    def __str__(self) -> str:
        return f"mail {self.pk}"
