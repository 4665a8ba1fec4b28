"""Messages that wait for their recipient."""

from django.db import models

from accounts.models import User
from agents.models import Session


class Letter(models.Model):
    """A message that is stored for an agent that was offline or busy.

    `recipient`: the session of its seat. `owner`: the recipient's, whose inbox it fills. `sender_owner`: of whom
    sent it; `sender`: the name that the recipient sees. `envelope`: the frame as it is delivered, JSON.
    `expires_at`: null, it waits for ever. `reason`: why it was not delivered.
    """

    class Priority(models.IntegerChoices):
        CRITICAL = 0
        HIGH = 1
        NORMAL = 2
        LOW = 3

    class State(models.TextChoices):
        QUEUED = "queued"
        DELIVERED = "delivered"
        READ = "read"
        DEAD = "dead"

    owner = models.ForeignKey(User, models.CASCADE, related_name="letters")
    recipient = models.ForeignKey(Session, models.CASCADE, related_name="letters")
    sender_owner = models.ForeignKey(User, models.CASCADE, related_name="letters_sent")
    sender = models.CharField(max_length=160)
    message_id = models.CharField(max_length=128)
    envelope = models.TextField()
    bytes = models.PositiveIntegerField()
    priority = models.PositiveSmallIntegerField(choices=Priority, default=Priority.NORMAL)
    state = models.CharField(max_length=9, choices=State, default=State.QUEUED)
    reason = models.CharField(max_length=32, blank=True)
    received_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["recipient", "state", "priority", "id"], name="letter_in_order"),
            models.Index(fields=["expires_at"], condition=models.Q(state="queued"), name="letter_expires"),
        ]

    def __str__(self) -> str:
        return f"letter {self.pk} ({self.state})"
