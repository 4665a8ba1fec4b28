"""Where callers want to be told of their tasks, and every telling as a row."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from webhooks.models import MAX_URL_CHARS, Sendable


class PushConfig(models.Model):
    """One address of one task. `sealed` holds what goes along with each POST (`a2a_bridge.pushes.sealed`).

    `chat_id`: the task's last turn, as far as this row knows. `ended_seq`: the event of the task's end, once that
    is queued; null while more may come. `touched_at`: when something was last written here.
    """

    task_id = models.CharField(max_length=64)
    config_id = models.CharField(max_length=128)
    caller = models.ForeignKey(User, models.CASCADE, related_name="push_configs")
    context_id = models.CharField(max_length=128)
    chat_id = models.CharField(max_length=64)
    url = models.CharField(max_length=MAX_URL_CHARS)
    sealed = models.TextField(help_text="Token, scheme and credentials, sealed.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    touched_at = models.DateTimeField()
    ended_seq = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task_id", "config_id"], name="a_task_has_one_push_config_by_an_id")
        ]
        indexes = [
            models.Index(fields=["chat_id"], condition=Q(ended_seq=None), name="push_config_of_an_open_turn"),
            models.Index(fields=["touched_at"], name="push_config_by_age"),
        ]

    def __str__(self) -> str:
        return f"push config {self.pk}"


class Push(Sendable):
    """One event of a task for one address. `seq` is the event's: they go out in this order, one by one."""

    config = models.ForeignKey(PushConfig, models.CASCADE, related_name="pushes", db_index=False)
    seq = models.PositiveIntegerField()

    class Meta:
        verbose_name_plural = "pushes"
        constraints = [
            models.UniqueConstraint(fields=["config", "seq"], name="an_event_is_pushed_once_to_an_address"),
            models.CheckConstraint(
                condition=~Q(status__in=["pending", "sending"]) | Q(next_attempt_at__isnull=False),
                name="an_unsettled_push_is_tried_again",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["next_attempt_at"], condition=Q(status__in=["pending", "sending"]), name="push_due"
            ),
            models.Index(fields=["queued_at"], name="push_by_age"),
        ]

    def __str__(self) -> str:
        return f"push {self.pk}"
