"""The rows of a session besides its turns: events, op-messages, token usage, files, permission requests."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models import User
from agents.models.agent import Agent
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
    """A message of one operator to the others of a session; no agent sees it. `mentions`: logins without @."""

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


class Blob(models.Model):
    """Bytes under their SHA-256. The blob goes with the last live file that names it."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    size = models.PositiveBigIntegerField()
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"blob {self.sha256[:12]}"


class FileQuerySet(models.QuerySet["File"]):
    def live(self) -> "FileQuerySet":
        """The files that are not deleted."""
        return self.filter(deleted_at=None)


class File(models.Model):
    """A named file of one session. `sha256` stays when the blob goes.

    A file that a caller uploads has no session until the caller sends the file with a question. `agent`, `chat_id`
    and `context_id` are those of the first question with the file; a file of a session's operators has none.
    """

    class Scope(models.TextChoices):
        ATTACHMENT = "attachment"
        REPLY = "reply"
        CORPUS = "corpus"

    session = models.ForeignKey(
        Session,
        models.CASCADE,
        related_name="files",
        db_index=False,
        null=True,
        blank=True,
        help_text="Empty until its uploader sends the file with a question.",
    )
    uploader = models.ForeignKey(User, models.CASCADE, related_name="files")
    blob = models.ForeignKey(Blob, models.PROTECT, null=True, related_name="files")
    sha256 = models.CharField(max_length=64)
    filename = models.CharField(max_length=255, help_text="What the uploader calls it; never part of a path.")
    mime = models.CharField(max_length=127)
    size = models.PositiveBigIntegerField()
    scope = models.CharField(max_length=10, choices=Scope, default=Scope.ATTACHMENT)
    agent = models.ForeignKey(
        Agent,
        models.SET_NULL,
        related_name="+",
        db_index=False,
        null=True,
        blank=True,
        help_text="Which agent was asked with it.",
    )
    chat_id = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="The turn of the question with the file."
    )
    context_id = models.TextField(blank=True, default="", db_default="", help_text="Of the question: its context.")
    uploaded_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[Any] = FileQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(deleted_at=None, blob__isnull=False) | models.Q(deleted_at__isnull=False),
                name="a_live_file_has_its_blob",
            ),
            models.CheckConstraint(
                condition=models.Q(session__isnull=False) | models.Q(chat_id=""),
                name="a_file_of_no_session_was_not_sent",
            ),
        ]
        indexes = [
            models.Index(fields=["session", "id"], name="file_by_session"),
            models.Index(
                fields=["uploader", "sha256"], condition=models.Q(deleted_at=None), name="live_file_by_bytes"
            ),
            models.Index(
                fields=["agent", "context_id"], condition=models.Q(agent__isnull=False), name="file_by_thread"
            ),
            models.Index(fields=["expires_at"], condition=models.Q(deleted_at=None), name="live_file_by_expiry"),
        ]

    def __str__(self) -> str:
        return f"file {self.pk}"


class PermissionRequest(models.Model):
    """A tool call that waits for an approver.

    The first change of a pending row decides; later ones have no effect.

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
