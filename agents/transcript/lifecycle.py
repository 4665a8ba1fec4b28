"""The comings and goings of a session's agent, as events and for those who watch."""

from collections.abc import Sequence
from datetime import datetime

from agents.models import Attachment, Event, Session
from agents.transcript.announcing import announce
from agents.transcript.happenings import scenes
from agents.transcript.live import ChannelStatus, seen
from kit.iso import iso
from webhooks import outbox

START, END = "SessionStart", "SessionEnd"
EMPTY = "{}"


def started(session: Session, now: datetime, *, took_over: bool) -> None:
    """An agent registered; when it took over from another connection, that one's end is written before.

    One statement, and one more after the commit: a thousand agents may come back at once.
    """
    types = [END, START] if took_over else [START]
    events = Event.objects.bulk_create(_tail(session, type_, now) for type_ in types)
    _tell(session, events, is_connected=True)
    _let_hear([session], events, "session.connected")


def ended(sessions: Sequence[Session], now: datetime) -> None:
    """The connections of these sessions are gone."""
    if not sessions:
        return
    events = Event.objects.bulk_create(_tail(session, END, now) for session in sessions)
    _let_hear(sessions, events, "session.disconnected")
    ids = [session.pk for session in sessions]
    watched = set(Attachment.objects.filter(session_id__in=ids).values_list("session_id", flat=True))
    for session, event in zip(sessions, events, strict=True):
        if session.pk in watched:
            _tell(session, [event], is_connected=False)


def _let_hear(sessions: Sequence[Session], events: Sequence[Event], what: str) -> None:
    """Deliveries for webhooks, in the same transaction; one small query while nobody subscribed."""
    if not outbox.anybody_listens():
        return
    known = scenes([session.pk for session in sessions])
    heard = [known[one.session_id].event(one.pk, one.kind, one.type, one.payload, one.ts) for one in events]
    outbox.record(heard + [scene.say(what, ownerLogin=scene.owner_login) for scene in known.values()])


def _tail(session: Session, type_: str, now: datetime) -> Event:
    return Event(session_id=session.pk, kind=Event.Kind.TAIL, type=type_, payload=EMPTY, ts=now)


def _tell(session: Session, events: Sequence[Event], *, is_connected: bool) -> None:
    public_id = str(session.public_id)
    status = ChannelStatus(public_id, is_connected, iso(events[-1].ts))
    announce(session.pk, *[seen(public_id, event) for event in events], status)
