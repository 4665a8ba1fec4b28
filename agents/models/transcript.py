"""What happened in a session and what was said about it: rows are only ever added."""

from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import User
from agents.models.session import Session


class Event(models.Model):
    """One thing that happened in a session, as its program or the hub reported it.

    `payload` is JSON text, stored as it came: the hub shows it and never reads it.
    """

    class Kind(models.TextChoices):
        CHAT = "chat"
        TAIL = "tail"

    session = models.ForeignKey(Session, models.CASCADE, related_name="events", db_index=False)
    kind = models.CharField(max_length=4, choices=Kind)
    type = models.CharField(max_length=64)
    payload = models.TextField()
    ts = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["session", "id"], name="event_by_session"),
            models.Index(fields=["session", "id"], condition=models.Q(kind="chat"), name="chat_event_by_session"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}/{self.type} {self.pk}"


class OpMessage(models.Model):
    """What one operator of a session tells the others; the agent never sees it. `mentions`: logins without @."""

    session = models.ForeignKey(Session, models.CASCADE, related_name="op_messages", db_index=False)
    author = models.ForeignKey(User, models.CASCADE, related_name="op_messages")
    text = models.TextField()
    mentions = models.JSONField(default=list)
    ts = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["session", "id"], name="op_message_by_session")]

    def __str__(self) -> str:
        return f"op message {self.pk}"


class TokenUsage(models.Model):
    """Cumulative token counters of one model in one run of the agent's program, as it reported them.

    `captured_at` is what the program says; `written_at` is the database's clock, and retention goes by that.
    """

    class Reason(models.TextChoices):
        HOURLY = "hourly"
        FINAL = "final"

    session = models.ForeignKey(Session, models.CASCADE, related_name="token_usage", db_index=False)
    owner = models.ForeignKey(User, models.CASCADE, related_name="token_usage", db_index=False)
    cc_session_id = models.CharField(max_length=128)
    captured_at = models.DateTimeField()
    model = models.CharField(max_length=128)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cache_read_tokens = models.PositiveBigIntegerField(default=0)
    cache_creation_tokens = models.PositiveBigIntegerField(default=0)
    reason = models.CharField(max_length=6, choices=Reason)
    written_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name_plural = "token usage"
        indexes = [
            models.Index(fields=["session", "captured_at"], name="token_usage_by_session"),
            models.Index(fields=["owner", "id"], name="token_usage_by_owner"),
        ]

    def __str__(self) -> str:
        return f"token usage {self.pk}"
