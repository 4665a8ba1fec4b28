"""Writing events: one statement for any number of them, inside the caller's transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from django.db import transaction

from agents.announcing import announce
from agents.live import seen_event
from agents.models import Event, Session
from kit.clock import db_now

encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be. `payload` is JSON text without lone surrogates (`payload_of` makes it)."""

    session_id: int
    kind: str
    type: str
    payload: str


def payload_of(**members: Any) -> str:
    """A payload from its members, those that are None left out; lone surrogates become U+FFFD."""
    return as_payload({name: value for name, value in members.items() if value is not None})


def as_payload(members: Mapping[str, Any]) -> str:
    """Any JSON object as a payload."""
    try:
        return encode(members).decode()
    except UnicodeEncodeError:
        return encode(_mended(members)).decode()


@transaction.atomic
def record(session: Session, kind: str, type_: str, payload: str) -> Event:
    """Write one event from synchronous code, and show it to the session's operators after the commit."""
    now = db_now()
    event = Event.objects.create(session=session, kind=kind, type=type_, payload=payload, ts=now)
    announce(session.pk, seen_event(str(session.public_id), kind, type_, payload, now))
    return event


def write(events: Sequence[NewEvent], now: datetime) -> list[Event]:
    """Write many; the rows, in order. Nobody is told: the ledger does that after its commit."""
    rows = [
        Event(session_id=one.session_id, kind=one.kind, type=one.type, payload=one.payload, ts=now)
        for one in events
    ]
    return Event.objects.bulk_create(rows)


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, Mapping):
        return {_mended(key): _mended(inner) for key, inner in value.items()}
    return [_mended(inner) for inner in value] if isinstance(value, list) else value
