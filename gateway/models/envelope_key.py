"""The keys by which the members of a team sign their frames."""

from django.db import models
from django.utils import timezone

from accounts.models import User


class EnvelopeKey(models.Model):
    """A shared secret of a team. `key_id`: its name in signatures. `secret`: sealed (`accounts.sealing`)."""

    owner = models.ForeignKey(User, models.CASCADE, related_name="envelope_keys")
    key_id = models.CharField(max_length=40, unique=True)
    name = models.CharField(max_length=100)
    secret = models.TextField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    def __str__(self) -> str:
        return self.key_id
