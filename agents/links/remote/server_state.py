"""What the hub keeps about a server between calls: its circuit breaker, and what the server calls things of ours.

A server that fails again and again is left alone for a while: its agent is offline, and callers are told.

Failures in a row are counted in each process. That the breaker opened is a column of the server, and when it may
be asked again is a column of its session; all processes read them. When its time is up the breaker is half-open:
the first call tries, while for all others it stays open.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from agents.core.types import Ask
from agents.links.remote.events import BreakerOpen
from agents.models import RemoteName, RemoteServer, Session
from agents.models.remote import MAX_FAILURE_CHARS, MAX_ID_CHARS
from agents.settings import get_settings
from kit.clock import db_now
from kit.durations import seconds

FAILURES = 5
MOST_OPENS = 20  # of REMOTE_RETRY_S, as the longest it stays open
TRIAL_S = seconds(60.0)
Kind = RemoteName.Kind


def enter_breaker(server: RemoteServer) -> bool:
    """Let a call through; True when it is the one that tries.

    Raises:
        BreakerOpen: not now.
    """
    if server.retry_at is None:
        return False
    now = db_now()
    trial = {"retry_at": now + timedelta(seconds=TRIAL_S)}
    with _session_locked(server.pk):
        # The condition stands in the UPDATE: of the calls of all processes exactly one gets the trial.
        if not RemoteServer.objects.filter(pk=server.pk, retry_at__lte=now).update(**trial):
            raise BreakerOpen("it failed too often, and is left alone for a while")
        write_reachable(server.pk)
    return True


class Breakers:
    """The failures in a row this process saw, by server."""

    def __init__(self) -> None:
        self._failures: dict[int, int] = {}

    def succeeded(self, server_id: int, *, tried: bool) -> bool:
        """Forget failures; whether `close_breaker` must be called, which writes."""
        return self._failures.pop(server_id, 0) >= FAILURES or tried

    def failed(self, server_id: int, *, tried: bool) -> bool:
        """Count one; whether `open_breaker` must be called, which writes."""
        self._failures[server_id] = self._failures.get(server_id, 0) + 1
        return tried or self._failures[server_id] == FAILURES


def close_breaker(server_id: int) -> None:
    """Close the breaker of a server that answered."""
    with _session_locked(server_id):
        RemoteServer.objects.filter(pk=server_id).update(retry_at=None, opens=0, last_failure="")
        write_reachable(server_id)


def open_breaker(server_id: int, words: str) -> None:
    """Open the breaker of a server that fails, for twice as long as the time before."""
    _open(server_id, RemoteServer.objects.filter(pk=server_id), words)


def open_breaker_at_once(server_id: int, card_url: str, words: str, *, tried: bool) -> None:
    """The card at this URL says that it must not be called: the same without counting.

    Only the call that tried extends an open breaker. A server that was moved meanwhile is left as it is.
    """
    found = RemoteServer.objects.filter(pk=server_id, card_url=card_url)
    _open(server_id, found if tried else found.filter(retry_at=None), words)


def write_reachable(server_id: int) -> None:
    """Copy when the server can be asked from its row to its session.

    Call it in a transaction that locked the session before the server.
    """
    retry_at = RemoteServer.objects.filter(session=OuterRef("pk")).values("retry_at")
    Session.objects.filter(remote__pk=server_id).update(reachable_from=Coalesce(Subquery(retry_at), db_now()))


def _open(server_id: int, found: QuerySet[RemoteServer], words: str) -> None:
    with _session_locked(server_id):
        for opens in found.values_list("opens", flat=True):
            found.update(retry_at=_later(opens), opens=F("opens") + 1, last_failure=words[:MAX_FAILURE_CHARS])
            write_reachable(server_id)


@contextmanager
def _session_locked(server_id: int) -> Iterator[None]:
    """A transaction that holds the session of a server.

    The session is locked before the server's row, as everywhere. Without the lock, two processes that change a
    breaker at once could leave the session with the `retry_at` of the change that was overwritten.
    """
    with transaction.atomic():
        Session.objects.select_for_update(no_key=True).filter(remote__pk=server_id).first()
        yield


def _later(opens: int) -> datetime:
    times = min(2 ** min(opens, 10), MOST_OPENS)
    return db_now() + timedelta(seconds=get_settings().remote_retry_s * times)


@dataclass(frozen=True, slots=True)
class Names:
    """The server's names; empty where it knows nothing yet."""

    context_id: str = ""
    task_id: str = ""


def find_names(server: RemoteServer, ask: Ask) -> Names:
    """What the server calls the conversation and the task of an ask."""
    wanted = [ours for ours in (ask.context_id, ask.task_id) if ours]
    if not wanted:
        return Names()
    found = RemoteName.objects.filter(server=server, caller_id=ask.caller_id, ours__in=wanted)
    theirs = {(kind, ours): name for kind, ours, name in found.values_list("kind", "ours", "theirs")}
    return Names(theirs.get((Kind.CONTEXT, ask.context_id), ""), theirs.get((Kind.TASK, ask.task_id), ""))


def remember_names(server_id: int, ask: Ask, names: Names) -> None:
    """Write down what the server said; a task without a name is forgotten: it is over."""
    if names.context_id:
        _write(server_id, ask.caller_id, Kind.CONTEXT, ask.context_id, names.context_id)
    if names.task_id:
        _write(server_id, ask.caller_id, Kind.TASK, ask.task_id, names.task_id)
    elif ask.task_id:
        _of(server_id, ask.caller_id).filter(kind=Kind.TASK, ours=ask.task_id).delete()


def forget_names(server_id: int) -> None:
    """The server is another one now: its names mean nothing any more."""
    RemoteName.objects.filter(server_id=server_id).delete()


def _write(server_id: int, caller_id: int, kind: Kind, ours: str, theirs: str) -> None:
    if not ours or max(len(ours), len(theirs)) > MAX_ID_CHARS:
        return
    named = {"theirs": theirs, "used_at": db_now()}
    if not RemoteServer.objects.filter(pk=server_id).exists():  # deleted while it answered
        return
    _of(server_id, caller_id).update_or_create(
        kind=kind,
        ours=ours,
        defaults=named,
        create_defaults={**named, "server_id": server_id, "caller_id": caller_id},
    )


def _of(server_id: int, caller_id: int) -> QuerySet[RemoteName]:
    return RemoteName.objects.filter(server_id=server_id, caller_id=caller_id)
