"""Files of sessions: names point to bytes that are kept once, however many name them."""

from typing import Any, ClassVar

from django.db import models
from django.utils import timezone

from accounts.models import User
from agents.models.session import Session


class Blob(models.Model):
    """Bytes under their SHA-256 (docs/adr/0033). It goes with the last live file that names it."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    size = models.PositiveBigIntegerField()
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"blob {self.sha256[:12]}"


class FileQuerySet(models.QuerySet["File"]):
    def live(self) -> "FileQuerySet":
        """Not deleted."""
        return self.filter(deleted_at=None)


class File(models.Model):
    """A named file of one session. `sha256` stays when the blob goes."""

    class Scope(models.TextChoices):
        ATTACHMENT = "attachment"
        REPLY = "reply"
        CORPUS = "corpus"

    session = models.ForeignKey(Session, models.CASCADE, related_name="files", db_index=False)
    uploader = models.ForeignKey(User, models.CASCADE, related_name="files")
    blob = models.ForeignKey(Blob, models.PROTECT, null=True, related_name="files")
    sha256 = models.CharField(max_length=64)
    filename = models.CharField(max_length=255, help_text="What the uploader calls it; never part of a path.")
    mime = models.CharField(max_length=127)
    size = models.PositiveBigIntegerField()
    scope = models.CharField(max_length=10, choices=Scope, default=Scope.ATTACHMENT)
    uploaded_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[Any] = FileQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(deleted_at=None, blob__isnull=False) | models.Q(deleted_at__isnull=False),
                name="a_live_file_has_its_blob",
            )
        ]
        indexes = [
            models.Index(fields=["session", "id"], name="file_by_session"),
            models.Index(fields=["expires_at"], condition=models.Q(deleted_at=None), name="live_file_by_expiry"),
        ]

    def __str__(self) -> str:
        return f"file {self.pk}"
