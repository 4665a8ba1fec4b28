"""Writing events and op-messages of a session, and showing them to its operators after the commit."""

import re
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.db import transaction
from msgspec import Struct

from agents.models import Event, OpMessage, Session
from agents.transcript.announcements import (
    ChannelStatus,
    LiveMessage,
    OpMessageMessage,
    announce,
    announce_in_each,
    load_session_audiences,
    seen_event,
)
from kit import strict_json
from kit.clock import db_now, iso
from webhooks.service import outbox

MAX_TYPE_CHARS = 64

SURROGATES = re.compile("[\ud800-\udfff]")

encode = msgspec.json.Encoder().encode


class BadPayload(ValueError):
    """A payload the hub cannot keep; the text says why."""


class NewEvent(Struct, frozen=True):
    """An event to store. `payload` is JSON text without lone surrogates (`payload_of` makes it).

    `traceparent`: of the turn that the event is about.
    """

    session_id: int
    kind: str
    type: str
    payload: str
    traceparent: str = ""


def payload_of(**members: Any) -> str:
    """A payload of these members, without members that are None."""
    return as_payload({name: value for name, value in members.items() if value is not None})


def as_payload(members: Mapping[str, Any]) -> str:
    """The payload for any JSON object; lone surrogates become U+FFFD."""
    try:
        return encode(members).decode()
    except UnicodeEncodeError:
        return encode(_mended(members)).decode()


def clean(raw: bytes) -> str:
    """A payload as a client sent it: a JSON object, or any JSON under `value`; lone surrogates become U+FFFD.

    Raises:
        BadPayload: the bytes are no JSON, or JSON that the hub could not show again.
    """
    try:
        value = strict_json.read(raw, max_brackets=None, takes_any_text=True)
    except strict_json.BadShape as bad:
        raise BadPayload(f"payload: {bad}") from None
    except strict_json.NotJson:
        raise BadPayload("payload: not JSON that can be kept") from None
    if isinstance(value, dict) and b"\\u" not in raw:
        return raw.decode()
    return as_payload(value if isinstance(value, dict) else {} if value is None else {"value": value})


def kept_text(text: str, at_most: int) -> str:
    """A text as every database keeps it: NUL and lone surrogates become U+FFFD, a text that is too long is cut and
    ends in `…`.
    """
    mended = SURROGATES.sub("\ufffd", text.replace("\0", "\ufffd"))
    return mended if len(mended) <= at_most else mended[: at_most - 1] + "…"


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return SURROGATES.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_mended(key): _mended(inner) for key, inner in value.items()}
    return [_mended(inner) for inner in value] if isinstance(value, list) else value


START, END = "SessionStart", "SessionEnd"


def record_session_starts(
    sessions: Sequence[Session], now: datetime, *, known: Container[int], taken_over: Container[int]
) -> None:
    """Record that agents registered; of a connection that one replaced, the end is recorded first.

    `known`: the sessions that operators may watch already, because they are not new.
    """
    starts = [(one, type_) for one in sessions for type_ in ([END, START] if one.pk in taken_over else [START])]
    events = _store(starts, now, "session.connected")
    _announce_status([one for one in sessions if one.pk in known], events, is_connected=True)


def record_session_end(sessions: Sequence[Session], now: datetime) -> None:
    """Record that the connections of these sessions ended."""
    events = _store([(session, END) for session in sessions], now, "session.disconnected")
    _announce_status(sessions, events, is_connected=False)


def _store(lifecycle: Sequence[tuple[Session, str]], now: datetime, what: str) -> list[Event]:
    """Store events, each of a session and a type, and queue the deliveries for webhooks in the same transaction.

    While there are no subscriptions, webhooks cost one small query.
    """
    if not lifecycle:
        return []
    events = Event.objects.bulk_create(
        Event(session_id=session.pk, kind=Event.Kind.TAIL, type=type_, payload="{}", ts=now)
        for session, type_ in lifecycle
    )
    if outbox.has_subscriptions():
        known = load_session_audiences({one.session_id for one in events})
        stored = [known[one.session_id].event(one.pk, one.kind, one.type, one.payload, one.ts) for one in events]
        outbox.record(stored + [one.make_event(what, ownerLogin=one.owner_login) for one in known.values()])
    return events


def _announce_status(sessions: Sequence[Session], events: Sequence[Event], *, is_connected: bool) -> None:
    messages: dict[int, list[LiveMessage]] = {}
    by_session: dict[int, list[Event]] = {}
    for event in events:
        by_session.setdefault(event.session_id, []).append(event)
    for session in sessions:
        public_id, mine = str(session.public_id), by_session[session.pk]
        seen = [seen_event(public_id, one.kind, one.type, one.payload, one.ts) for one in mine]
        messages[session.pk] = [*seen, ChannelStatus(public_id, is_connected, iso(mine[-1].ts))]
    announce_in_each(messages)


MAX_MENTIONS = 50

_LOGIN = re.compile(r"(?<![\w@./-])@([A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?)(?![\w/])")


@transaction.atomic
def post_op_message(
    session: Session, *, author_id: int, author_login: str, text: str, mentions: Sequence[str] | None = None
) -> OpMessage:
    """Store a message and send it to all watchers of the session, its author too. `mentions` None: taken from the
    text.
    """
    named = [one.removeprefix("@") for one in mentions] if mentions is not None else logins_in(text)
    now = db_now()
    row = OpMessage.objects.create(session=session, author_id=author_id, text=text, mentions=named, ts=now)
    announce(session.pk, OpMessageMessage(str(session.public_id), author_login, text, named, iso(now)))
    return row


def logins_in(text: str) -> list[str]:
    """The `@login` words of a text, each once, in order."""
    return list(dict.fromkeys(_LOGIN.findall(text)))[:MAX_MENTIONS]
