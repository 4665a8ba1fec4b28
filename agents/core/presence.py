"""Removes the connections of agents, and finds dead processes by their heartbeat."""

import os
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Min, Q, QuerySet

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


def remove_connections(connection_ids: Collection[int]) -> list[Session]:
    """Remove the rows of closed sockets, never those of newer connections, and release the claims that linger on
    them. Returns their sessions.
    """
    with transaction.atomic():
        # Locks the sessions first, and in the order in which the ledger does, as registering does.
        locked = Session.objects.select_for_update(no_key=True, of=("self",)).order_by("pk")
        sessions = list(locked.filter(connection__pk__in=connection_ids))
        if sessions:
            now = db_now()
            Connection.objects.filter(pk__in=connection_ids).delete()
            # Open turns stay: the process that waits for the reply ends each, or the reaper does.
            Turn.objects.filter(session__in=sessions).release_ended(now)
            Session.objects.filter(pk__in=[one.pk for one in sessions]).update(last_seen_at=now)
            record_session_end(sessions, now)
    return sessions


def remove_connection(connection_id: int, *, delete_session: bool = False) -> None:
    """Remove the row of one closed socket; see `remove_connections`."""
    for session in remove_connections([connection_id]):
        # Not in the transaction: deleting takes many batches, and must not keep the session locked meanwhile.
        if delete_session and not session.agents.exists():
            delete_sessions([session.pk], only_offline=True)


@transaction.atomic
def record_heartbeat(process_id: str, *, mine: Mapping[int, int], others: Collection[int]) -> Heartbeat:
    """Store this process's heartbeat and find lost connections. `mine`: own connections with their sessions."""
    now = db_now()
    # Only an UPDATE: a lock on the row's key would block `register_connections`.
    if not Process.objects.filter(pk=process_id).update(beat_at=now):
        start = {"host": socket.gethostname()[:255], "pid": os.getpid(), "started_at": now, "beat_at": now}
        Process.objects.create(id=process_id, **start)
    rows = Connection.objects.filter(pk__in=mine, process_id=process_id)
    # Rows whose socket closed but that were not removed. Younger rows stay: a connection is in the table before
    # its socket is attached, so it may not be in `mine` yet.
    ownerless = Connection.objects.filter(process_id=process_id, connected_at__lt=now - ORPHAN_AFTER)
    _drop(ownerless.exclude(pk__in=mine), now)
    present = set(rows.values_list("pk", flat=True))
    reachable = Connection.objects.filter(pk__in=others, process__beat_at__gt=alive_since(now))
    missing = set(mine) - present
    lost = set(others) - set(reachable.values_list("pk", flat=True))
    kept = _taken_over_at({mine[one] for one in missing})
    superseded = {session_id for session_id, at in kept.items() if at is not None}
    # Replaced a moment ago: an `Evict` message to these is on its way, and says whether the program may reconnect.
    known = {one for one in missing if (at := kept.get(mine[one])) is not None and at > now - EVICTED_AFTER}
    deleted = {mine[one] for one in missing} - kept.keys()
    return Heartbeat(missing=missing - known, lost=lost, deleted=deleted, superseded=superseded)


def _taken_over_at(session_ids: Collection[int]) -> dict[int, datetime | None]:
    """The sessions among these that exist, each with the time at which its connection began, or None."""
    if not session_ids:
        return {}
    return dict(Session.objects.filter(pk__in=session_ids).values_list("pk", "connection__connected_at"))


def find_revoked(process_id: str) -> list[int]:
    """Find connections of this process that must close: their token is revoked or expired, or their owner
    suspended.

    Every process that holds sockets calls this each second (docs/adr/0060). The function archives a session that
    an agent resumed while its token was being revoked.
    """
    gone = Q(credential__revoked_at__isnull=False) | Q(credential__expires_at__lt=db_now())
    is_suspended = Q(session__owner__is_active=False) | Q(credential__minted_by__is_active=False)
    refused = Connection.objects.filter(gone | is_suspended, process_id=process_id)
    found = dict(refused.values_list("pk", "credential_id"))
    if found:
        revoked = Credential.objects.filter(pk__in=set(found.values()), revoked_at__isnull=False)
        archive_sessions_of(list(revoked.values_list("pk", flat=True)))
    return list(found)


def find_next_expiry(process_id: str, credential_ids: Collection[int], since: datetime) -> datetime | None:
    """The next expiry, at `since` or later, of these credentials and of those of this process's connections."""
    theirs = Q(pk__in=credential_ids) | Q(connections__process_id=process_id)
    found = Credential.objects.filter(theirs, expires_at__gte=since).aggregate(first=Min("expires_at"))
    first: datetime | None = found["first"]
    return first


@transaction.atomic
def archive_sessions_of(credential_ids: Sequence[int]) -> None:
    """Archive the sessions of revoked tokens. Agents that are published on these sessions stay, offline."""
    if credential_ids:
        theirs = Session.objects.select_for_update(no_key=True).kept().filter(credential_id__in=credential_ids)
        # In the order in which the ledger locks sessions.
        ids = list(theirs.order_by("pk").values_list("pk", flat=True))
        Session.objects.filter(pk__in=ids).update(archived_at=db_now())


def remove_process(process_id: str) -> None:
    """Delete the row and the connections of this process, which is about to stop."""
    remove_processes(Process.objects.filter(pk=process_id))


def remove_all_processes() -> None:
    """Delete the rows of all processes after a crash: the embedded hub has locked its data, so none is alive."""
    remove_processes(Process.objects.all())


@transaction.atomic
def remove_processes(processes: QuerySet[Process]) -> int:
    """Delete the rows of dead or stopping processes and end their connections; returns the number of processes."""
    ids = list(
        processes.select_for_update(no_key=True).values_list("pk", flat=True)
    )  # locked before sessions, as in `record_heartbeat`
    _drop(Connection.objects.filter(process_id__in=ids), db_now())
    return Process.objects.filter(pk__in=ids).delete()[0]


def _drop(connections: QuerySet[Connection], now: datetime) -> None:
    """Delete connections whose sockets no process holds any more."""
    if not connections.exists():  # mostly so, and the query below costs several times as much
        return
    locked = Session.objects.select_for_update(no_key=True, of=("self",)).filter(connection__in=connections)
    # In the order in which the ledger locks sessions, so that the two cannot deadlock.
    sessions = {session.pk: session for session in locked.order_by("pk")}
    if sessions:
        # Other connections may have replaced some while this waited for locks.
        still = connections.filter(session_id__in=sessions)
        lost = dict(still.values_list("session_id", "process__beat_at"))
        still.delete()
        for seen_at in set(lost.values()):  # one update for each process
            seen = [pk for pk, beat_at in lost.items() if beat_at == seen_at]
            # Never move `last_seen_at` back: an agent may have resumed the session since then.
            Session.objects.filter(pk__in=seen, last_seen_at__lt=seen_at).update(last_seen_at=seen_at)
        record_session_end([sessions[pk] for pk in lost], now)
