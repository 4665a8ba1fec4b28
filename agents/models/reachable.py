"""Which sessions and agents can be asked now: by a live connection, or because their link needs none."""

from collections.abc import Collection

from django.db.models import Q, QuerySet

from agents.models.presence import Connection, alive_since
from agents.models.session import Session
from kit.clock import db_now


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
