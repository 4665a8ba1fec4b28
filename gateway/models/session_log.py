"""Sessions of the protocol: what messages with one `sessionId` said at an agent. Not `agents.models.Session`."""

from django.db import models

from accounts.models import User


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
