"""Who waits until an agent is free."""

from django.db import models

from accounts.models import User
from agents.models.agent import Agent
from agents.models.session import Session


class QueuedAsk(models.Model):
    """An ask that waits in the process `home`, in the order of the ids (docs/adr/0073).

    It counts until `waits_until`, and while its process lives. Written by SQL (`agents.core.ledger`), taken
    away in the transaction that admits or refuses it; the reaper makes a failed turn of it when its process died.
    """

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="queued_asks", db_index=False)
    session = models.ForeignKey(Session, models.CASCADE, related_name="queued_asks")
    caller = models.ForeignKey(User, models.CASCADE, related_name="queued_asks")
    chat_id = models.CharField(max_length=64, unique=True)
    home = models.CharField(max_length=32)
    task_id = models.CharField(max_length=64)
    message_key = models.CharField(max_length=32, blank=True)
    question = models.TextField()
    queued_at = models.DateTimeField()
    waits_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"queued ask {self.pk}"
