"""Which sessions and agents can be asked now: their agent is connected, or a remote server that answers."""

from collections.abc import Collection

from django.db.models import Q, QuerySet

from agents.models.presence import Connection, alive_since
from agents.models.remote import RemoteServer
from kit.clock import db_now


def online_sessions(session_ids: Collection[int]) -> set[int]:
    """Those of the sessions that can be asked: their agent is connected, or a remote server that answers."""
    remote = answering_servers().filter(session_id__in=session_ids)
    return connected_sessions(session_ids) | set(remote.values_list("session_id", flat=True))


def connected_sessions(session_ids: Collection[int]) -> set[int]:
    """Those of the sessions whose agent is connected to a living process."""
    live = live_connections().filter(session_id__in=session_ids)
    return set(live.values_list("session_id", flat=True))


def online() -> Q:
    """Agents that can be asked: connected, or a remote server that answers. A condition."""
    connected, answering = live_connections().values("session"), answering_servers().values("session")
    return Q(session__in=connected) | Q(session__in=answering)


def answering_servers() -> QuerySet[RemoteServer]:
    """Remote servers whose breaker is not open."""
    found: QuerySet[RemoteServer] = RemoteServer.objects.answering(db_now())
    return found


def live_connections() -> QuerySet[Connection]:
    """Connections held by a living process."""
    return Connection.objects.filter(process__beat_at__gt=alive_since(db_now()))


def is_online(session_id: int) -> bool:
    """Whether a session can be asked: its agent is connected, or a remote server that answers."""
    return bool(online_sessions([session_id]))
