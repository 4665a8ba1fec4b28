"""Messages that wait for their recipient."""

from django.db import models

from accounts.models import User
from agents.models import Session


class Letter(models.Model):
    """A message that is stored for an agent that was offline or busy.

    `recipient`: the session of its seat. `owner`: the recipient's, whose inbox it fills. `sender_owner`: the user
    on whose behalf it was sent; `sender_session`: the seat that sent it, null: a client without one; `sender`: the
    name that the recipient sees. `addressed_to`: the recipient's name as the sender wrote it. `chain`: the
    sessions that the message came through; `passed_by_stranger`: see `agents.core.types.Ask`. `envelope`: the
    frame, sealed (`gateway.service.letters.letters`). `expires_at`: null, it waits for ever. `reason`: why it was
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
