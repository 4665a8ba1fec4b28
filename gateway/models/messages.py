"""The stored content of the gateway: messages that wait for their recipient, sessions, and the tasks of the Agent
Protocol.

`SessionLog` is not `agents.models.Session`.
"""

import uuid
from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from agents.models import Session


class Letter(models.Model):
    """A message that is stored for an agent that was offline or busy.

    `recipient`: the session of its seat. `owner`: the recipient's, whose inbox it fills. `sender_owner`: the user
    on whose behalf it was sent; `sender_session`: the seat that sent it, null: a client without one; `sender`: the
    name that the recipient sees. `addressed_to`: the recipient's name as the sender wrote it. `chain`: the
    sessions that the message came through; `passed_by_stranger`: see `agents.core.types.Ask`. `envelope`: the
    frame, sealed (`gateway.service.queue_rows`). `expires_at`: null, it waits for ever. `reason`: why it was
    not delivered. `tells`: the channel of the sender's receipts.

    While it is `sending`, the process `claimed_by` delivers it as the turn `chat_id`, until `claimed_until`.
    `attempts`: deliveries of which nothing is known. `reply`: the frame for a sender that waits, sealed, until it
    is taken.
    """

    class Priority(models.IntegerChoices):
        CRITICAL = 0
        HIGH = 1
        NORMAL = 2
        LOW = 3

    class State(models.TextChoices):
        QUEUED = "queued"
        SENDING = "sending"
        DELIVERED = "delivered"
        READ = "read"
        DEAD = "dead"

    owner = models.ForeignKey(User, models.CASCADE, related_name="letters")
    recipient = models.ForeignKey(Session, models.CASCADE, related_name="letters", db_index=False)
    addressed_to = models.CharField(max_length=160)
    sender_owner = models.ForeignKey(User, models.CASCADE, related_name="letters_sent")
    sender_session = models.ForeignKey(
        Session, models.SET_NULL, null=True, blank=True, related_name="letters_sent", editable=False
    )
    sender = models.CharField(max_length=160)
    chain = models.JSONField(default=list, editable=False)
    passed_by_stranger = models.BooleanField(db_default=True, editable=False)  # not known: as a stranger's
    message_id = models.CharField(max_length=128)
    correlation_id = models.CharField(max_length=128, blank=True)
    wants_response = models.BooleanField(default=False)
    envelope = models.TextField()
    bytes = models.PositiveIntegerField()
    priority = models.PositiveSmallIntegerField(choices=Priority, default=Priority.NORMAL)
    state = models.CharField(max_length=9, choices=State, default=State.QUEUED)
    reason = models.CharField(max_length=32, blank=True)
    tells = models.CharField(max_length=64, blank=True, editable=False)
    received_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    read_at = models.DateTimeField(null=True, blank=True)
    chat_id = models.CharField(max_length=64, blank=True, editable=False)
    claimed_by = models.CharField(max_length=32, blank=True, editable=False)
    claimed_until = models.DateTimeField(null=True, editable=False)
    attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    reply = models.TextField(blank=True, editable=False)
    reply_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        indexes = [
            models.Index(fields=["recipient", "state", "priority", "received_at"], name="letter_in_order"),
            models.Index(fields=["expires_at"], condition=models.Q(state="queued"), name="letter_expires"),
            models.Index(fields=["reply_at"], condition=models.Q(reply_at__isnull=False), name="letter_reply"),
        ]

    def __str__(self) -> str:
        return f"letter {self.pk} ({self.state})"


class SessionLog(models.Model):
    """A session of an agent by the id that its messages have. `entries`, `bytes`: of its lines, as exported.

    `compacted`: how many of its first entries were removed, because it had too many. `locked_by`, `locked_until`:
    the one writer it has at the moment. `imported_from`: the agent and session that it was exported from.
    """

    class State(models.TextChoices):
        ACTIVE = "active"
        COMMITTED = "committed"
        ARCHIVED = "archived"

    owner = models.ForeignKey(User, models.CASCADE, related_name="session_logs")
    agent = models.CharField(max_length=64)
    session_id = models.CharField(max_length=128)
    state = models.CharField(max_length=9, choices=State, default=State.ACTIVE)
    entries = models.PositiveIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(default=0)
    compacted = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    last_entry_at = models.DateTimeField()
    committed_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    locked_by = models.CharField(max_length=160, blank=True)
    locked_until = models.DateTimeField(null=True, blank=True)
    imported_from = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "agent", "session_id"], name="one_log_per_session")
        ]
        indexes = [models.Index(fields=["last_entry_at"], name="session_log_by_time")]

    def __str__(self) -> str:
        return f"{self.agent} {self.session_id}"


class HeldEntry(models.Model):
    """An entry that is committed with its message, and deleted when its sessions have the entry (docs/adr/0153).

    `process_id`: the process that writes it to its sessions. `about`: the entry without its content, and its
    place, as JSON. `content`: as in `SessionEntry`.
    """

    owner = models.ForeignKey(User, models.CASCADE, related_name="held_entries", db_index=False)
    key = models.CharField(max_length=80, unique=True)
    process_id = models.CharField(max_length=32)
    about = models.TextField()
    content = models.TextField()

    class Meta:
        verbose_name_plural = "held entries"

    def __str__(self) -> str:
        return f"held entry {self.pk}"


class SessionEntry(models.Model):
    """A line of a session log. `content`: JSON, sealed (`accounts.sealing`). `bytes`: of the line as exported."""

    log = models.ForeignKey(SessionLog, models.CASCADE, related_name="lines")
    entry_id = models.CharField(max_length=128, blank=True)
    timestamp_ms = models.BigIntegerField()
    role = models.CharField(max_length=9)
    content = models.TextField()
    bytes = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name_plural = "session entries"
        indexes = [models.Index(fields=["log", "id"], name="entry_in_order")]

    def __str__(self) -> str:
        return f"entry {self.pk}"


class ProtocolTask(models.Model):
    """A task of the Agent Protocol: the conversation of its owner with one agent.

    `agent`: its name, as in a message. `size`: bytes of the inputs, outputs and artifacts of the task.
    """

    owner = models.ForeignKey(User, models.CASCADE, related_name="protocol_tasks", db_index=False)
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    agent = models.CharField(max_length=160)
    input = models.TextField(blank=True, default="")
    additional_input = models.JSONField(null=True)
    size = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    used_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "id"], name="protocol_task_by_owner"),
            models.Index(fields=["used_at"], name="protocol_task_by_age"),
        ]

    def __str__(self) -> str:
        return f"protocol task {self.pk}"


class StepQuerySet(models.QuerySet["ProtocolStep"]):
    def kept(self, now: datetime) -> "StepQuerySet":
        """All tasks but those whose process died while they ran."""
        return self.exclude(status=ProtocolStep.Status.RUNNING, until__lte=now)


class ProtocolStep(models.Model):
    """One ask to the agent of a task; a step that fails is deleted, but its turn stays.

    `until`: when a step that still runs was lost. `agent_task_id`: the id of the task that the agent sees: that of
    the step before, if the agent asked for input there. `asks_input`: the agent did so in this step. `chat_id`: of
    its turn, once there is one.
    """

    class Status(models.TextChoices):
        RUNNING = "running"
        COMPLETED = "completed"

    task = models.ForeignKey(ProtocolTask, models.CASCADE, related_name="steps", db_index=False)
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    status = models.CharField(max_length=9, choices=Status, default=Status.RUNNING)
    input = models.TextField(blank=True, default="")
    additional_input = models.JSONField(null=True)
    output = models.TextField(blank=True, default="")
    asks_input = models.BooleanField(default=False)
    agent_task_id = models.CharField(max_length=64)
    chat_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    until = models.DateTimeField()

    objects: ClassVar[models.Manager["ProtocolStep"]] = models.Manager.from_queryset(StepQuerySet)()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["task"], condition=Q(status="running"), name="one_running_step_per_protocol_task"
            )
        ]
        indexes = [models.Index(fields=["task", "id"], name="protocol_step_by_task")]

    def __str__(self) -> str:
        return f"protocol step {self.pk}"


class ProtocolArtifact(models.Model):
    """A file of a task: uploaded by its owner, or made by its agent in a step.

    `relative_path`: what the owner calls its folder; never part of a path of the hub. `was_sent`: a step gave it
    to the agent.
    """

    task = models.ForeignKey(ProtocolTask, models.CASCADE, related_name="artifacts", db_index=False)
    step = models.ForeignKey(ProtocolStep, models.SET_NULL, null=True, related_name="artifacts")
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    agent_created = models.BooleanField(default=False)
    file_name = models.CharField(max_length=255)
    relative_path = models.CharField(max_length=512, blank=True, default="")
    mime = models.CharField(max_length=127)
    size = models.PositiveBigIntegerField()
    data = models.BinaryField()
    was_sent = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [models.Index(fields=["task", "id"], name="protocol_artifact_by_task")]

    def __str__(self) -> str:
        return f"protocol artifact {self.pk}"
