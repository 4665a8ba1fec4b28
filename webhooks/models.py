"""Subscriptions of users to events, and each delivery as a row."""

from datetime import datetime
from typing import Any, ClassVar

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from accounts.models import Credential, User

MAX_URL_CHARS = 2048
UNHEALTHY_AFTER = 20


class SubscriptionQuerySet(models.QuerySet["Subscription"]):
    def owned_by(self, user: User) -> "SubscriptionQuerySet":
        """The subscriptions of a user, and of the user's API keys."""
        return self.filter(owner=user)

    def of_key(self, credential_id: int) -> "SubscriptionQuerySet":
        """The subscriptions of an API key."""
        return self.filter(credential=credential_id)

    def note_success(self, now: datetime) -> None:
        """Reset the count of failures after a delivery that succeeded."""
        self.update(status=Subscription.Status.ACTIVE, consecutive_failures=0, last_delivery_at=now)

    def note_failure(self, *, exhausted: bool) -> None:
        """Count a failed attempt; after 20 in a row, or an event that is given up, the receiver is unhealthy."""
        # The database increments the count, so that attempts that end at the same time all count.
        self.update(consecutive_failures=F("consecutive_failures") + 1)
        unwell = self if exhausted else self.filter(consecutive_failures__gte=UNHEALTHY_AFTER)
        unwell.update(status=Subscription.Status.UNHEALTHY)


class Subscription(models.Model):
    """The address to which the hub sends some events of one user. The secrets are sealed.

    `credential`: of the API key that owns the subscription, if any; then it gets only events that name this
    credential, and none while the credential is not live. `owner` is the user whose key it is.
    """

    class Status(models.TextChoices):
        ACTIVE = "active"
        UNHEALTHY = "unhealthy"

    owner = models.ForeignKey(User, models.CASCADE, related_name="webhooks")
    credential = models.ForeignKey(
        Credential, models.CASCADE, null=True, blank=True, related_name="webhooks", verbose_name="API key"
    )
    url = models.CharField(max_length=MAX_URL_CHARS)
    events = models.TextField(help_text="Names of events, separated by spaces; * is all of them.")
    session_id = models.CharField(max_length=36, blank=True, help_text="Of this session only.")
    routing_name = models.CharField(max_length=81, blank=True, help_text="Of sessions of this @name only.")
    status = models.CharField(max_length=9, choices=Status, default=Status.ACTIVE)
    consecutive_failures = models.PositiveIntegerField(default=0)
    secret = models.TextField(help_text="Sealed.")
    previous_secret = models.TextField(blank=True, help_text="Sealed; signs too until its time is over.")
    previous_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_delivery_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(
        null=True, blank=True, help_text="Since then nothing is queued for it or sent to it."
    )

    objects: ClassVar[Any] = SubscriptionQuerySet.as_manager()

    def __str__(self) -> str:
        return f"webhook {self.pk}"

    @property
    def event_names(self) -> list[str]:
        """The events that are sent to this address."""
        return self.events.split()

    @property
    def is_paused(self) -> bool:
        """True while the hub queues and sends nothing for this subscription."""
        return self.paused_at is not None

    def sealed_secrets(self, now: datetime) -> list[str]:
        """The secrets that sign, newest first."""
        is_rolling = self.previous_until is not None and now < self.previous_until
        return [self.secret, self.previous_secret] if is_rolling else [self.secret]


class Sendable(models.Model):
    """A payload for one receiver, written in the transaction that caused it.

    `next_attempt_at` is when it will be sent next: while it is being sent, the end of the sender's lease.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        SENDING = "sending"
        DELIVERED = "delivered"
        FAILED = "failed"

    UNSETTLED = (Status.PENDING, Status.SENDING)

    payload = models.TextField(help_text="JSON.")
    status = models.CharField(max_length=9, choices=Status, default=Status.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    queued_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField(null=True)
    delivered_at = models.DateTimeField(null=True)
    last_status = models.PositiveSmallIntegerField(null=True)
    last_error = models.CharField(max_length=200, blank=True)
    traceparent = models.CharField(
        max_length=55, blank=True, default="", db_default="", help_text="W3C Trace Context of what it tells."
    )

    objects: ClassVar[models.Manager[Any]]

    class Meta:
        abstract = True


class Delivery(Sendable):
    """One event for one subscription."""

    subscription = models.ForeignKey(Subscription, models.CASCADE, related_name="deliveries", db_index=False)
    event_id = models.CharField(max_length=48, unique=True)
    type = models.CharField(max_length=64)
    agent_handle = models.CharField(
        max_length=160, blank=True, default="", db_default="", help_text="Of the agent it is about, if any."
    )
    last_response = models.TextField(
        blank=True, default="", db_default="", help_text="The beginning of the body of the last answer."
    )

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            models.CheckConstraint(
                condition=~Q(status__in=["pending", "sending"]) | Q(next_attempt_at__isnull=False),
                name="an_unsettled_delivery_is_tried_again",
            )
        ]
        indexes = [
            models.Index(
                fields=["next_attempt_at"], condition=Q(status__in=["pending", "sending"]), name="delivery_due"
            ),
            models.Index(fields=["subscription", "-id"], name="delivery_by_subscription"),
            models.Index(fields=["queued_at"], name="delivery_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.event_id}"


class SendingPause(models.Model):
    """While its one row exists, deliveries of webhooks, pushes and mails are not sent."""

    ONLY = 1

    id = models.PositiveSmallIntegerField(primary_key=True, default=ONLY)
    paused_at = models.DateTimeField()
    reason = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="sending_is_paused_once")]

    def __str__(self) -> str:
        return f"sending paused since {self.paused_at:%Y-%m-%d %H:%M:%S}"
