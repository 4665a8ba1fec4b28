"""Tables of the bridge."""

from django.db import models
from django.utils import timezone

from accounts.models import User


class SendKey(models.Model):
    """An `Idempotency-Key` a caller sent with a message: which turn it began, and what came of it.

    `result` is the task as it was at the end of that turn, as JSON; empty until then. `is_plain`: nothing but a
    reply came of it.
    """

    caller = models.ForeignKey(User, models.CASCADE, related_name="send_keys")
    handle = models.CharField(max_length=160)
    key = models.CharField(max_length=64, help_text="The key's digest.")
    body = models.CharField(max_length=32, help_text="The digest of the message.")
    task_id = models.CharField(max_length=64)
    chat_id = models.CharField(max_length=64)
    result = models.TextField(blank=True, default="")
    is_plain = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["caller", "handle", "key"], name="one_send_per_key"),
        ]
        indexes = [models.Index(fields=["created_at"], name="send_key_by_age")]

    def __str__(self) -> str:
        return f"send key {self.pk}"
