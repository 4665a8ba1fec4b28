"""Tables of the bridge."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from webhooks.models import MAX_URL_CHARS, Sendable


class SendKey(models.Model):
    """An `Idempotency-Key` that a caller sent with a message: the turn that the message began, and its result.

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


class StoredTask(models.Model):
    """A task in the database journal: its latest snapshot, the columns of searches, and the seq of its last event.

    `snapshot` is JSON in the form of `schema_version` (`tasks.stored`): the task as it was at `snapshot_seq`; what
    happened since is in its events. SQL writes it (`tasks.journal_rows`), its end in the transaction that settles.
    """

    id = models.CharField(max_length=64, primary_key=True)
    caller = models.ForeignKey(User, models.CASCADE, related_name="stored_tasks", db_index=False)
    handle = models.CharField(max_length=160, help_text="The agent's, as it was asked.")
    context_id = models.TextField()
    chat_id = models.CharField(max_length=64, help_text="Of its last turn.")
    home = models.CharField(max_length=32, help_text="The process of that turn.")
    state = models.CharField(max_length=16)
    has_ended = models.BooleanField()
    updated_at = models.DateTimeField(help_text="When its state was set.")
    seq = models.PositiveIntegerField(help_text="Of its last event.")
    snapshot = models.TextField()
    snapshot_seq = models.PositiveIntegerField()
    snapshot_bytes = models.PositiveIntegerField()
    events_bytes = models.PositiveIntegerField()
    schema_version = models.PositiveSmallIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["caller", "handle", "-updated_at"], name="stored_task_by_caller"),
            models.Index(fields=["updated_at"], name="stored_task_by_age"),
        ]

    def __str__(self) -> str:
        return self.id


class StoredEvent(models.Model):
    """An event of a task in the journal: JSON of a `a2a_bridge.wire.task.TaskEvent`, never changed."""

    task = models.ForeignKey(StoredTask, models.CASCADE, related_name="events", db_index=False)
    seq = models.PositiveIntegerField()
    body = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["task", "seq"], name="one_event_per_seq_of_a_task")]

    def __str__(self) -> str:
        return f"{self.task_id}.{self.seq}"


class PushConfig(models.Model):
    """One address of one task. `sealed`: what each POST carries besides (`a2a_bridge.service.push_configs`).

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
