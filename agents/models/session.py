"""A registered running agent, and the users whom its owner gave access to it."""

import uuid
from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone

from accounts.models import Credential, User
from agents.models.choices import CHANNEL_LINK

# When a session was last seen: of a connected one the last heartbeat of the process that holds its socket, which
# moves without a write to the session; `last_seen_at` is when its agent last came or went.
SEEN_AT = Greatest("last_seen_at", Coalesce("connection__process__beat_at", "last_seen_at"))


class SessionQuerySet(models.QuerySet["Session"]):
    def owned_by(self, user: User) -> "SessionQuerySet":
        return self.filter(owner=user)

    def kept(self) -> "SessionQuerySet":
        """Neither archived nor gone."""
        return self.filter(archived_at=None)


class Session(models.Model):
    """One agent program of one owner; it outlives its sockets, and a returning agent finds it by `public_id`.

    `link`: the link that delivers to it, see `hub.wiring`. `reachable_from`: from when its agent can be asked, if
    the link needs no connection; null: it can be asked while it has a `Connection`.
    """

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(User, models.CASCADE, related_name="agent_sessions")
    link = models.CharField(max_length=32, default=CHANNEL_LINK, db_default=CHANNEL_LINK, editable=False)
    reachable_from = models.DateTimeField(null=True, editable=False)
    routing_name = models.CharField(max_length=80, help_text="Without the @; unique among an owner's live ones.")
    host = models.CharField(max_length=255, blank=True)
    cwd = models.CharField(max_length=1024, blank=True)
    os_user = models.CharField(max_length=255, blank=True)
    pid = models.BigIntegerField(null=True, blank=True)
    channel_version = models.CharField(max_length=64, blank=True)
    credential = models.ForeignKey(
        Credential, models.SET_NULL, null=True, blank=True, help_text="The channel token it last came with."
    )
    started_at = models.DateTimeField(default=timezone.now, editable=False)
    last_seen_at = models.DateTimeField(default=timezone.now)
    archived_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[Any] = SessionQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["owner", "routing_name"], name="session_by_name"),
            models.Index(
                fields=["reachable_from"],
                condition=models.Q(reachable_from__isnull=False),
                name="session_reachable_from",
            ),
        ]

    def __str__(self) -> str:
        return f"@{self.routing_name}"


class Share(models.Model):
    """A session lent to another user. Each role includes those before it."""

    class Role(models.TextChoices):
        VIEWER = "viewer"
        PROMPTER = "prompter"
        APPROVER = "approver"

    session = models.ForeignKey(Session, models.CASCADE, related_name="shares")
    user = models.ForeignKey(User, models.CASCADE, related_name="shares")
    role = models.CharField(max_length=8, choices=Role)
    shared_by = models.ForeignKey(User, models.CASCADE, related_name="shares_given")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "user"], name="one_share_per_session_and_user")]

    def __str__(self) -> str:
        return f"share {self.pk} ({self.role})"
