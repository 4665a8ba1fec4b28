"""What an agent's program asks leave for."""

from django.db import models
from django.utils import timezone

from accounts.models import User
from agents.models.session import Session


class PermissionRequest(models.Model):
    """A tool call that waits for an approver. Whoever changes a pending row has decided; nobody after.

    `chat_id`: the turn whose caller may decide it too; blank where the agent's owner did not allow that.
    `told_at`: when the decision went to the agent's socket; null while the agent is away.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        ALLOWED = "allowed"
        DENIED = "denied"
        EXPIRED = "expired"

    session = models.ForeignKey(Session, models.CASCADE, related_name="permission_requests", db_index=False)
    request_id = models.CharField(max_length=128, help_text="Chosen by the agent's program.")
    chat_id = models.CharField(max_length=64, blank=True, default="", db_default="")
    tool = models.CharField(max_length=256)
    input_preview = models.TextField(blank=True)
    status = models.CharField(max_length=7, choices=Status, default=Status.PENDING)
    requested_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolver = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="permissions_resolved")
    message = models.TextField(blank=True)
    told_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "request_id"], name="one_permission_request_per_id"),
            models.CheckConstraint(
                condition=models.Q(status="pending", resolved_at=None)
                | (~models.Q(status="pending") & models.Q(resolved_at__isnull=False)),
                name="a_decided_permission_request_has_an_end",
            ),
        ]
        indexes = [
            models.Index(
                fields=["expires_at"], condition=models.Q(status="pending"), name="pending_permission_by_expiry"
            )
        ]

    def __str__(self) -> str:
        return f"permission request {self.pk} ({self.status})"
