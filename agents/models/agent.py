"""A published way to ask a session."""

from typing import Any, ClassVar

from django.core.validators import MaxLengthValidator, MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import User
from agents.models.session import Session

MAX_BUDGET = 100_000
MAX_CAP = 20
MAX_PAPER_CHARS = 65_536


class AgentQuerySet(models.QuerySet["Agent"]):
    def owned_by(self, user: User) -> "AgentQuerySet":
        return self.filter(owner=user)

    def kept(self) -> "AgentQuerySet":
        """Not deleted."""
        return self.filter(deleted_at=None)

    def published(self) -> "AgentQuerySet":
        """Open to callers: published, kept, and the owner not suspended."""
        return self.kept().filter(status=Agent.Status.PUBLISHED, owner__is_active=True)

    def at(self, handle: str) -> "AgentQuerySet":
        """Those of a handle, `owner/slug`, in any case."""
        return self.filter(handle_key=handle.lower())


class Agent(models.Model):
    """A session others may ask, as `@owner/slug`. The handle is fixed when the row is made."""

    class Status(models.TextChoices):
        DRAFT = "draft"
        PUBLISHED = "published"

    session = models.ForeignKey(Session, models.CASCADE, related_name="agents")
    owner = models.ForeignKey(User, models.CASCADE, related_name="agents")
    handle = models.CharField(max_length=160, editable=False)
    handle_key = models.CharField(max_length=160, editable=False, help_text="The handle in lower case.")
    name = models.CharField(max_length=120)
    tagline = models.CharField(max_length=160, blank=True)
    description = models.TextField(blank=True, validators=[MaxLengthValidator(4096)])
    status = models.CharField(max_length=9, choices=Status, default=Status.DRAFT)
    isolated = models.BooleanField(default=True)
    daily_budget = models.PositiveIntegerField(default=1000, validators=[MaxValueValidator(MAX_BUDGET)])
    concurrency_cap = models.PositiveSmallIntegerField(
        default=5, validators=[MinValueValidator(1), MaxValueValidator(MAX_CAP)]
    )
    suggested_prompts = models.JSONField(default=list, blank=True)
    claude_md = models.TextField(  # noqa: DJ001  the native API tells "never written" from "empty"
        null=True, blank=True, validators=[MaxLengthValidator(MAX_PAPER_CHARS)]
    )
    personalization_prompt = models.TextField(  # noqa: DJ001
        null=True, blank=True, validators=[MaxLengthValidator(MAX_PAPER_CHARS)]
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    published_at = models.DateTimeField(null=True, blank=True, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects: ClassVar[Any] = AgentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["handle_key"], condition=models.Q(deleted_at=None), name="one_kept_agent_per_handle"
            ),
            models.UniqueConstraint(
                fields=["session"], condition=models.Q(deleted_at=None), name="one_kept_agent_per_session"
            ),
        ]
        indexes = [models.Index(fields=["owner"], name="agent_by_owner")]

    def __str__(self) -> str:
        return f"@{self.handle}"

    @property
    def slug(self) -> str:
        """The part of the handle after the owner."""
        return self.handle.partition("/")[2]

    def set_status(self, status: str) -> None:
        """Publish or unpublish; the first publishing is remembered."""
        self.status = status
        if status == self.Status.PUBLISHED and self.published_at is None:
            self.published_at = timezone.now()

    def soft_delete(self) -> None:
        """Free the handle and stop every ask from the next request on; the log stays."""
        type(self).objects.filter(pk=self.pk, deleted_at=None).update(deleted_at=Now(), status=self.Status.DRAFT)


class DailyUsage(models.Model):
    """Asks an agent has accepted on one UTC day; the ledger keeps it at or under the budget."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="usage")
    day = models.DateField()
    queries = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["agent", "day"], name="one_usage_row_per_agent_and_day")]
        verbose_name_plural = "daily usage"

    def __str__(self) -> str:
        return f"{self.queries} on {self.day}"
