"""Who is connected where, and which sessions and agents can be asked now."""

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q, QuerySet
from django.utils import timezone

from accounts.models import Credential, User
from agents.models.session import Session
from kit.clock import db_now
from kit.durations import seconds

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
    """The live way to a session. Its id is the epoch: ids only grow, the newest connection wins."""

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
    """Those of the sessions that can be asked now."""
    connected = Q(pk__in=live_connections().values("session"))
    found = Session.objects.filter(connected | Q(reachable_from__lte=db_now()), pk__in=session_ids)
    return set(found.values_list("pk", flat=True))


def connected_sessions(session_ids: Collection[int]) -> set[int]:
    """Those of the sessions whose agent is connected to a living process."""
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
    """Whether a session can be asked now."""
    return bool(online_sessions([session_id]))
