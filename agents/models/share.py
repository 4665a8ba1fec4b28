"""Who else may see and steer a session."""

from django.db import models
from django.utils import timezone

from accounts.models import User
from agents.models.session import Session


class Share(models.Model):
    """A session lent to another user. Each role includes those before it."""

    class Role(models.TextChoices):
        VIEWER = "viewer"
        PROMPTER = "prompter"
        APPROVER = "approver"

    session = models.ForeignKey(Session, models.CASCADE, related_name="shares")
    user = models.ForeignKey(User, models.CASCADE, related_name="shares")
    role = models.CharField(max_length=8, choices=Role)
    shared_by = models.ForeignKey(User, models.CASCADE, related_name="shares_given")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "user"], name="one_share_per_session_and_user")]

    def __str__(self) -> str:
        return f"share {self.pk} ({self.role})"
