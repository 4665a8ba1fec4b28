"""The state that the hub keeps about a server between calls: its circuit breaker, and the server's names.

The hub does not call a server that fails repeatedly for a while: for callers its agent is offline.

Failures in a row are counted in each process. The opening of the breaker is a column of the server, and the time
of the next ask is a column of its session; all processes read them. After that time the breaker is half-open: the
first call probes, while the breaker stays open for all others. A probe without a result is followed by another
one.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from agents import settings
from agents.core.types import Ask
from agents.links.remote.events import BreakerOpen
from agents.models import RemoteName, RemoteServer, Session
from agents.models.remote import MAX_FAILURE_CHARS, MAX_ID_CHARS
from clawbridge.breaker import BreakerMemory, BreakerRules, Permit
from kit.clock import approximate_now, db_now
from kit.durations import seconds

FAILURES = 5
MAX_OPENS = 20  # the longest time that a breaker stays open, in units of REMOTE_RETRY_S
MAX_STORED = 30_000  # openings in a row, as the column holds
TRIAL_S = seconds(60.0)
Kind = RemoteName.Kind
MAX_CONTEXTS = 10_000  # of one caller at one server; those used last stay
_CLOSED = BreakerMemory()


def breaker_rules() -> BreakerRules:
    """The rules of a server's breaker: it opens after failures in a row, each time for twice as long."""
    return BreakerRules(
        failures=FAILURES,
        window_s=math.inf,
        cooldown_s=settings.REMOTE_RETRY_S,
        most_cooldowns=MAX_OPENS,
        probe_s=TRIAL_S,
        clears_on_success=True,
    )


def enter_breaker(server: RemoteServer) -> Permit:
    """Let a call through.

    Raises:
        BreakerOpen: the breaker does not let the call through.
    """
    if server.retry_at is None:
        return Permit(0, is_probe=False)
    # Read again under the lock: of the calls of all processes exactly one may be the probe.
    with _locked_breaker(server.pk) as breaker:
        rules, now_s = breaker_rules(), db_now().timestamp()
        if breaker is None or breaker.wait_s(now_s, rules):
            raise BreakerOpen("it failed too often, and is left alone for a while")
        breaker, permit = breaker.let_through(now_s, rules)
        if permit.is_probe:
            _store(server.pk, breaker)
    return permit


class ServerBreakers:
    """The failures in a row that this process saw, by server."""

    def __init__(self) -> None:
        self._closed: dict[int, BreakerMemory] = {}

    def succeeded(self, server_id: int, permit: Permit) -> bool:
        """Reset the count; True if the caller must call `close_breaker`, which writes to the database."""
        self._closed.pop(server_id, None)
        return permit.is_probe

    def failed(self, server_id: int, permit: Permit) -> bool:
        """Count a failure; True if the caller must call `open_breaker`, which writes to the database."""
        if permit.is_probe:
            return True
        counted = self._closed.pop(server_id, _CLOSED).record(
            Permit(0, is_probe=False), approximate_now().timestamp(), breaker_rules(), str(server_id)
        )
        if not counted.is_open:
            self._closed[server_id] = counted
        return counted.is_open


def close_breaker(server_id: int, permit: Permit | None = None) -> None:
    """Close the breaker of a server that answered, unless another call changed it since this call's permit."""
    with _locked_breaker(server_id) as breaker:
        if breaker is not None and (permit is None or breaker.expects(permit)):
            _store(server_id, _CLOSED, "")


def open_breaker(server_id: int, words: str, permit: Permit | None = None) -> None:
    """Open the breaker of a server that fails, for twice as long as the time before.

    The failure of a call that was sent before it opened changes nothing.
    """
    with _locked_breaker(server_id) as breaker:
        if breaker is not None and (permit is None or breaker.expects(permit)):
            _store(server_id, breaker.open(db_now().timestamp()), words)


def open_breaker_at_once(server_id: int, card_url: str, words: str, *, tried: bool) -> None:
    """Open the breaker without counting, because the card at this URL keeps the hub from asking.

    Only the call that probed extends an open breaker. A server that was moved meanwhile is left as it is.
    """
    with _locked_breaker(server_id, card_url=card_url) as breaker:
        if breaker is not None and (tried or not breaker.is_open):
            _store(server_id, breaker.open(db_now().timestamp()), words)


def write_reachable(server_id: int) -> None:
    """Copy the time from which the server can be asked to its session.

    Call it in a transaction that locked the session before the server.
    """
    retry_at = RemoteServer.objects.filter(session=OuterRef("pk")).values("retry_at")
    Session.objects.filter(remote__pk=server_id).update(reachable_from=Coalesce(Subquery(retry_at), db_now()))


@contextmanager
def _locked_breaker(server_id: int, **columns: str) -> Iterator[BreakerMemory | None]:
    """A transaction that holds the session of a server, and the breaker in the server's row.

    None: there is no such row. A probe that is out is not told apart. The session is locked before the server's
    row, as everywhere. Two processes that change a breaker at once without the lock could leave the session with
    the `retry_at` of the overwritten change.
    """
    with transaction.atomic():
        Session.objects.select_for_update(no_key=True).filter(remote__pk=server_id).first()
        server = RemoteServer.objects.filter(pk=server_id, **columns).only("retry_at", "opens").first()
        if server is None or server.retry_at is None:
            yield None if server is None else _CLOSED
            return
        opened_at_s = server.retry_at.timestamp() - breaker_rules().open_for_s(server.opens)
        yield BreakerMemory(opened_at_s=opened_at_s, openings=server.opens, in_a_row=server.opens)


def _store(server_id: int, breaker: BreakerMemory, words: str | None = None) -> None:
    """Write a breaker to the row of its server and to the session. `words`: the text of the failure; None:
    unchanged.
    """
    retry_at = datetime.fromtimestamp(breaker.retry_at_s(breaker_rules()), UTC) if breaker.is_open else None
    failure = {} if words is None else {"last_failure": words[:MAX_FAILURE_CHARS]}
    opens = min(breaker.in_a_row, MAX_STORED)
    RemoteServer.objects.filter(pk=server_id).update(retry_at=retry_at, opens=opens, **failure)
    write_reachable(server_id)


@dataclass(frozen=True, slots=True)
class ServerNames:
    """The server's ids for a conversation and a task; empty where the server has given none."""

    context_id: str = ""
    task_id: str = ""


def find_names(server: RemoteServer, ask: Ask) -> ServerNames:
    """The server's names for the conversation and the task of an ask."""
    wanted = [ours for ours in (ask.context_id, ask.task_id) if ours]
    if not wanted:
        return ServerNames()
    found = RemoteName.objects.filter(server=server, caller_id=ask.caller_id, ours__in=wanted)
    theirs = {(kind, ours): name for kind, ours, name in found.values_list("kind", "ours", "theirs")}
    return ServerNames(theirs.get((Kind.CONTEXT, ask.context_id), ""), theirs.get((Kind.TASK, ask.task_id), ""))


def remember_names(server_id: int, ask: Ask, names: ServerNames) -> None:
    """Store the ids that the server gave. The id of a task that is over is deleted."""
    if names.context_id:
        _write(server_id, ask.caller_id, Kind.CONTEXT, ask.context_id, names.context_id)
    if names.task_id:
        _write(server_id, ask.caller_id, Kind.TASK, ask.task_id, names.task_id)
    elif ask.task_id:
        _of(server_id, ask.caller_id).filter(kind=Kind.TASK, ours=ask.task_id).delete()


def forget_names(server_id: int) -> None:
    """Delete the ids that a server gave: another server answers now."""
    RemoteName.objects.filter(server_id=server_id).delete()


def _write(server_id: int, caller_id: int, kind: Kind, ours: str, theirs: str) -> None:
    if not ours or max(len(ours), len(theirs)) > MAX_ID_CHARS:
        return
    named = {"theirs": theirs, "used_at": db_now()}
    if not RemoteServer.objects.filter(pk=server_id).exists():  # the server's row was deleted while it answered
        return
    _, is_new = _of(server_id, caller_id).update_or_create(
        kind=kind,
        ours=ours,
        defaults=named,
        create_defaults={**named, "server_id": server_id, "caller_id": caller_id},
    )
    if is_new and kind == Kind.CONTEXT:  # a task that waits keeps its name
        contexts = _of(server_id, caller_id).filter(kind=kind).order_by("-used_at", "-pk")
        RemoteName.objects.filter(pk__in=[*contexts.values_list("pk", flat=True)[MAX_CONTEXTS:]]).delete()


def _of(server_id: int, caller_id: int) -> QuerySet[RemoteName]:
    return RemoteName.objects.filter(server_id=server_id, caller_id=caller_id)
