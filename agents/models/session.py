"""Registered agents, who may see them, which are connected and can be asked now; and the hub's processes."""

import uuid
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone

from accounts.models import Credential, User
from agents.models.choices import CHANNEL_LINK
from kit.clock import db_now
from kit.durations import seconds

# When a session was last seen: of a connected one the last heartbeat of the process that holds its socket, which
# moves without a write to the session; `last_seen_at` is when its agent last came or went.
SEEN_AT = Greatest("last_seen_at", Coalesce("connection__process__beat_at", "last_seen_at"))


class SessionQuerySet(models.QuerySet["Session"]):
    def owned_by(self, user: User) -> "SessionQuerySet":
        return self.filter(owner=user)

    def kept(self) -> "SessionQuerySet":
        """The sessions that are neither archived nor gone."""
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

    @property
    def shown_name(self) -> str | None:
        """The routing name as clients write it; None: the session has none."""
        return f"@{self.routing_name}" if self.routing_name else None


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


PROCESS_DEAD_S = seconds(20.0, at_least_s=7.0)


def alive_since(now: datetime) -> datetime:
    """Processes live whose last beat is after this."""
    return now - timedelta(seconds=PROCESS_DEAD_S)


class Process(models.Model):
    """One running hub process and its heartbeat; dead when the beat is older than PROCESS_DEAD_S."""

    id = models.CharField(max_length=32, primary_key=True)
    host = models.CharField(max_length=255)
    pid = models.IntegerField()
    started_at = models.DateTimeField(default=timezone.now)
    beat_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "processes"

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"


class Connection(models.Model):
    """The live way to a session. The id of the row is the epoch: ids only grow, the newest connection wins."""

    session = models.OneToOneField(Session, models.CASCADE, related_name="connection")
    process = models.ForeignKey(Process, models.CASCADE, related_name="connections")
    credential = models.ForeignKey(Credential, models.CASCADE, related_name="connections")
    connected_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"connection {self.pk}"


class Attachment(models.Model):
    """An operator who watches a session, and the process that holds their socket."""

    session = models.ForeignKey(Session, models.CASCADE, related_name="attachments")
    process = models.ForeignKey(Process, models.CASCADE, related_name="attachments")
    user = models.ForeignKey(User, models.CASCADE, related_name="attachments")
    attached_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"attachment {self.pk}"


def online_sessions(session_ids: Collection[int]) -> set[int]:
    """The sessions that can be asked now."""
    connected = Q(pk__in=live_connections().values("session"))
    found = Session.objects.filter(connected | Q(reachable_from__lte=db_now()), pk__in=session_ids)
    return set(found.values_list("pk", flat=True))


def connected_sessions(session_ids: Collection[int]) -> set[int]:
    """The sessions whose agent is connected to a living process."""
    live = live_connections().filter(session_id__in=session_ids)
    return set(live.values_list("session_id", flat=True))


def online() -> Q:
    """Agents that can be asked now. A condition."""
    reachable = Session.objects.filter(reachable_from__lte=db_now())
    return Q(session__in=live_connections().values("session")) | Q(session__in=reachable.values("pk"))


def live_connections() -> QuerySet[Connection]:
    """Connections held by a living process."""
    return Connection.objects.filter(process__beat_at__gt=alive_since(db_now()))


def is_online(session_id: int) -> bool:
    """True if a session can be asked now."""
    return bool(online_sessions([session_id]))
