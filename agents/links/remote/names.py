"""What remote servers call conversations and waiting tasks of ours; each caller's are their own."""

from dataclasses import dataclass

from django.db.models import QuerySet

from agents.core.types import Ask
from agents.models import RemoteName, RemoteServer
from agents.models.remote import MAX_ID_CHARS
from kit.clock import db_now

Kind = RemoteName.Kind


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


def remember(server_id: int, ask: Ask, names: Names) -> None:
    """Write down what the server said; a task without a name is forgotten: it is over."""
    if names.context_id:
        _write(server_id, ask.caller_id, Kind.CONTEXT, ask.context_id, names.context_id)
    if names.task_id:
        _write(server_id, ask.caller_id, Kind.TASK, ask.task_id, names.task_id)
    elif ask.task_id:
        _of(server_id, ask.caller_id).filter(kind=Kind.TASK, ours=ask.task_id).delete()


def forget(server_id: int) -> None:
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
