"""Connection and process rows: removing connections, and the heartbeat by which dead processes are found."""

import os
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.models import Credential
from agents.models import Connection, Process, Session, Turn
from agents.models.session import alive_since
from agents.transcript.recording import record_session_end
from agents.transcript.session_deletion import delete_sessions
from kit.clock import db_now
from kit.durations import seconds

ORPHAN_AFTER = timedelta(seconds=seconds(30.0, at_least_s=8.0))
EVICTED_AFTER = timedelta(seconds=seconds(10.0, at_least_s=5.0))


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The result of a heartbeat: own connections that are no longer in the table, and lost connections of others.

    `deleted`, `superseded`: the sessions of missing connections that are deleted, or that a newer connection has
    taken over. A connection that was replaced a moment ago is not missing: its `Evict` message is on its way.
    """

    missing: set[int]
    lost: set[int]
    deleted: set[int]
    superseded: set[int]


def remove_connection(connection_id: int, *, delete_session: bool = False) -> None:
    """Remove the row of a closed socket, never that of a newer connection, and release the claims that linger
    on it.
    """
    session = _disconnect(connection_id)
    # In transactions of its own: deleting takes many batches, and must not keep the session locked meanwhile.
    if session is not None and delete_session and not session.agents.exists():
        delete_sessions([session.pk], only_offline=True)


@transaction.atomic
def record_heartbeat(process_id: str, *, mine: Mapping[int, int], others: Collection[int]) -> Heartbeat:
    """Store this process's heartbeat and find lost connections. `mine`: own connections with their sessions."""
    now = db_now()
    if not Process.objects.filter(pk=process_id).update(beat_at=now):  # a lock on its key would hold up `register`
        start = {"host": socket.gethostname()[:255], "pid": os.getpid(), "started_at": now, "beat_at": now}
        Process.objects.create(id=process_id, **start)
    rows = Connection.objects.filter(pk__in=mine, process_id=process_id)
    # Rows whose socket ended and whose `leave` failed. Younger ones stay: a connection is in the table before
    # its socket is attached, so it may not be in `mine` yet.
    ownerless = Connection.objects.filter(process_id=process_id, connected_at__lt=now - ORPHAN_AFTER)
    _drop(ownerless.exclude(pk__in=mine), now)
    present = set(rows.values_list("pk", flat=True))
    reachable = Connection.objects.filter(pk__in=others, process__beat_at__gt=alive_since(now))
    missing = set(mine) - present
    lost = set(others) - set(reachable.values_list("pk", flat=True))
    kept = _taken_over_at({mine[one] for one in missing})
    superseded = {session_id for session_id, at in kept.items() if at is not None}
    # Taken over a moment ago: an `Evict` is on its way to these, and says whether the program may come back.
    known = {one for one in missing if (at := kept.get(mine[one])) is not None and at > now - EVICTED_AFTER}
    deleted = {mine[one] for one in missing} - kept.keys()
    return Heartbeat(missing=missing - known, lost=lost, deleted=deleted, superseded=superseded)


def _taken_over_at(session_ids: Collection[int]) -> dict[int, datetime | None]:
    """Those of these sessions that exist, with the time since when each has its connection, if any."""
    if not session_ids:
        return {}
    return dict(Session.objects.filter(pk__in=session_ids).values_list("pk", "connection__connected_at"))


def find_revoked(process_id: str) -> list[int]:
    """Find connections of this process that must close: their token is revoked or expired, or their owner
    suspended.

    Every process that holds sockets calls this each second (docs/adr/0020). It archives a session that an agent
    resumed while its token was being revoked.
    """
    gone = Q(credential__revoked_at__isnull=False) | Q(credential__expires_at__lt=db_now())
    refused = Connection.objects.filter(gone | Q(session__owner__is_active=False), process_id=process_id)
    found = dict(refused.values_list("pk", "credential_id"))
    if found:
        revoked = Credential.objects.filter(pk__in=set(found.values()), revoked_at__isnull=False)
        archive_sessions_of(list(revoked.values_list("pk", flat=True)))
    return list(found)


@transaction.atomic
def archive_sessions_of(credential_ids: Sequence[int]) -> None:
    """Archive the sessions of revoked tokens. Agents published on them stay, offline."""
    if credential_ids:
        theirs = Session.objects.select_for_update(no_key=True).kept().filter(credential_id__in=credential_ids)
        ids = list(theirs.order_by("pk").values_list("pk", flat=True))  # in the order the ledger locks them
        Session.objects.filter(pk__in=ids).update(archived_at=db_now())


def remove_process(process_id: str) -> None:
    """Delete the row and the connections of this process, which is about to stop."""
    remove_processes(Process.objects.filter(pk=process_id))


def remove_all_processes() -> None:
    """Delete the rows that a crash left behind: the embedded hub holds the lock on its data, so no process is
    alive.
    """
    remove_processes(Process.objects.all())


@transaction.atomic
def remove_processes(processes: QuerySet[Process]) -> int:
    """Delete the rows of dead or stopping processes and end their connections; returns the number of processes."""
    ids = list(processes.select_for_update(no_key=True).values_list("pk", flat=True))  # before sessions, as `beat`
    _drop(Connection.objects.filter(process_id__in=ids), db_now())
    return Process.objects.filter(pk__in=ids).delete()[0]


@transaction.atomic
def _disconnect(connection_id: int) -> Session | None:
    locked = Session.objects.select_for_update(no_key=True, of=("self",))  # the session first, as `register` does
    session: Session | None = locked.filter(connection__pk=connection_id).first()
    if session is None:
        return None
    now = db_now()
    Connection.objects.filter(pk=connection_id).delete()
    # Open turns stay: the process that waits for the reply ends each, or the reaper does.
    Turn.objects.filter(session=session).release_ended(now)
    Session.objects.filter(pk=session.pk).update(last_seen_at=now)
    record_session_end([session], now)
    return session


def _drop(connections: QuerySet[Connection], now: datetime) -> None:
    """Delete connections whose sockets no process holds any more."""
    locked = Session.objects.select_for_update(no_key=True, of=("self",)).filter(connection__in=connections)
    # In the order in which the ledger locks sessions, or each could wait for the other.
    sessions = {session.pk: session for session in locked.order_by("pk")}
    if sessions:
        still = connections.filter(session_id__in=sessions)  # some may have been taken over while this waited
        lost = dict(still.values_list("session_id", "process__beat_at"))
        still.delete()
        for seen_at in set(lost.values()):  # one for each process
            seen = [pk for pk, beat_at in lost.items() if beat_at == seen_at]
            # Never move it back: an agent may have resumed the session since then.
            Session.objects.filter(pk__in=seen, last_seen_at__lt=seen_at).update(last_seen_at=seen_at)
        record_session_end([sessions[pk] for pk in lost], now)
