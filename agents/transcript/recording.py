"""Writing events, and making their payloads."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db import transaction

from agents.models import Event, Session
from agents.transcript.announcing import announce
from agents.transcript.happenings import scenes
from agents.transcript.live import seen_event
from kit import strict_json
from kit.clock import db_now
from webhooks import outbox

MAX_TYPE_CHARS = 64

SURROGATES = re.compile("[\ud800-\udfff]")

encode = msgspec.json.Encoder().encode


class BadPayload(ValueError):
    """A payload the hub cannot keep; the text says why."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be. `payload` is JSON text without lone surrogates (`payload_of` makes it).

    `traceparent`: of the turn it tells of.
    """

    session_id: int
    kind: str
    type: str
    payload: str
    traceparent: str = ""


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
    if outbox.anybody_listens():
        outbox.record([scenes([session.pk])[session.pk].event(event.pk, kind, type_, payload, now)])
    return event


def clean(raw: bytes) -> str:
    """A payload as a client sent it: a JSON object, or any JSON under `value`; lone surrogates become U+FFFD.

    Raises:
        BadPayload: not JSON that could be shown again.
    """
    try:
        value = strict_json.parse(strict_json.decode(raw), max_brackets=None)
    except strict_json.BadShape as bad:
        raise BadPayload(f"payload: {bad}") from None
    except strict_json.NotJson:
        raise BadPayload("payload: not JSON that can be kept") from None
    if isinstance(value, dict) and b"\\u" not in raw:
        return raw.decode()
    return as_payload(value if isinstance(value, dict) else {} if value is None else {"value": value})


def kept_text(text: str, at_most: int) -> str:
    """A text as every database keeps it: NUL and lone surrogates become U+FFFD, what is too long ends in `…`."""
    mended = SURROGATES.sub("\ufffd", text.replace("\0", "\ufffd"))
    return mended if len(mended) <= at_most else mended[: at_most - 1] + "…"


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return SURROGATES.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_mended(key): _mended(inner) for key, inner in value.items()}
    return [_mended(inner) for inner in value] if isinstance(value, list) else value
