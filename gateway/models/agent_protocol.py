"""Tables of the Agent Protocol: tasks of users, their steps and their artifacts."""

import uuid
from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from accounts.models import User


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
        """All but those whose process died while they ran."""
        return self.exclude(status=ProtocolStep.Status.RUNNING, until__lte=now)


class ProtocolStep(models.Model):
    """One ask to the agent of a task; a step that fails is deleted, its turn stays.

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
