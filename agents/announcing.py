"""From synchronous code (REST views, the admin, jobs) to sockets: what to tell, once it is committed.

Outside a hub process, as in a Celery worker or a shell, nobody listens and nothing is told: live views and
sockets find out by the rows.
"""

from collections.abc import Callable, Sequence

from django.db import transaction
from msgspec import Raw

from agents.live import LiveMessage, encode, processes_watching
from agents.models import Attachment, Connection
from agents.pieces import ApprovalDecided
from agents.post import Dismiss, Live, Message, Oust, Tell

Addressed = tuple[str, Message]  # a process, and what to tell it
Carrier = Callable[[Sequence[Addressed]], None]

_carriers: list[Carrier] = []


def carry_by(carrier: Carrier) -> None:
    """The hub process hands down who carries messages from any thread to their processes."""
    _carriers[:] = [carrier]


def announce(session_id: int, *messages: LiveMessage) -> None:
    """Show these to whoever watches the session (its row id), after the commit."""
    transaction.on_commit(lambda: _carry(_live(session_id, messages)))


def oust(session_id: int, user_id: int) -> None:
    """A user's share of a session became less: their live views end, after the commit."""
    transaction.on_commit(
        lambda: _carry([(process, Oust(session_id, user_id)) for process in _processes(session_id)])
    )


def tell_agent(session_id: int, frame: bytes, chat_id: str = "", piece: ApprovalDecided | None = None) -> bool:
    """Send a finished frame to the session's agent after the commit; False when none is connected.

    `chat_id`, `piece`: what the caller of a turn is told by it.
    """
    found = Connection.objects.filter(session_id=session_id).values_list("process_id", "pk").first()
    if found is None:
        return False
    process_id, connection_id = found
    transaction.on_commit(lambda: _carry([(process_id, Tell(connection_id, Raw(frame), chat_id, piece))]))
    return True


def dismiss_agent(session_id: int, reason: str) -> None:
    """Call before the session's row goes: its agent, if connected, is told for good after the commit."""
    found = Connection.objects.filter(session_id=session_id).values_list("process_id", "pk")
    addressed: list[Addressed] = [(process, Dismiss(pk, reason)) for process, pk in found]
    transaction.on_commit(lambda: _carry(addressed))


def dismiss_operators(session_id: int) -> None:
    """Call before the session's row goes: those who watch it look again after the commit, and find it gone."""
    found = Attachment.objects.filter(session_id=session_id).values_list("process_id", "user_id").distinct()
    addressed: list[Addressed] = [(process, Oust(session_id, user_id)) for process, user_id in found]
    transaction.on_commit(lambda: _carry(addressed))


def _live(session_id: int, messages: Sequence[LiveMessage]) -> list[Addressed]:
    processes = _processes(session_id)
    return [(process, Live(session_id, Raw(encode(one)))) for one in messages for process in processes]


def _processes(session_id: int) -> set[str]:
    return processes_watching([session_id]).get(session_id, set()) if _carriers else set()


def _carry(addressed: Sequence[Addressed]) -> None:
    if addressed:
        for carrier in _carriers:
            carrier(addressed)
