"""The audit of frames: what was sent, never what it said."""

from django.db import models

from accounts.models import User


class FrameRecord(models.Model):
    """One frame of a client. `owner`: its team. `error_code`: 0 when it was served. `latency_ms`: until then."""

    owner = models.ForeignKey(User, models.CASCADE, related_name="frame_records")
    at = models.DateTimeField()
    message_id = models.CharField(max_length=128, blank=True)
    source = models.CharField(max_length=160)
    destination = models.CharField(max_length=160, blank=True)
    type = models.CharField(max_length=16)
    outcome = models.CharField(max_length=16)
    error_code = models.PositiveSmallIntegerField(default=0)
    bytes = models.PositiveIntegerField()
    latency_ms = models.PositiveIntegerField(default=0)
    session_id = models.CharField(max_length=128, blank=True)

    class Meta:
        indexes = [models.Index(fields=["owner", "at"], name="frame_record_by_time")]

    def __str__(self) -> str:
        return f"frame {self.pk} ({self.type})"
